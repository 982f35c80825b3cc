"""Losses of estimators in the manner of scikit-learn, told by what they offer."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from paperlib.audits.model_losses.values import as_losses, gathered, pair_of, rows
from paperlib.core import FloatArray

_SMALLEST = np.finfo(np.float64).tiny  # what a probability of 0 counts as: minus its logarithm is finite
_SURE = 1e-6  # rounding of probabilities in float32


def estimator_losses(model: Any, data: Any, *, batch_size: int | None, progress: bool | None) -> FloatArray:
    """Minus log p of the true class of a classifier, or the squared error of a regressor."""
    x, y, count = pair_of(data, "records and targets, (x, y), for a scikit-learn estimator")
    of_rows = _function_of(model)
    targets = np.asarray(y)
    step = batch_size or max(count, 1)
    starts = range(0, count, step)

    def of_batch(start: int) -> FloatArray:
        end = min(start + step, count)
        return of_rows(x if end - start == count else rows(x, start, end), targets[start:end])

    return gathered(of_batch, starts, total=len(starts), progress=progress)


def _function_of(model: Any) -> Callable[[Any, np.ndarray], FloatArray]:
    name = type(model).__name__
    if hasattr(model, "predict_proba"):
        if not hasattr(model, "classes_"):
            raise ValueError(f"model: {name} has no classes_; fit it before its losses are computed")
        return partial(_classified, model)
    if hasattr(model, "classes_") or _is("classifier", model):
        raise ValueError(
            f"model: {name} has no predict_proba, so its records have no loss; refit it within "
            "sklearn.calibration.CalibratedClassifierCV, or give a function from data to one loss per record"
        )
    if not _is("regressor", model):
        raise ValueError(
            f"model: {name} says neither that it is a classifier nor a regressor; give a function from data "
            "to one loss per record, such as lambda data: (model.predict(data[0]) - data[1]) ** 2"
        )
    return partial(_regressed, model)


def _is(kind: str, model: Any) -> bool:
    """What an estimator says it is; scikit-learn is asked only where the model brought it."""
    if hasattr(model, "__sklearn_tags__"):
        return bool(getattr(sys.modules["sklearn.base"], f"is_{kind}")(model))
    return getattr(model, "_estimator_type", None) == kind


def _classified(model: Any, x: Any, y: np.ndarray) -> FloatArray:
    one_per_class = "for several outputs give a function from data to one loss per record"
    if np.ndim(model.classes_[0]) or y.ndim != 1:
        raise ValueError(
            f"data: expected one label per record, got labels of shape {y.shape}; {one_per_class}"
        )
    classes = np.asarray(model.classes_).tolist()
    probabilities = np.asarray(model.predict_proba(x))
    if probabilities.shape != (len(y), len(classes)):
        raise ValueError(
            f"model: expected probabilities of shape ({len(y)}, {len(classes)}), got {probabilities.shape}; "
            f"{one_per_class}"
        )
    chosen = probabilities[np.arange(len(y)), _places(y, classes)].astype(np.float64)
    if ((chosen < 0) | (chosen > 1 + _SURE)).any():
        raise ValueError(
            f"model: predict_proba gives {chosen.min():g} to {chosen.max():g}; expected probabilities in "
            "[0, 1]; give a function from data to one loss per record"
        )
    return as_losses(0.0 - np.log(np.maximum(chosen, _SMALLEST)), len(y), "model")


def _places(y: np.ndarray, classes: list[Any]) -> np.ndarray:
    """Place of each label among the classes; "1" is not 1."""
    place = {label: at for at, label in enumerate(classes)}
    places = np.array([place.get(label, -1) for label in y.tolist()], dtype=np.int64)
    if (places < 0).any():
        first = int((places < 0).argmax())
        shown = f"{', '.join(map(repr, classes[:5]))}{', ...' if len(classes) > 5 else ''}"
        raise ValueError(
            f"data: label {y.tolist()[first]!r} at index {first} is none of the classes that the model was "
            f"fitted on ({shown}); leave such records out, or write the labels as in training"
        )
    return places


def _regressed(model: Any, x: Any, y: np.ndarray) -> FloatArray:
    predicted = np.asarray(model.predict(x))
    if predicted.shape != y.shape or not y.ndim:
        raise ValueError(
            f"data: expected targets of the same shape as the predictions, {predicted.shape}, got {y.shape}"
        )
    if y.dtype.kind not in "biuf":
        raise ValueError(f"data: expected numbers as targets of a regressor, got values of type {y.dtype}")
    squared = (predicted.astype(np.float64) - y.astype(np.float64)) ** 2
    return as_losses(squared.reshape(len(y), -1).mean(axis=1), len(y), "model")
