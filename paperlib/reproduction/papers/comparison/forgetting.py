"""What five ways to forget leave in a small classifier and in a small GPT, and what they cost."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from paperlib.bounds.forgetting import audit_forgetting
from paperlib.core import MembershipScores
from paperlib.core.checks import check_at_least
from paperlib.core.coins import toss_pairs
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.reproduction.papers.comparison.classifiers import DigitsConfig, drawn_digits
from paperlib.reproduction.papers.natural_identifiers.planted import source_words

CLASSIFIER, GPT = "classifier", "small GPT"
_BATCH = 64  # records of a step
_VOCABULARY = 1024  # tokens of the tokenizer
_LENGTH = 32  # tokens of a text
_RATE = {CLASSIFIER: 1e-3, GPT: 3e-3}  # learning rate of training, by Adam
_SLOWER = 10  # ascent has no minimum: its learning rate is that of training divided by this


@dataclass(frozen=True, kw_only=True)
class ForgettingConfig:
    """Records and trainings of the comparison."""

    pairs: int = 300  #: pairs of a forgotten record and one never seen, 8 or more
    kept: int = 500  #: records that are trained on and stay
    outside: int = 200  #: never trained on, outside the pairs: they say when ascent stops
    test: int = 400  #: records of the accuracy
    noisy_labels: float = 0.2  #: share of the digits whose label is drawn anew
    epochs: int = 60  #: passes of the training
    forget_epochs: int = 5  #: passes of the methods that change a trained model
    width: int = 128  #: hidden units of the classifier
    seed: int = 0  #: of records, coins and trainings

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range."""
        check_at_least(8, pairs=self.pairs)
        check_at_least(1, kept=self.kept, outside=self.outside, test=self.test)
        check_at_least(1, epochs=self.epochs, forget_epochs=self.forget_epochs)

    @property
    def records(self) -> int:
        """Number of all records."""
        return 2 * self.pairs + self.kept + self.outside + self.test


@dataclass(frozen=True)
class LabelledRecords:
    """Inputs and labels, tensors whose first axis counts records."""

    x: Tensor
    y: Tensor

    def at(self, rows: Any) -> "LabelledRecords":
        """Those with these numbers."""
        return LabelledRecords(self.x[rows], self.y[rows])

    def and_also(self, others: "LabelledRecords") -> "LabelledRecords":
        """These and others, in this order."""
        return LabelledRecords(torch.cat([self.x, others.x]), torch.cat([self.y, others.y]))


@dataclass(frozen=True)
class Task:
    """What a model is trained on, and what it is asked to forget; record i of ``forgotten`` and of
    ``unseen`` are a pair.
    """

    name: str
    kept: LabelledRecords
    forgotten: LabelledRecords
    unseen: LabelledRecords
    outside: LabelledRecords
    test: LabelledRecords
    classes: int
    new_model: Callable[[int], nn.Module]  # an untrained model, from a seed
    config: ForgettingConfig


class _Logits(nn.Module):
    """A language model that answers with its logits alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token at each place, shape (n, tokens, vocabulary)."""
        return self.model(input_ids=tokens).logits


