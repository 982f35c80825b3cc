"""Losses of torch modules, which are put back as they were, and of texts; no loss is guessed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import length_hint
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler

from paperlib.attacks.language import score_texts
from paperlib.attacks.language.windows import check_texts, text_tokens
from paperlib.audits.model_losses import as_losses, by_rows, gathered, pair_of, row_count, rows
from paperlib.core import FloatArray
from paperlib.models.devices import default_device, evaluating
from paperlib.models.losses import cross_entropy

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


def network_losses(
    model: torch.nn.Module,
    data: Any,
    *,
    loss: Callable[[Any, Any], Any] | None,
    batch_size: int | None,
    device: Any,
    progress: bool | None,
) -> FloatArray:
    """Losses of a module's outputs for every record, by ``loss`` or else by `LossRule`."""
    weights = (one.dtype for one in model.parameters() if one.is_floating_point())
    batches, total = batches_of(data, batch_size, next(weights, torch.get_default_dtype()))
    rule = LossRule()

    def once(batch: Any) -> FloatArray:
        inputs, targets = _divided(batch)
        outputs = _outputs(model, moved(inputs, place))
        if loss is None:
            return as_losses(rule.losses(outputs, targets), row_count(targets), "model")
        return as_losses(loss(outputs, moved(targets, place)), row_count(targets), "loss")

    steady: list[bool] = []

    def of_batch(batch: Any) -> FloatArray:
        values = once(batch)
        if not steady and np.isfinite(values).all():  # others are named by their place
            steady.append(np.allclose(once(batch), values, rtol=0.01, atol=0.01 * values.std()))
            if not steady[0] or any(part.training for part in model.modules()):
                raise ValueError(
                    "model: losses change from call to call, as if forward left dropout or batch "
                    "norm in training mode, or changed the batch; if that is meant, give a "
                    "function of the data"
                )
        return values

    with evaluated(model, device) as place:
        values = gathered(of_batch, batches, total=total, progress=progress)
    rule.check_end()
    return values


