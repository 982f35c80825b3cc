"""The shape of a language model, by its config.json alone: refused before anything is built by it
that no computer holds.

A config of a few hundred bytes can ask for a million layers, or for widths of 2^62; transformers
builds what it is told.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from torch.nn.modules.module import register_module_module_registration_hook

MOST_LAYERS = 2_000
"""More than any model has; some configs make a list with an entry for each layer."""

MOST_MODULES = 100_000
"""A mixture of 256 experts in 60 layers has 50,000."""

MOST_PARAMETERS_A_BYTE = 8
"""Weights of one bit: what is stored decides how much memory a folder may ask for."""

_SMALL = 100_000_000
"""So many parameters any computer holds; what is wrong with their files, the loading says."""

_WRONG_VALUES = (ArithmeticError, AttributeError, LookupError, TypeError, AssertionError)

_NO_MODEL = (*_WRONG_VALUES, RuntimeError, StrictDataclassError)
"""What transformers and torch raise by a config whose values fit no model."""


class ShapeError(ValueError):
    """A config.json of a shape that no computer holds, or that its weights do not hold."""


def check_layers(content: Mapping[str, Any], where: str) -> None:
    """Refuse (`ShapeError`) the content of a config.json, or a config within it, with a number of
    layers below 1 or above `MOST_LAYERS`; ``where`` begins the message.
    """
    for key, value in content.items():
        if isinstance(value, Mapping):
            check_layers(value, where)
        is_count = key in ("n_layer", "n_layers") or key.endswith(("num_layers", "hidden_layers"))
        if is_count and isinstance(value, int) and not 1 <= value <= MOST_LAYERS:
            raise ShapeError(
                f"{where}: {key} is {value:,}, expected 1 to {MOST_LAYERS:,}; take the config.json "
                "that was saved with the weights"
            )


def without_weights(config: Any, where: str) -> Any:
    """The causal model of a config on torch's device "meta", which holds shapes and no numbers.

    Raises:
        ShapeError: A config by which no model can be built, or one of more than `MOST_MODULES`
            modules; ``where`` begins the message.
    """
    with config_faults(where), _few_modules(where), torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=False)


@contextmanager
def config_faults(where: str) -> Iterator[None]:
    """Says in a `ShapeError` of one line that no model can be built by a config."""
    try:
        yield
    except _NO_MODEL as error:
        raise ShapeError(
            f"{where}: no model can be built by this config.json ({_cause(error)}); take the one "
            "that was saved with the weights"
        ) from None


@contextmanager
def weight_faults(name: str) -> Iterator[None]:
    """Says in a `ShapeError` of one line that weights, or an adapter, do not fit their model.

    An error of memory passes: the model may be right, and the computer too small.
    """
    try:
        yield
    except _WRONG_VALUES as error:
        raise ShapeError(
            f"name: the files in {name} fit no model that transformers and peft know "
            f"({_cause(error)}); save it again with save_pretrained"
        ) from None
    except RuntimeError as error:
        if "ignore_mismatched_sizes" not in str(error):
            raise
        raise ShapeError(
            f"name: the weights in {name} have other sizes than its config.json, or that of its "
            "adapter, says; take the files that were saved together"
        ) from None


def _cause(error: Exception) -> str:
    """Kind and beginning of an error, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


@contextmanager
def _few_modules(where: str) -> Iterator[None]:
    """Ends the building of a model (`ShapeError`) that has more than `MOST_MODULES` modules."""
    built = 0

    def count(*_: Any) -> None:
        nonlocal built
        built += 1
        if built > MOST_MODULES:
            raise ShapeError(
                f"{where}: this config.json describes a model of more than {MOST_MODULES:,} "
                "modules; take the one that was saved with the weights"
            )

    hook = register_module_module_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def check_stored(parameters: int, folder: Path) -> None:
    """Refuse (`ShapeError`) a model whose parameters the files of weights in a folder cannot hold.

    transformers would fill the memory with random numbers before it says that weights are missing.
    A folder without weights passes: its loading says what it lacks.
    """
    stored = 0
    for path in (*folder.glob("*.safetensors"), *folder.glob("*.bin")):
        stored += path.stat().st_size
    if stored and parameters > MOST_PARAMETERS_A_BYTE * stored + _SMALL:
        raise ShapeError(
            f"name: the config.json of {folder} describes {parameters:,} parameters, of which its "
            f"files of weights, {stored:,} bytes, hold a part at most; take the config.json that "
            "was saved with the weights"
        )
