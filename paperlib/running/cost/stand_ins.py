"""What takes the place of values and models that a shortened run does not have."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

LARGEST = 2e9
"""Bytes of weights of the largest language model that is loaded, and not only counted."""
_SPREAD = 0.1  # of made-up numbers around those they are drawn from, in standard deviations
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")


def made_up(sample: Any, rows: int, seed: int) -> Any:
    """Rows drawn from those of a true answer, numbers spread a little so that few are equal.

    Args:
        sample: Array or tensor, shape (k, ...).
        rows: Number of rows wanted.
        seed: Seed of the draw.
    """
    values = sample.detach().cpu().numpy() if isinstance(sample, Tensor) else np.asarray(sample)
    rng = np.random.default_rng([rows, seed])
    drawn = values[rng.integers(len(values), size=rows)]
    if drawn.dtype.kind == "f":
        spread = _SPREAD * (float(values.std()) or 1.0)
        drawn = drawn + spread * rng.standard_normal(drawn.shape).astype(drawn.dtype)
        drawn = drawn.clip(values.min(), values.max())  # a loss stays above 0
    elif drawn.dtype == np.uint8:  # pixels; without this few images would differ
        drawn = (drawn + rng.integers(-16, 17, size=drawn.shape)).clip(0, 255).astype(np.uint8)
    if not isinstance(sample, Tensor):
        return drawn
    return torch.from_numpy(drawn).to(sample.device)


def without_weights(name: str, dtype: str) -> Any:
    """A language model of the hub on the meta device, which computes shapes alone.

    Args:
        name: Name on the hub.
        dtype: Number format, "auto" for the published one.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(name)
    kind = (config.dtype or torch.float32) if dtype == "auto" else getattr(torch, dtype)
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=kind)
    model.register_forward_pre_hook(_to_meta, with_kwargs=True)
    return model.eval()


def _to_meta(module: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Move the inputs; with a mask of the shape that attention takes, whose values nothing looks at."""
    moved = {key: one.to("meta") if isinstance(one, Tensor) else one for key, one in kwargs.items()}
    tokens = moved["input_ids"]
    present = moved.get("attention_mask")
    known = tokens.shape[1] if present is None else present.shape[1]
    mask = torch.ones(len(tokens), 1, tokens.shape[1], known, dtype=torch.bool, device="meta")
    return args, {**moved, "attention_mask": mask}


def model_bytes(model: Any) -> float:
    """Bytes of the weights."""
    return float(sum(values.numel() * values.element_size() for values in model.parameters()))


def has_weights(name: str) -> bool:
    """Whether the weights of a model of the hub are on this machine."""
    from transformers.utils.hub import cached_file

    quiet = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    return any(cached_file(name, file, local_files_only=True, **quiet) for file in _WEIGHTS)


def stand_in(name: str, dtype: str) -> tuple[Any, float] | None:
    """The model to be counted in the place of one that is not here or too large, and its published bytes.

    None for a folder. The model is None where the true one can be loaded.
    """
    if Path(name).is_dir():
        return None
    published = model_bytes(without_weights(name, "auto"))
    model = without_weights(name, dtype)
    here = has_weights(name) and model_bytes(model) <= LARGEST
    return (None if here else model), published