def _divided(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch."""
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
    if isinstance(inputs, Mapping):
        outputs = model(**inputs)
    else:
        outputs = model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)
    return getattr(outputs, "logits", outputs)


@contextmanager
def evaluated(model: torch.nn.Module, device: Any = None) -> Iterator[torch.device]:
    """Evaluation mode without gradients; gives the device of the inputs, and puts mode and device
    back.
    """
    homes = {one.device for one in chain(model.parameters(), model.buffers())}
    if device is not None and len(homes) > 1:
        names = ", ".join(sorted(map(str, homes)))
        raise ValueError(f"device: the model lies on several devices ({names}); leave device out")
    first = next(chain(model.parameters(), model.buffers()), None)
    place = torch.device("cpu") if first is None or first.device.type == "meta" else first.device
    if device is not None:
        place = torch.empty(0, device=default_device(device)).device  # "cuda" is "cuda:0"
    moves = bool(homes - {place}) and device is not None
    try:
        if moves:
            model.to(place)
        with evaluating(model):
            yield place
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
    shape.
    """

    # Over all batches: outputs that are all probabilities are no logits, and targets that are all
    # 0, 1 or probabilities are classes, not values of a regression.
    def __init__(self) -> None:
        self._rows = 0
        self._all_probabilities = self._all_shares = True
        self._all_classes: bool | None = None

    def losses(self, outputs: Any, targets: Any) -> Tensor:
        """Losses of a batch, float64, shape (n,)."""
        if not isinstance(outputs, Tensor):
            raise ValueError(
                f"model: expected a tensor as output, got {type(outputs).__name__}; {_OWN}"
            )
        targets = as_tensor(targets).detach().cpu()
        outputs = outputs.detach().cpu()
        shapes = tuple(outputs.shape), tuple(targets.shape)
        floating = outputs.is_floating_point(), targets.is_floating_point()
        if floating == (True, False) and outputs.ndim == 2 and outputs.shape[1] > 1:
            if shapes[1] == shapes[0][:1]:
                self._rows += len(outputs)
                self._all_probabilities &= _are_probabilities(outputs)
                self._all_shares &= bool(((outputs >= 0) & (outputs <= 1)).all() and outputs.any())
                if self._rows >= _ENOUGH:
                    self._check_logits()
                return cross_entropy(outputs, targets)
        elif floating == (True, True) and shapes[0] == shapes[1] and targets.ndim:
            classes = bool(((targets == 0) | (targets == 1)).all()) or _are_probabilities(targets)
            self._all_classes = classes and self._all_classes is not False
            return (outputs.double() - targets.double()).square().reshape(len(targets), -1).mean(1)
        given = [
            f"{str(one.dtype).removeprefix('torch.')} {tuple(one.shape)}"
            for one in (outputs, targets)
        ]
        hint = ""
        if outputs.numel() == targets.numel() and not targets.is_floating_point():
            hint = ", such as paperlib.models.binary_margin_loss for one logit per record"
        elif outputs.ndim == 3 and not targets.is_floating_point():
            hint = "; of a causal language model losses((model, tokenizer), texts) takes texts"
        raise ValueError(
            f"data: no loss is certain for outputs {given[0]} and targets {given[1]}; expected (n, "
            "classes) and whole numbers (n,), or floating targets of the outputs' shape; else "
            f"{_OWN}{hint}"
        )

    def check_end(self) -> None:
        """Refuse what all batches together leave in doubt."""
        if self._rows:
            self._check_logits()
        if self._all_classes:
            raise ValueError(
                "data: all floating targets are 0, 1 or probabilities of classes, so a squared "
                f"error may not be meant; {_OWN}, such as paperlib.models.binary_margin_loss for "
                "one logit per record"
            )

    def _check_logits(self) -> None:
        if self._all_probabilities or (self._all_shares and self._rows >= _ENOUGH):
            how = "non-negative and sums to 1" if self._all_probabilities else "between 0 and 1"
            raise ValueError(
                f"model: every output is {how}, so it is probabilities; return the logits before "
                f"softmax or sigmoid, or {_OWN}"
            )


def _are_probabilities(values: Tensor) -> bool:
    """Whether every row is non-negative and sums to 1."""
    if values.ndim != 2 or values.shape[1] < 2:
        return False
    close = _CLOSE.get(values.dtype, _CLOSE_ELSEWHERE)
    sums = values.double().sum(1)
    return bool((values >= 0).all() and ((sums - 1).abs() <= close).all())


def batches_of(
    data: Any, batch_size: int | None, dtype: torch.dtype
) -> tuple[Iterable[Any], int | None]:
    """Batches in the order of the records, their floating inputs of ``dtype``, and their number if
    known.
    """
    has_items = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    # What may only be gone through: no container that could hold records as well.
    is_stream = hasattr(data, "__iter__") and not hasattr(data, "__getitem__")
    if isinstance(data, DataLoader) or (is_stream and not isinstance(data, Dataset)):
        if batch_size is not None:
            raise ValueError("batch_size: the data come in batches already; leave it out")
        if isinstance(data, DataLoader):  # which must give every record once, in its order
            if data.drop_last or getattr(data.batch_sampler, "drop_last", False):
                raise ValueError(
                    "data: the DataLoader drops the last batch, so records would have no loss; "
                    "make it with drop_last=False"
                )
            batches: Any = data.batch_sampler
            sampler = batches.sampler if type(batches) is BatchSampler else batches or data.sampler
            if not isinstance(data.dataset, IterableDataset) and not isinstance(
                sampler, SequentialSampler
            ):
                raise ValueError(
                    f"data: the DataLoader shuffles or chooses records ({type(sampler).__name__}), "
                    "so nothing says whose losses they are; make it with shuffle=False, of a "
                    "Subset for some records"
                )
        return data, length_hint(data) or None  # 0 of a stream
    size = batch_size or _BATCH_SIZE
    if isinstance(data, tuple):
        x, y, count = pair_of(data, _WANTED)
        return _parts(lambda at: (as_tensor(at(x), dtype), as_tensor(at(y))), count, size)
    if isinstance(data, Mapping):
        if "labels" not in data:
            raise ValueError(
                f"data: expected a dictionary with 'labels', got {', '.join(map(str, data))}"
            )
        counts = {str(name): row_count(column) for name, column in data.items()}
        count = counts["labels"]
        if count is None or set(counts.values()) != {count}:
            raise ValueError(f"data: expected arrays of one length, got lengths {counts}")
        types = {name: None if name == "labels" else dtype for name in data}
        return _parts(
            lambda at: {name: as_tensor(at(data[name]), types[name]) for name in data}, count, size
        )
    if isinstance(data, Dataset) or (
        has_items and not isinstance(data, list | str) and not hasattr(data, "shape")
    ):
        loader = DataLoader(data, batch_size=size)
        return loader, length_hint(loader) or None
    hint = "; a list could hold records or batches: give iter(list) if it holds batches"
    raise ValueError(
        f"data: expected {_WANTED}, got "
        f"{type(data).__name__}{hint if isinstance(data, list) else ''}"
    )


def _parts(
    batch: Callable[[Callable[[Any], Any]], Any], count: int, size: int
) -> tuple[Iterator[Any], int]:
    """Batches one after the other; ``batch`` is told how to cut an array, and their number."""
    starts = range(0, count, size)
    cuts = (partial(rows, start=start, end=start + size) for start in starts)
    return map(batch, cuts), len(starts)


def as_tensor(values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor as it is; other arrays with floating-point numbers of type ``dtype``."""
    if isinstance(values, torch.Tensor):
        return values
    array = np.array(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"data: expected numbers, got values of type {array.dtype}")
    tensor = torch.from_numpy(array)
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def text_losses(
    model: Any,
    data: Any,
    *,
    tokenizer: Any,
    batch_size: int | None,
    device: Any,
    progress: bool | None,
) -> FloatArray:
    """Mean over the tokens of each text of minus log p, nats."""
    config = getattr(model, "config", None)
    generates = getattr(model, "can_generate", lambda: True)()
    if (
        not hasattr(model, "parameters")
        or not generates
        or getattr(config, "is_encoder_decoder", False)
    ):
        raise ValueError(
            "model: expected a causal language model with a tokenizer, got "
            f"{type(model).__name__}; give a classifier alone, as a torch module, with batches "
            "that its tokenizer made and 'labels'"
        )
    texts = check_texts("data", data)
    size = batch_size or _TEXTS

    def of_part(start: int, end: int) -> FloatArray:
        part = texts[start:end]
        for at, tokens in enumerate(text_tokens(tokenizer, part)):
            if len(tokens) < 2:
                raise ValueError(
                    f"data: text {part[at][:40]!r} at index {start + at} has {len(tokens)} "
                    "token(s), and a loss needs two; leave it out"
                )
        try:
            frame = score_texts(model, tokenizer, part, attacks=["loss"], batch_size=size)
        except ValueError as error:
            after = (
                f" (texts of this message are counted from index {start} of data)" if start else ""
            )
            raise ValueError(f"{error}{after}") from error
        return as_losses(-frame["loss"].to_numpy(), len(part), "model")

    with evaluated(model, device):
        return by_rows(of_part, len(texts), size * _TOGETHER, progress)
