"""Files of pretrained weights, as timm publishes them."""

from pathlib import Path

import torch
from torch import Tensor

from paperlib.io import file_sha256


def read_weights(path: str) -> dict[str, Tensor]:
    """Tensors by name from ``model.safetensors``, or from a file of torch's without running what is in it.

    Raises:
        FileNotFoundError: No such file.
        ValueError: A file that holds anything but tensors, or is cut short.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"weights: no file {path}")
    try:
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file  # comes with timm, an extra

            return load_file(file)
        found = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # safetensors, zip and pickle have their own errors, without a common class
        raise ValueError(f"weights: {path} cannot be read as tensors ({error})") from error
    found = found.get("state_dict", found) if isinstance(found, dict) else found
    if not isinstance(found, dict) or not all(isinstance(values, Tensor) for values in found.values()):
        raise ValueError(f"weights: {path} holds something else than tensors by name")
    return found


def weights_tag(path: str) -> str:
    """SHA-256 of a file of weights, for keys of caches; empty for none.

    Raises:
        FileNotFoundError: No such file.
    """
    if path and not Path(path).expanduser().is_file():
        raise FileNotFoundError(f"weights: no file {path}")
    return file_sha256(Path(path).expanduser()) if path else ""
