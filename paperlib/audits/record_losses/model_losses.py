"""`losses`: one loss per record, whatever kind of model it is: what the audits of scores start
from.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from paperlib.audits.record_losses.rows import (
    as_losses,
    by_rows,
    gathered,
    pair_of,
    row_count,
    rows,
)
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least

_KINDS = {  # what messages call it, and the options that it uses
    "network": ("a torch module", ("loss", "device")),
    "estimator": ("a scikit-learn estimator", ()),
    "text": ("a language model with its tokenizer", ("tokenizer", "device")),
    "function": ("a function", ()),
}
_WANTED = (
    "a torch module, a fitted scikit-learn estimator, (model, tokenizer) of a causal language "
    "model, or a function from data to one loss per record"
)
# What a probability of 0 counts as: minus its logarithm is finite.
_SMALLEST = np.finfo(np.float64).tiny
_SURE = 1e-6  # rounding of probabilities in float32


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

    - *torch module*: the cross entropy of logits, shape (n, classes), and whole-number targets,
      shape (n,); the squared error of floating targets of the same shape as the outputs, averaged
      over those of a record. Everything else needs ``loss``. The module runs in evaluation mode,
      and is put back as it was.
    - *scikit-learn classifier*: minus the logarithm of the probability of the true class; a
      probability of 0 counts as 2.2e-308, so that the loss is finite.
    - *scikit-learn regressor*: the squared error, averaged over the outputs of a record.
    - *causal language model*: the mean over the tokens of minus the logarithm of their probability.
      The first token of a text is scored only where the tokenizer puts a start token before it.
    - *function*: what it returns.

    Args:
        model: A torch module, a fitted scikit-learn estimator (pipelines and searches too), a
            causal language model as ``(model, tokenizer)`` or as a text-generation pipeline, or a
            function from data to losses, shape (n,).
        data: For a torch module a DataLoader that neither shuffles nor drops records, a Dataset,
            ``(x, y)``, a dictionary of arrays with "labels", or an iterator of batches, of which
            one is in memory at a time. For an estimator ``(x, y)``. For a language model texts of
            two tokens or more. For a function what it takes; arrays in a tuple or a dictionary are
            cut alike.
        loss: Function from outputs (or their ``.logits``) and targets of a batch to losses, shape
            (n,), for a torch module; None for the rule above.
        tokenizer: Tokenizer of the language model, where ``model`` does not bring it.
        batch_size: Records per batch; None for 256 (torch module), 32 (language model) or all at
            once.
        device: Device for torch modules and language models, such as "cuda"; None for the model's
            own.
        progress: Whether a bar shows the progress; None shows it on a terminal.

    Raises:
        ValueError: A model, data or options that do not go together, or losses that are not
            certain.

    >>> losses(lambda numbers: [abs(number - 2.0) for number in numbers], [1, 2, 4])
    array([1., 0., 2.])
    """
    if batch_size is not None:
        check_at_least(1, batch_size=batch_size)
    kind, model, tokenizer = _kind(model, tokenizer, data)
    words, used = _KINDS[kind]
    for name, value in {"loss": loss, "tokenizer": tokenizer, "device": device}.items():
        if value is not None and name not in used:
            raise ValueError(f"{name}: not used for {words}; leave it out")
    run_options: dict[str, Any] = {"batch_size": batch_size, "progress": progress}
    if kind == "estimator":
        return _estimator_losses(model, data, **run_options)
    if kind == "function":
        return _function_losses(model, data, **run_options)
    # Here, since torch takes seconds to import.
    from paperlib.audits.record_losses.network_losses import network_losses, text_losses

    if kind == "text":
        return text_losses(model, data, tokenizer=tokenizer, device=device, **run_options)
    return network_losses(model, data, loss=loss, device=device, **run_options)


def _kind(model: Any, tokenizer: Any, data: Any) -> tuple[str, Any, Any]:
    """The kind of model ("text", "network", "estimator" or "function"), the model, and its
    tokenizer, which a pair or a pipeline of transformers brings.

    Raises:
        ValueError: No model of these kinds, or texts without a tokenizer.
    """
    if isinstance(model, tuple | list):
        if len(model) != 2 or tokenizer is not None:
            raise ValueError(
                f"model: expected {_WANTED}; got a {type(model).__name__} of {len(model)}"
            )
        model, tokenizer = model
    elif _is_pipeline(model):
        _check_pipeline(model, tokenizer)
        model, tokenizer = model.model, model.tokenizer
    if isinstance(model, type):
        raise ValueError(
            f"model: expected {_WANTED}; got the class {model.__name__}, give an instance of it"
        )
    if tokenizer is not None:
        return "text", model, tokenizer
    if _is_module(model):
        if _holds_texts(data):
            raise ValueError("tokenizer: needed for texts; call losses((model, tokenizer), texts)")
        return "network", model, None
    if _is_estimator(model):
        return "estimator", model, None
    if callable(model):
        return "function", model, None
    raise ValueError(f"model: expected {_WANTED}; got {type(model).__name__}")