def digits_task(config: ForgettingConfig) -> Task:
    """Handwritten digits, some with random labels; the records of a pair have the same label."""
    drawn = drawn_digits(DigitsConfig(noisy_labels=config.noisy_labels, seed=config.seed))
    everything = LabelledRecords(torch.tensor(drawn.pixels), torch.tensor(drawn.labels).long())
    shape = (64, config.width, 10)

    def network(seed: int) -> nn.Module:
        """One hidden layer, its weights drawn with the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            hidden, out = nn.Linear(*shape[:2]), nn.Linear(*shape[1:])
        return nn.Sequential(hidden, nn.ReLU(), out)

    return _task(CLASSIFIER, everything, drawn.labels, 10, network, config)


def gpt_task(config: ForgettingConfig) -> Task:
    """Pieces of the Python documentation, each record the tokens of one piece."""
    words = source_words()
    text = " ".join(words)
    documents = [" ".join(words[start : start + 50]) for start in range(0, len(words), 50)]
    tokenizer: Any = train_tokenizer(documents[::10], _VOCABULARY, context=_LENGTH)
    wanted = config.records * (_LENGTH + 1)
    # A token has two letters or more on average, which leaves room for what is cut off.
    tokens = torch.tensor(tokenizer(text[: 12 * wanted], verbose=False)["input_ids"])
    if tokens.numel() < wanted:
        raise ValueError(f"records: {config.records:,} texts are more than the documentation has")
    pieces = tokens[:wanted].reshape(-1, _LENGTH + 1)
    order = np.random.default_rng([config.seed, 1]).permutation(len(pieces))
    pieces = pieces[torch.from_numpy(order)]

    def network(seed: int) -> nn.Module:
        """A GPT of one layer."""
        shape = LanguageModelConfig(width=64, layers=1, context=_LENGTH, seed=seed)
        return _Logits(new_language_model(shape, _VOCABULARY))

    everything = LabelledRecords(pieces[:, :-1], pieces[:, 1:])
    return _task(GPT, everything, None, _VOCABULARY, network, config)


def _task(
    name: str,
    everything: LabelledRecords,
    alike: Any,
    classes: int,
    new_model: Callable[[int], nn.Module],
    config: ForgettingConfig,
) -> Task:
    """Toss the coins of the pairs, and divide the other records.

    ``alike``, shape (n,), is equal within a pair; None pairs any two records.
    """
    size = len(everything.x)
    if size < config.records:
        raise ValueError(f"records: {config.records:,} were asked for, and there are {size:,}")
    coins = toss_pairs(size, alike=alike, seed=config.seed, fraction=2 * config.pairs / size)
    # The ids of a pair stand one after the other.
    pairs = np.array(coins.ids, dtype=np.int64).reshape(-1, 2)
    has_heads = coins.included.reshape(-1, 2)
    forgotten, unseen = pairs[has_heads], pairs[~has_heads]
    rest = np.setdiff1d(np.arange(size), pairs)
    ends = np.cumsum([config.kept, config.outside, config.test])
    kept, outside, test = (
        everything.at(torch.from_numpy(rows)) for rows in np.split(rest, ends)[:3]
    )
    return Task(
        name=name,
        kept=kept,
        forgotten=everything.at(torch.from_numpy(forgotten)),
        unseen=everything.at(torch.from_numpy(unseen)),
        outside=outside,
        test=test,
        classes=classes,
        new_model=new_model,
        config=config,
    )


def _losses(model: nn.Module, records: LabelledRecords) -> Tensor:
    """Cross-entropy of each record in nats, over its tokens if it has several, shape (n,)."""
    logits = model(records.x)
    losses = cross_entropy(logits.movedim(-1, 1), records.y, reduction="none")
    return losses.reshape(len(losses), -1).mean(1)


@torch.no_grad()
def _loss_values(model: nn.Module, records: LabelledRecords) -> np.ndarray:
    """The same without a gradient."""
    return _losses(model, records).double().numpy()


@torch.no_grad()
def accuracy(model: nn.Module, records: LabelledRecords) -> float:
    """Share of the labels, or of the next tokens, that the model puts first."""
    return float((model(records.x).argmax(-1) == records.y).double().mean())


def _trained(
    model: nn.Module,
    records: LabelledRecords,
    *,
    epochs: int,
    rate: float,
    seed: int,
    sign: float = 1.0,
    stops: Callable[[nn.Module], bool] | None = None,
) -> nn.Module:
    """The model after so many passes by Adam, which climbs the loss where ``sign`` is -1, until
    ``stops`` says so before a step. The model itself is changed.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.randperm(len(records.x), generator=generator).split(_BATCH):
            if stops is not None and stops(model):
                return model
            optimizer.zero_grad()
            (sign * _losses(model, records.at(rows)).mean()).backward()
            optimizer.step()
    return model


def _retrained(task: Task, seed: int) -> nn.Module:
    """A new model, trained on the records that stay."""
    return _trained(
        task.new_model(seed),
        task.kept,
        epochs=task.config.epochs,
        rate=_RATE[task.name],
        seed=seed,
    )


def _nothing(task: Task, model: nn.Module) -> nn.Module:
    """The trained model as it is, with which the others are compared."""
    return model


def _trained_again(task: Task, model: nn.Module) -> nn.Module:
    """Forget everything: the trained model is not used."""
    return _retrained(task, task.config.seed + 1)


def _fine_tuned(task: Task, model: nn.Module) -> nn.Module:
    """Further passes over the records that stay."""
    return _changed(task, model, task.kept)


