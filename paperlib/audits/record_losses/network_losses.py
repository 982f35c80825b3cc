"""Losses of torch modules, which are put back as they were, and of texts; no loss is guessed."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import length_hint
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler

from paperlib.attacks.language import score_texts
from paperlib.attacks.language.windows import check_texts, text_tokens
from paperlib.audits.record_losses.rows import (
    as_losses,
    by_rows,
    gathered,
    pair_of,
    row_count,
    rows,
)
from paperlib.core import FloatArray
from paperlib.models.devices import default_device, evaluating
from paperlib.models.losses import cross_entropy
from paperlib.words.audits.blind import GUESSED

_ENOUGH = 32  # rows that all look like probabilities by no chance
_CLOSE = {torch.float64: 1e-6, torch.float32: 1e-4}
_CLOSE_ELSEWHERE = 2e-2  # sums of probabilities in 16 bits
_OWN = "pass loss=, a function from outputs and targets to one loss per record"
_BATCH_SIZE = 256
_WANTED = (
    "a DataLoader, a Dataset, inputs and targets as (x, y), a dictionary with 'labels', or an "
    "iterator of batches"
)
_TEXTS = 32  # in a batch
_TOGETHER = 16  # batches of texts that are sorted by length together
_LEARNED = 0.03  # share below the loss of a guess: of six untrained models one was 1 % below


def network_losses(
    model: torch.nn.Module,
    data: Any,
    *,
    loss: Callable[[Any, Any], Any] | None,
    batch_size: int | None,
    device: Any,
    progress: bool | None,
) -> FloatArray:
    """Losses of a module's outputs for every record, float64, shape (n,).

    Args:
        model: Put into evaluation mode, and back as it was.
        data: As for `losses`.
        loss: From outputs and targets of a batch to losses, shape (n,); None for `LossRule`.
        batch_size: Records of a batch, None for 256, and for data that come in batches.
        device: Where the module is computed; None for where it lies.
        progress: Whether a bar shows the progress; None shows it on a terminal.

    Raises:
        ValueError: Data or outputs whose losses are not certain, losses that are not finite, or a
            model that gives others when it is asked again.
    """
    floating = (weight.dtype for weight in model.parameters() if weight.is_floating_point())
    batches, total = batches_of(data, batch_size, next(floating, torch.get_default_dtype()))
    rule = LossRule()

    def losses_of(batch: Any) -> FloatArray:
        """Losses of a batch, shape (n,), by the user's loss or by the rule for outputs of such a
        shape.
        """
        inputs, targets = _inputs_and_targets(batch)
        outputs = _outputs(model, moved(inputs, home))
        if loss is None:
            return as_losses(rule.losses(outputs, targets), row_count(targets), "model")
        return as_losses(loss(outputs, moved(targets, home)), row_count(targets), "loss")

    checked = False

    def steady_losses_of(batch: Any) -> FloatArray:
        """Losses of a batch, shape (n,); those of the first batch that are all finite are computed
        twice, to refuse (ValueError) a model that answers at random.
        """
        nonlocal checked
        losses = losses_of(batch)
        # Losses that are not finite are refused later, with their position.
        if not checked and np.isfinite(losses).all():
            _check_steady(model, losses, losses_of(batch))
            checked = True
        return losses

    with evaluated(model, device) as home:
        losses = gathered(steady_losses_of, batches, total=total, progress=progress)
    rule.check_end()
    return losses


def _check_steady(model: torch.nn.Module, losses: FloatArray, again: FloatArray) -> None:
    """Refuse (ValueError) a model that gives other losses, shape (n,), when the same batch is
    computed ``again``, or that put one of its modules into training mode.
    """
    # Sums on a GPU may come in any order: a hundredth of a loss, or of their spread, is rounding.
    is_steady = np.allclose(again, losses, rtol=0.01, atol=0.01 * losses.std())
    if not is_steady or any(module.training for module in model.modules()):
        raise ValueError(
            "model: losses change from call to call, as if forward left dropout or batch "
            "norm in training mode, or changed the batch; if that is meant, give a "
            "function of the data"
        )


def _inputs_and_targets(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch, a pair of them or a dictionary with targets as "labels"; a
    ValueError for any other batch.
    """
    if isinstance(batch, Mapping):
        if "labels" not in batch:
            raise ValueError(
                f"data: expected batches with 'labels', got {', '.join(map(str, batch))}"
            )
        return {name: value for name, value in batch.items() if name != "labels"}, batch["labels"]
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[0], batch[1]
    size = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
    raise ValueError(
        "data: expected batches (inputs, targets) or dictionaries with 'labels', got "
        f"{type(batch).__name__}{size}"
    )