def _is_pipeline(model: Any) -> bool:
    """Whether this is a pipeline of transformers, which need not be installed."""
    names = ("task", "model", "tokenizer", "feature_extractor")
    return all(hasattr(model, name) for name in names)


def _check_pipeline(pipeline: Any, tokenizer: Any) -> None:
    """Refuse (ValueError) a pipeline of transformers that does not generate text, and a tokenizer
    beside its own.
    """
    if pipeline.task not in ("text-generation", ""):  # "": made without pipeline()
        raise ValueError(
            f"model: expected a pipeline for 'text-generation', got one for {pipeline.task!r}; "
            "give its .model, a torch module, with batches that its tokenizer made"
        )
    if tokenizer is not None:
        raise ValueError("tokenizer: the pipeline has its own; leave it out")


def _is_module(model: Any) -> bool:
    """Whether this is a torch module, as it can only be once torch is loaded."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _is_estimator(model: Any) -> bool:
    """Whether this has a method or an attribute of the estimators of scikit-learn."""
    return any(hasattr(model, name) for name in ("predict_proba", "predict", "classes_"))


def _holds_texts(data: Any) -> bool:
    """Whether the data are a text, or a list that begins with one."""
    first = data[0] if isinstance(data, list) and data else data
    return isinstance(first, str)


def _function_losses(
    model: Callable[[Any], Any], data: Any, *, batch_size: int | None, progress: bool | None
) -> FloatArray:
    """What a function returns for the data, or for one batch of it after the other: losses, shape
    (n,).

    Raises:
        ValueError: Data that cannot be cut into batches, or values that are no losses of the
            records.
    """
    columns = _columns_of(data)
    count = _common_length([data] if columns is None else list(columns.values()))
    if batch_size is not None and count is None:
        raise ValueError(
            f"batch_size: expected an array, a table or a list to cut into batches, got "
            f"{type(data).__name__}; leave batch_size out to call the function once"
        )
    if batch_size is None or count is None:
        return gathered(
            lambda whole: as_losses(model(whole), count, "model"), [data], progress=progress
        )

    def losses_of(start: int, end: int) -> FloatArray:
        """Losses of the records from ``start`` to before ``end``, shape (end - start,); of a tuple
        or a dictionary of arrays the function gets the same.
        """
        if columns is None:
            batch = rows(data, start, end)
        else:
            batch = {name: rows(column, start, end) for name, column in columns.items()}
            if not isinstance(data, Mapping):
                batch = tuple(batch.values())
        return as_losses(model(batch), end - start, "model")

    return by_rows(losses_of, count, batch_size, progress)


def _columns_of(data: Any) -> dict[Any, Any] | None:
    """The arrays of a tuple by number or of a dictionary by name, which are cut alike; None where
    the data are one array, or a tuple of records; a ValueError for a dictionary of records.
    """
    if isinstance(data, Mapping):
        columns = dict(data)
    elif isinstance(data, tuple):
        columns = dict(enumerate(data))
    else:
        return None
    are_arrays = all(
        isinstance(column, list) or getattr(column, "shape", ()) for column in columns.values()
    )
    if isinstance(data, Mapping) and not are_arrays:
        raise ValueError(
            "data: expected a dictionary of arrays; give a list of its values, if records"
        )
    return columns if columns and are_arrays else None


def _common_length(columns: list[Any]) -> int | None:
    """The number of records, which every column has; None where the columns have no length; a
    ValueError where their lengths differ.
    """
    counts = [row_count(column) for column in columns]
    if len(set(counts)) != 1:
        raise ValueError(f"data: expected arrays of one length, got lengths {counts}")
    return counts[0]


def _estimator_losses(
    model: Any, data: Any, *, batch_size: int | None, progress: bool | None
) -> FloatArray:
    """Minus log p of the true class of a classifier, nats, or the squared error of a regressor,
    shape (n,); without a batch size all records are one batch.

    Raises:
        ValueError: Data that are no pair (x, y) of n records, or a model without such a loss.
    """
    x, y, count = pair_of(data, "records and targets, (x, y), for a scikit-learn estimator")
    targets = np.asarray(y)
    is_classifier = hasattr(model, "predict_proba")
    _check_estimator(model, is_classifier=is_classifier)
    losses_of = _classified if is_classifier else _regressed

    def batch_losses(start: int, end: int) -> FloatArray:
        """Losses of the records from ``start`` to before ``end``, shape (end - start,)."""
        # All records as they are: what has no slices, such as a list of texts, needs none.
        batch = x if end - start == count else rows(x, start, end)
        return losses_of(model, batch, targets[start:end])

    whole = max(count, 1)  # one batch; of no records, an empty one
    return by_rows(batch_losses, count, batch_size or whole, progress)


def _check_estimator(model: Any, *, is_classifier: bool) -> None:
    """Refuse (ValueError) an estimator that is not fitted, or whose predictions have no loss."""
    name = type(model).__name__
    if is_classifier:
        if not hasattr(model, "classes_"):
            raise ValueError(
                f"model: {name} has no classes_; fit it before its losses are computed"
            )
    elif hasattr(model, "classes_") or _is("classifier", model):
        raise ValueError(
            f"model: {name} has no predict_proba, so its records have no loss; refit it within "
            "sklearn.calibration.CalibratedClassifierCV, or give a function from data to one loss "
            "per record"
        )
    elif not _is("regressor", model):
        raise ValueError(
            f"model: {name} says neither that it is a classifier nor a regressor; give a function "
            "from data to one loss per record, such as lambda data: (model.predict(data[0]) - "
            "data[1]) ** 2"
        )


def _is(kind: str, model: Any) -> bool:
    """Whether scikit-learn takes a model for an estimator of this kind, if it is loaded."""
    if hasattr(model, "__sklearn_tags__"):
        return bool(getattr(sys.modules["sklearn.base"], f"is_{kind}")(model))
    return getattr(model, "_estimator_type", None) == kind


def _classified(model: Any, x: Any, y: np.ndarray) -> FloatArray:
    """Minus the logarithm of the probability of each record's label, nats, shape (n,).

    Args:
        x: Features, shape (n, features) or a table of n rows.
        y: Labels, shape (n,), each one of the model's classes.

    Raises:
        ValueError: Several outputs, a label that is no class, or outputs that are no probabilities.
    """
    one_per_class = "for several outputs give a function from data to one loss per record"
    if np.ndim(model.classes_[0]) or y.ndim != 1:
        raise ValueError(
            f"data: expected a label per record, got labels of shape {y.shape}; {one_per_class}"
        )
    classes = np.asarray(model.classes_).tolist()
    probabilities = np.asarray(model.predict_proba(x))
    if probabilities.shape != (len(y), len(classes)):
        raise ValueError(
            f"model: expected probabilities of shape ({len(y)}, {len(classes)}), got "
            f"{probabilities.shape}; {one_per_class}"
        )
    column_of = {label: column for column, label in enumerate(classes)}  # "1" is not 1
    columns = np.array([column_of.get(label, -1) for label in y.tolist()], dtype=np.int64)
    if (columns < 0).any():
        first = int((columns < 0).argmax())
        listed = ", ".join(map(repr, classes[:5]))
        if len(classes) > 5:
            listed += ", ..."
        raise ValueError(
            f"data: label {y.tolist()[first]!r} at index {first} is none of the classes that the "
            f"model was fitted on ({listed}); leave such records out, or write the labels as in "
            "training"
        )
    of_label = probabilities[np.arange(len(y)), columns].astype(np.float64)
    if ((of_label < 0) | (of_label > 1 + _SURE)).any():
        raise ValueError(
            f"model: predict_proba gives {of_label.min():g} to {of_label.max():g}; expected "
            "probabilities in [0, 1]; give a function from data to one loss per record"
        )
    return as_losses(0.0 - np.log(np.maximum(of_label, _SMALLEST)), len(y), "model")


def _regressed(model: Any, x: Any, y: np.ndarray) -> FloatArray:
    """The squared error of each record, averaged over its targets, shape (n,).

    Args:
        x: Features, shape (n, features) or a table of n rows.
        y: Targets, shape (n,) or (n, outputs); a ValueError where predictions have another shape,
            or they are no numbers.
    """
    predicted = np.asarray(model.predict(x))
    if predicted.shape != y.shape or not y.ndim:
        raise ValueError(
            f"data: expected targets of the same shape as the predictions, {predicted.shape}, "
            f"got {y.shape}"
        )
    if y.dtype.kind not in "biuf":
        raise ValueError(
            f"data: expected numbers as targets of a regressor, got values of type {y.dtype}"
        )
    squared = (predicted.astype(np.float64) - y.astype(np.float64)) ** 2
    return as_losses(squared.reshape(len(y), -1).mean(axis=1), len(y), "model")
