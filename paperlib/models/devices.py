"""The device that models are put on."""

import torch


def default_device(device: torch.device | str | None = None) -> torch.device:
    """The device asked for; with None, CUDA where there is one, else the CPU.

    Raises:
        ValueError: A device that is not there.
    """
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        raise ValueError(
            f"device: expected 'cpu', 'cuda', 'cuda:0', ..., one that is there, got {str(device)!r}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    return torch.device(chosen)