def _outputs(model: torch.nn.Module, inputs: Any) -> Any:
    """What the module returns for the inputs of a batch, or the ``.logits`` of that, as of models
    of transformers; a dictionary gives arguments by name, a tuple by position.
    """
    if isinstance(inputs, Mapping):
        outputs = model(**inputs)
    elif isinstance(inputs, tuple | list):
        outputs = model(*inputs)
    else:
        outputs = model(inputs)
    return getattr(outputs, "logits", outputs)


@contextmanager
def evaluated(model: torch.nn.Module, device: Any = None) -> Iterator[torch.device]:
    """Put a module into evaluation mode without gradients, and on ``device`` unless that is None;
    gives the device where its inputs must lie, and puts mode and device back at the end.

    Raises:
        ValueError: A device for a model whose parameters lie on several.
    """
    tensors = [*model.parameters(), *model.buffers()]
    homes = {tensor.device for tensor in tensors}
    if device is not None and len(homes) > 1:
        names = ", ".join(sorted(map(str, homes)))
        raise ValueError(f"device: the model lies on several devices ({names}); leave device out")
    if device is not None:
        destination = torch.empty(0, device=default_device(device)).device  # "cuda" is "cuda:0"
    elif not tensors or tensors[0].device.type == "meta":
        destination = torch.device("cpu")
    else:
        destination = tensors[0].device
    moves = device is not None and bool(homes - {destination})
    try:
        if moves:
            model.to(destination)
        with evaluating(model):
            yield destination
    finally:
        if moves:
            model.to(next(iter(homes)))


def moved(values: Any, device: torch.device) -> Any:
    """Tensors on a device, also within tuples, lists and dictionaries; everything else as it is."""
    if isinstance(values, torch.Tensor):
        return values.to(device)
    if isinstance(values, Mapping):
        return {name: moved(value, device) for name, value in values.items()}
    if isinstance(values, tuple | list):
        return tuple(moved(value, device) for value in values)
    return values


