"""The device that models are put on."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def default_device(device: torch.device | str | None = None) -> torch.device:
    """The device asked for; with None, CUDA where there is one, else the CPU."""
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        raise ValueError(
            f"device: expected 'cpu', 'cuda', 'cuda:0', ..., one that is there, got {str(device)!r}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    return torch.device(chosen)


@contextmanager
def fast_products(*, allowed: bool = True) -> Iterator[None]:
    """Products of float32 matrices on a GPU's tensor cores (TF32, 10 bits of mantissa), not on a CPU."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = before or allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
