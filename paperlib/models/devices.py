"""The device that models are put on."""

import torch


def default_device(device: torch.device | str | None = None) -> torch.device:
    """The device asked for; with None, CUDA where there is one, else the CPU.

    Raises:
        ValueError: CUDA is asked for and there is none.
    """
    chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device: expected cpu, since no CUDA device can be used here, got {device!r}")
    return chosen