class LossRule:
    """Cross entropy for logits and whole numbers, squared error for floating targets of the same
    shape; it refuses outputs and targets for which these may not be meant.

    All batches are judged together, since a few rows may look so by chance: outputs that are all
    probabilities are no logits, and floating targets that are all 0, 1 or probabilities are
    classes, not values of a regression.
    """

    def __init__(self) -> None:
        """Start before the first batch, of which nothing is in doubt."""
        self._rows = 0  # with cross entropy, in the batches so far
        # Whether each row of their outputs is non-negative and sums to 1, as after softmax.
        self._are_softmax = True
        # Whether each of their outputs lies in [0, 1], as after a sigmoid for each class.
        self._are_sigmoid = True
        # Whether all floating targets so far may be classes; None before the first of them.
        self._all_classes: bool | None = None

    def losses(self, outputs: Any, targets: Any) -> Tensor:
        """Losses of a batch, float64, shape (n,).

        Raises:
            ValueError: Outputs that are no tensor, or whose loss is not certain.
        """
        if not isinstance(outputs, Tensor):
            raise ValueError(
                f"model: expected a tensor as output, got {type(outputs).__name__}; {_OWN}"
            )
        targets = tensor_of_numbers(targets).detach().cpu()
        outputs = outputs.detach().cpu()
        if _fit_cross_entropy(outputs, targets):
            return self._cross_entropy(outputs, targets)
        if _fit_squared_error(outputs, targets):
            return self._squared_error(outputs, targets)
        raise ValueError(_no_certain_loss(outputs, targets))

    def _cross_entropy(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy of each record, nats, shape (n,), of logits, shape (n, classes).

        Raises:
            ValueError: All outputs of the batches so far are probabilities. This is asked once 32
                rows were seen, since a few rows of logits may look so by chance.
        """
        self._rows += len(outputs)
        self._are_softmax &= _are_probabilities(outputs)
        self._are_sigmoid &= _are_shares(outputs)
        if self._rows >= _ENOUGH:
            self._check_logits()
        return cross_entropy(outputs, targets)

    def _squared_error(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean squared error of each record over all its outputs, shape (n,); outputs and targets
        have one shape, (n, ...). Whether the targets may be classes is noted for `check_end`.
        """
        are_classes = bool(((targets == 0) | (targets == 1)).all()) or _are_probabilities(targets)
        self._all_classes = are_classes and self._all_classes is not False
        return (outputs.double() - targets.double()).square().reshape(len(targets), -1).mean(1)

    def check_end(self) -> None:
        """Refuse (ValueError), after the last batch, outputs that were all probabilities, of
        however few rows, and floating targets that were all 0, 1 or probabilities.
        """
        if self._rows:
            self._check_logits()
        if self._all_classes:
            raise ValueError(
                "data: all floating targets are 0, 1 or probabilities of classes, so a squared "
                f"error may not be meant; {_OWN}, such as paperlib.models.binary_margin_loss for "
                "one logit per record"
            )

    def _check_logits(self) -> None:
        """Refuse (ValueError) outputs of which all rows so far sum to 1, or which all lie in [0, 1]
        if 32 rows or more do.
        """
        # A few logits lie in [0, 1] by chance; that they also sum to 1 is no chance.
        if self._are_softmax or (self._are_sigmoid and self._rows >= _ENOUGH):
            how = "non-negative and sums to 1" if self._are_softmax else "between 0 and 1"
            raise ValueError(
                f"model: every output is {how}, so it is probabilities; return the logits before "
                f"softmax or sigmoid, or {_OWN}"
            )


def _fit_cross_entropy(outputs: Tensor, targets: Tensor) -> bool:
    """Whether these are floating outputs of several classes, and one whole number per record."""
    if not outputs.is_floating_point() or targets.is_floating_point():
        return False
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        return False
    return targets.shape == outputs.shape[:1]


def _fit_squared_error(outputs: Tensor, targets: Tensor) -> bool:
    """Whether these are floating outputs and targets of one shape, (n, ...)."""
    are_floating = outputs.is_floating_point() and targets.is_floating_point()
    return are_floating and outputs.shape == targets.shape and targets.ndim > 0


def _no_certain_loss(outputs: Tensor, targets: Tensor) -> str:
    """The error message where no rule fits outputs and targets, with what may have been meant."""
    hint = ""
    if not targets.is_floating_point():
        if outputs.numel() == targets.numel():
            hint = ", such as paperlib.models.binary_margin_loss for one logit per record"
        elif outputs.ndim == 3:
            hint = "; of a causal language model losses((model, tokenizer), texts) takes texts"
    return (
        f"data: no loss is certain for outputs {_described(outputs)} and targets "
        f"{_described(targets)}; expected (n, classes) and whole numbers (n,), or floating targets "
        f"of the outputs' shape; else {_OWN}{hint}"
    )


def _described(tensor: Tensor) -> str:
    """Type and shape of a tensor, such as "float32 (8, 10)"."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def _are_shares(outputs: Tensor) -> bool:
    """Whether all outputs lie in [0, 1], but not if all are 0, as logits may be before training."""
    return bool(((outputs >= 0) & (outputs <= 1)).all() and outputs.any())


def _are_probabilities(values: Tensor) -> bool:
    """Whether values have shape (n, classes), of two or more, and every row is non-negative and
    sums to 1, up to the rounding of their type.
    """
    if values.ndim != 2 or values.shape[1] < 2:
        return False
    close = _CLOSE.get(values.dtype, _CLOSE_ELSEWHERE)
    sums = values.double().sum(1)
    return bool((values >= 0).all() and ((sums - 1).abs() <= close).all())


def batches_of(
    data: Any, batch_size: int | None, dtype: torch.dtype
) -> tuple[Iterable[Any], int | None]:
    """Batches in the order of the records, and the number of batches, None where it is not known.

    Args:
        data: As for `losses`; what comes in batches already stays as it is.
        batch_size: Records of a batch, None for 256.
        dtype: Type of floating inputs that are cut into batches here, as of the model's weights.

    Raises:
        ValueError: Data of another kind, a batch size for what comes in batches already, or a
            DataLoader that shuffles or drops records.
    """
    if _come_in_batches(data):
        if batch_size is not None:
            raise ValueError("batch_size: the data come in batches already; leave it out")
        if isinstance(data, DataLoader):
            _check_loader(data)
        return data, length_hint(data) or None  # 0 of a stream
    size = batch_size or _BATCH_SIZE
    if isinstance(data, tuple):
        return _pair_batches(data, size, dtype)
    if isinstance(data, Mapping):
        return _column_batches(data, size, dtype)
    if _is_dataset(data):
        loader = DataLoader(data, batch_size=size)
        return loader, length_hint(loader) or None
    hint = ""
    if isinstance(data, list):
        hint = "; a list could hold records or batches: give iter(list) if it holds batches"
    raise ValueError(f"data: expected {_WANTED}, got {type(data).__name__}{hint}")


def _come_in_batches(data: Any) -> bool:
    """Whether the data are batches: a DataLoader, or a stream that can only be gone through."""
    if isinstance(data, DataLoader):
        return True
    # No container, which could hold records as well.
    is_stream = hasattr(data, "__iter__") and not hasattr(data, "__getitem__")
    return is_stream and not isinstance(data, Dataset)


def _is_dataset(data: Any) -> bool:
    """Whether this is a Dataset of torch, or an object with records by number that is no array."""
    if isinstance(data, Dataset):
        return True
    if isinstance(data, list | str) or hasattr(data, "shape"):
        return False
    return hasattr(data, "__getitem__") and hasattr(data, "__len__")


def _check_loader(loader: DataLoader[Any]) -> None:
    """Refuse a DataLoader unless it gives every record once, in the order of its data set."""
    if loader.drop_last or getattr(loader.batch_sampler, "drop_last", False):
        raise ValueError(
            "data: the DataLoader drops the last batch, so records would have no loss; "
            "make it with drop_last=False"
        )
    if isinstance(loader.dataset, IterableDataset):
        return
    batches: Any = loader.batch_sampler
    sampler = batches.sampler if type(batches) is BatchSampler else batches or loader.sampler
    if not isinstance(sampler, SequentialSampler):
        raise ValueError(
            f"data: the DataLoader shuffles or chooses records ({type(sampler).__name__}), "
            "so nothing says whose losses they are; make it with shuffle=False, of a "
            "Subset for some records"
        )


def _pair_batches(
    data: tuple[Any, ...], size: int, dtype: torch.dtype
) -> tuple[Iterator[Any], int]:
    """Batches of ``size`` inputs and targets, floating inputs as ``dtype``, and their number; a
    ValueError for no pair of one length.
    """
    x, y, count = pair_of(data, _WANTED)

    def batch(start: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets from row ``start`` on, shape (B, ...) and (B,)."""
        end = start + size
        return tensor_of_numbers(rows(x, start, end), dtype), tensor_of_numbers(rows(y, start, end))

    starts = range(0, count, size)
    return map(batch, starts), len(starts)


def _column_batches(
    data: Mapping[Any, Any], size: int, dtype: torch.dtype
) -> tuple[Iterator[Any], int]:
    """Batches of ``size`` rows of a dictionary of arrays with "labels", each a dictionary of
    tensors, floating ones but labels as ``dtype``, and their number; a ValueError without labels,
    or for arrays of several lengths.
    """
    if "labels" not in data:
        raise ValueError(
            f"data: expected a dictionary with 'labels', got {', '.join(map(str, data))}"
        )
    counts = {str(name): row_count(column) for name, column in data.items()}
    count = counts["labels"]
    if count is None or set(counts.values()) != {count}:
        raise ValueError(f"data: expected arrays of one length, got lengths {counts}")
    types = {name: None if name == "labels" else dtype for name in data}

    def batch(start: int) -> dict[Any, Tensor]:
        """The columns from row ``start`` on, by name, each of shape (B, ...)."""
        end = start + size
        return {name: tensor_of_numbers(rows(data[name], start, end), types[name]) for name in data}

    starts = range(0, count, size)
    return map(batch, starts), len(starts)


def tensor_of_numbers(values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor as it is; of an array or a list a copy, in which floating-point numbers have the
    type ``dtype``, their own for None.

    Raises:
        ValueError: Values that are no numbers.
    """
    if isinstance(values, torch.Tensor):
        return values
    array = np.array(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"data: expected numbers, got values of type {array.dtype}")
    tensor = torch.from_numpy(array)
    if dtype is not None and tensor.is_floating_point():
        return tensor.to(dtype)
    return tensor


def text_losses(
    model: Any,
    data: Any,
    *,
    tokenizer: Any,
    batch_size: int | None,
    device: Any,
    progress: bool | None,
) -> FloatArray:
    """Mean over the tokens of each text of minus log p, nats per token, shape (n,).

    A UserWarning is given where the median is that of a model that has learned nothing.

    Args:
        model, tokenizer: A causal language model and its tokenizer.
        data: The texts, strings, shape (n,).
        batch_size: Texts of a batch, None for 32.
        device: Where the model computes; None for where it lies.
        progress: Whether a bar shows the progress; None shows it on a terminal.

    Raises:
        ValueError: A model that is no causal language model, or texts of fewer than two tokens.
    """
    if not _is_causal_language_model(model):
        raise ValueError(
            "model: expected a causal language model with a tokenizer, got "
            f"{type(model).__name__}; give a classifier alone, as a torch module, with batches "
            "that its tokenizer made and 'labels'"
        )
    texts = check_texts("data", data)
    size = batch_size or _TEXTS

    def losses_of(start: int, end: int) -> FloatArray:
        """Losses of the texts from ``start`` to before ``end``, nats per token, shape (end -
        start,).
        """
        together = texts[start:end]
        _check_scored(tokenizer, together, start)
        try:
            frame = score_texts(model, tokenizer, together, attacks=["loss"], batch_size=size)
        except ValueError as error:
            note = ""
            if start:
                note = f" (texts of this message are counted from index {start} of data)"
            raise ValueError(f"{error}{note}") from error
        return as_losses(-frame["loss"].to_numpy(), len(together), "model")

    with evaluated(model, device):
        # Texts of several batches are scored at once, so that each batch has texts of like length.
        values = by_rows(losses_of, len(texts), size * _TOGETHER, progress)
        guess = _loss_of_a_guess(model)
    if np.median(values) > guess * (1 - _LEARNED):
        warnings.warn(GUESSED, UserWarning, stacklevel=3)
    return values


def _loss_of_a_guess(model: Any) -> float:
    """The loss where each token of the vocabulary is as likely as any other, nats per token;
    infinite of a model that does not say how many tokens it knows.
    """
    embeddings = getattr(model, "get_input_embeddings", lambda: None)()
    return math.log(getattr(embeddings, "num_embeddings", math.inf))


def _is_causal_language_model(model: Any) -> bool:
    """Whether a model generates text from left to right, as far as it says so."""
    if not hasattr(model, "parameters"):
        return False
    generates = getattr(model, "can_generate", lambda: True)()
    config = getattr(model, "config", None)
    return bool(generates) and not getattr(config, "is_encoder_decoder", False)


def _check_scored(tokenizer: Any, texts: list[str], start: int) -> None:
    """Refuse (ValueError) a text of fewer than two tokens; ``start`` is the index in the data of
    the first of these texts.
    """
    for index, tokens in enumerate(text_tokens(tokenizer, texts)):
        if len(tokens) < 2:
            raise ValueError(
                f"data: text {texts[index][:40]!r} at index {start + index} has {len(tokens)} "
                "token(s), and a loss needs two; leave it out"
            )
