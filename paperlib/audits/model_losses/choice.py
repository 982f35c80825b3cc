"""`losses`: one loss per record, whatever kind of model it is."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from paperlib.core import FloatArray, check_at_least

_KINDS = {  # what messages call it, its module, and the options that it uses
    "network": ("a torch module", "networks", ("loss", "device")),
    "estimator": ("a scikit-learn estimator", "estimators", ()),
    "text": ("a language model with its tokenizer", "texts", ("tokenizer", "device")),
    "function": ("a function", "values", ()),
}
_WANTED = (
    "a torch module, a fitted scikit-learn estimator, (model, tokenizer) of a causal language model, or a "
    "function from data to one loss per record"
)


def losses(
    model: Any,
    data: Any,
    *,
    loss: Callable[[Any, Any], Any] | None = None,
    tokenizer: Any = None,
    batch_size: int | None = None,
    device: Any = None,
    progress: bool | None = None,
) -> FloatArray:
    """One loss per record of ``data``, lower where the model fits the record better.

    What is computed depends on the kind of model, and on nothing that is guessed:

    - *torch module*: the cross entropy of logits, shape (n, classes), and whole-number targets, shape (n,);
      the squared error of floating targets of the same shape as the outputs, averaged over those of a record.
      Everything else needs ``loss``. The module runs in evaluation mode, and is put back as it was.
    - *scikit-learn classifier*: minus the logarithm of the probability of the true class; a probability of 0
      counts as 2.2e-308, so that the loss is finite.
    - *scikit-learn regressor*: the squared error, averaged over the outputs of a record.
    - *causal language model*: the mean over the tokens of minus the logarithm of their probability. The first
      token of a text is scored only where the tokenizer puts a start token before it.
    - *function*: what it returns.

    Args:
        model: A torch module, a fitted scikit-learn estimator (pipelines and searches too), a causal language
            model as ``(model, tokenizer)`` or as a text-generation pipeline, or a function from data to
            losses, shape (n,).
        data: For a torch module a DataLoader that neither shuffles nor drops records, a Dataset, ``(x, y)``,
            a dictionary of arrays with "labels", or an iterator of batches, of which one is in memory at a
            time. For an estimator ``(x, y)``. For a language model texts of two tokens or more.
        loss: Function from outputs (or their ``.logits``) and targets of a batch to losses, shape (n,), for a
            torch module; None for the rule above.
        tokenizer: Tokenizer of the language model, where ``model`` does not bring it.
        batch_size: Records per batch; None for 256 (torch module), 32 (language model) or all at once.
        device: Device for torch modules and language models, such as "cuda"; None for the model's own.
        progress: Whether a bar shows the progress; None shows it on a terminal.

    Raises:
        ValueError: A model, data or options that do not go together, or losses that are not certain.

    >>> losses(lambda numbers: [abs(number - 2.0) for number in numbers], [1, 2, 4])
    array([1., 0., 2.])
    """
    if batch_size is not None:
        check_at_least(1, batch_size=batch_size)
    model, tokenizer = _parted(model, tokenizer)
    kind = _kind(model, tokenizer, data)
    options = {"loss": loss, "tokenizer": tokenizer, "device": device}
    words, module, used = _KINDS[kind]
    for name, value in options.items():
        if value is not None and name not in used:
            raise ValueError(f"{name}: not used for {words}; leave it out")
    function = getattr(import_module(f"paperlib.audits.model_losses.{module}"), f"{kind}_losses")
    return function(
        model, data, batch_size=batch_size, progress=progress, **{name: options[name] for name in used}
    )


def _parted(model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """Model and tokenizer, from a pair or a transformers pipeline, too."""
    if isinstance(model, tuple | list):
        if len(model) != 2 or tokenizer is not None:
            raise ValueError(f"model: expected {_WANTED}; got a {type(model).__name__} of {len(model)}")
        return model[0], model[1]
    if all(hasattr(model, name) for name in ("task", "model", "tokenizer", "feature_extractor")):
        if model.task not in ("text-generation", ""):  # "": made without pipeline()
            raise ValueError(
                f"model: expected a pipeline for 'text-generation', got one for {model.task!r}; give its "
                ".model, a torch module, with batches that its tokenizer made"
            )
        if tokenizer is not None:
            raise ValueError("tokenizer: the pipeline has its own; leave it out")
        return model.model, model.tokenizer
    return model, tokenizer


def _kind(model: Any, tokenizer: Any, data: Any) -> str:
    if isinstance(model, type):
        raise ValueError(f"model: expected {_WANTED}; got the class {model.__name__}, give an instance of it")
    if tokenizer is not None:
        return "text"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        first = data[0] if isinstance(data, list) and data else data
        if isinstance(first, str):
            raise ValueError("tokenizer: needed for texts; call losses((model, tokenizer), texts)")
        return "network"
    if any(hasattr(model, name) for name in ("predict_proba", "predict", "classes_")):
        return "estimator"
    if callable(model):
        return "function"
    raise ValueError(f"model: expected {_WANTED}; got {type(model).__name__}")