def _ascent(task: Task, model: nn.Module) -> nn.Module:
    """Raise the losses of the forgotten records, for as many passes as other methods take."""
    rate = _RATE[task.name] / _SLOWER
    return _changed(task, model, task.forgotten, sign=-1.0, rate=rate)


def _stopped_ascent(task: Task, model: nn.Module) -> nn.Module:
    """The same until their mean loss is that of records outside the pairs."""
    goal = _loss_values(model, task.outside).mean()
    return _changed(
        task,
        model,
        task.forgotten,
        sign=-1.0,
        rate=_RATE[task.name] / _SLOWER,
        stops=lambda now: bool(_loss_values(now, task.forgotten).mean() >= goal),
    )


def _random_labels(task: Task, model: nn.Module) -> nn.Module:
    """Further passes, in which the forgotten records have labels drawn at random."""
    generator = torch.Generator().manual_seed(task.config.seed)
    labels = torch.randint(task.classes, task.forgotten.y.shape, generator=generator)
    return _changed(task, model, task.kept.and_also(replace(task.forgotten, y=labels)))


def _changed(task: Task, model: nn.Module, records: LabelledRecords, **options: Any) -> nn.Module:
    """The model after the passes of a method on these records."""
    settings = {"rate": _RATE[task.name], "seed": task.config.seed + 2, **options}
    return _trained(model, records, epochs=task.config.forget_epochs, **settings)


METHODS: dict[str, Callable[[Task, nn.Module], nn.Module]] = {
    "nothing done": _nothing,
    "trained again without them": _trained_again,
    "fine-tuned on the rest": _fine_tuned,
    "ascent": _ascent,
    "ascent, stopped": _stopped_ascent,
    "random labels": _random_labels,
}
"""Ways to forget, and the model before; each may change the model that it is given."""


def compare_forgetting(task: Task, *, confidence: float = 0.95) -> pd.DataFrame:
    """Train one model, forget by every method, and audit each; a bound holds by itself.

    Returns:
        A row for each method: the lower bound epsilon between forgotten and never seen, nats, its
            two directions known and forced, which hold together, auc, the accuracy on other records
            before and after, and the pairs that the audit detects (NaN if it detects none).
    """
    everything = task.kept.and_also(task.forgotten)
    trained = _trained(
        task.new_model(task.config.seed),
        everything,
        epochs=task.config.epochs,
        rate=_RATE[task.name],
        seed=task.config.seed,
    )
    return pd.DataFrame(_rows(task, trained, confidence))


def _rows(task: Task, trained: nn.Module, confidence: float) -> Iterator[dict[str, Any]]:
    """The rows of `compare_forgetting`."""
    before = accuracy(trained, task.test)
    detected: float | None = None  # the limit depends on the number of pairs alone
    for name, forget in METHODS.items():
        model = forget(task, copy.deepcopy(trained))
        after = accuracy(model, task.test)
        result = audit_forgetting(
            _scores(task, model), confidence=confidence, utility=(before, after)
        )
        if detected is None:
            limit = result.detection
            fewest = None if limit is None else limit.records
            detected = np.nan if fewest is None else fewest
        yield {
            "model": task.name,
            "method": name,
            "epsilon": result.epsilon,
            "known": result.epsilon_known,
            "forced": result.epsilon_forced,
            "auc": result.auc,
            "detected": detected,
            "accuracy_before": before,
            "accuracy": after,
        }


def _scores(task: Task, model: nn.Module) -> MembershipScores:
    """The losses of the two records of each pair."""
    return MembershipScores(
        _loss_values(model, task.forgotten),
        _loss_values(model, task.unseen),
        higher_means_member=False,
    )


def retrained_bounds(
    config: ForgettingConfig, *, models: int, confidence: float = 0.95
) -> pd.DataFrame:
    """Bounds on classifiers that were trained again without the forgotten records, each with its
    own records, coins and seed: the true epsilon is 0, so that each bound above it is wrong.

    Returns:
        A row for each model: its seed, and the bound epsilon, nats.
    """
    rows: list[dict[str, float]] = []
    for seed in range(config.seed, config.seed + models):
        task = digits_task(replace(config, seed=seed))
        result = audit_forgetting(_scores(task, _retrained(task, seed)), confidence=confidence)
        rows.append({"seed": seed, "epsilon": result.epsilon})
    return pd.DataFrame(rows)
