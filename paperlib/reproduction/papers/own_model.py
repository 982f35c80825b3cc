"""Demonstrations of audits of one's own model and data: a network that leaks, and a table with its
target.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import nn

from paperlib.audits.panoramia.audit import AuditData
from paperlib.audits.panoramia.pools import Model, Trainer
from paperlib.audits.panoramia.table import bring_table
from paperlib.audits.panoramia.table_models import Learning, RowEncoder, table_losses, train
from paperlib.core import MembershipScores
from paperlib.core.checks import check_at_least, check_in
from paperlib.generators.tabular import TableGenerator
from paperlib.models import margin_loss
from paperlib.report import used_data
from paperlib.reproduction.data.tables.labelled import load_table


@dataclass(frozen=True, kw_only=True)
class OwnModelConfig:
    """Settings of the records and the training."""

    examples: int = 600  # audited records, each trained on or not by its own fair coin; 20 to 1797
    epochs: int = 300  # passes over the members, 1 or more
    width: int = 256  # hidden units, 1 or more
    noisy_labels: float = 0.2  # share of the records whose label is drawn anew, in [0, 1]
    seed: int = 0  # of the choice of records, the coins, the labels and the training, 0 or more

    def __post_init__(self) -> None:
        """Refuse (ValueError) numbers out of range."""
        if not 20 <= self.examples <= 1797:
            raise ValueError(f"examples: expected 20 to 1797 (all digits), got {self.examples}")
        check_in("[0, 1]", "noisy_labels", self.noisy_labels)
        check_at_least(1, epochs=self.epochs, width=self.width)


class AuditedDigits(NamedTuple):
    """The audited records."""

    pixels: np.ndarray  # in [0, 1], shape (examples, 64)
    labels: np.ndarray  # of which a share was drawn anew, shape (examples,)
    member: np.ndarray  # whether a fair coin chose it for training, shape (examples,)


def audited_digits(config: OwnModelConfig) -> AuditedDigits:
    """Handwritten digits drawn at random, with a share of wrong labels and a fair coin each."""
    loaded: Any = load_digits(return_X_y=True)
    images, labels = loaded
    used_data("handwritten digits (scikit-learn)", np.column_stack([images, labels]))
    rng = np.random.default_rng(config.seed)
    rows = rng.permutation(len(labels))[: config.examples]
    spoiled = rng.random(config.examples) < config.noisy_labels
    drawn = rng.integers(0, 10, config.examples)
    member = rng.integers(0, 2, config.examples).astype(bool)
    pixels = (images[rows] / 16).astype(np.float32)
    return AuditedDigits(pixels, np.where(spoiled, drawn, labels[rows]), member)


def train_and_score(
    config: OwnModelConfig, checkpoints: tuple[int, ...] = ()
) -> dict[int, MembershipScores]:
    """Train a network on the members, and take every record's margin loss, nats, after the epochs
    ``checkpoints`` and at the end.

    Returns the scores by epoch; checkpoints after the last epoch are left out.
    """
    digits = audited_digits(config)
    pixels = torch.from_numpy(digits.pixels)
    labels = torch.from_numpy(digits.labels)
    members = torch.from_numpy(np.flatnonzero(digits.member))
    scored_after = {*checkpoints, config.epochs}
    by_epoch: dict[int, MembershipScores] = {}
    with torch.random.fork_rng(devices=[]), _one_thread():
        torch.manual_seed(config.seed)
        network = nn.Sequential(nn.Linear(64, config.width), nn.ReLU(), nn.Linear(config.width, 10))
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
        for epoch in range(1, config.epochs + 1):
            for batch in members[torch.randperm(len(members))].split(64):
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(pixels[batch]), labels[batch]).backward()
                optimizer.step()
            if epoch in scored_after:
                with torch.no_grad():
                    record_losses = margin_loss(network(pixels), labels).numpy()
                by_epoch[epoch] = MembershipScores.from_labels(
                    record_losses, digits.member, higher_means_member=False
                )
    return by_epoch


@contextmanager
def _one_thread() -> Iterator[None]:
    """The same sums in the same order everywhere; for so small a network also the fastest way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def demonstration(
    *, epochs: int = 100, generator: TableGenerator | None = None, seed: int = 0
) -> tuple[AuditData, Model, Trainer]:
    """Members of the RAND table, a target trained on them, and its training, as `audit_model` takes
    them.

    Args:
        epochs: Of the target.
        generator: Of rows that stand for non-members; None takes that of `bring_table`.
        seed: Of the split and the training.
    """
    table = load_table("randhie", "visits")
    used_data("randhie (statsmodels)", table.rows.to_csv(index=False).encode())
    cut = round(0.9 * len(table.rows))
    order = table.rows.sample(frac=1, random_state=seed).reset_index(drop=True)
    members = order[:cut].reset_index(drop=True)
    others = order[cut:].reset_index(drop=True)
    encoder = RowEncoder.fit(others, table.label, table.classes)
    number_of = {tuple(row): number for number, row in enumerate(members.itertuples(index=False))}

    @cache  # the audit asks for some models more than once
    def trained(numbers: tuple[int, ...], seed: int) -> Model:
        """A model trained on the members of these numbers, as a function from rows to losses."""
        config = Learning().plain(encoder, epochs, seed)
        return partial(table_losses, encoder, train(encoder, members.iloc[list(numbers)], [config]))

    def train_again(rows: pd.DataFrame, seed: int) -> Model:
        """A model trained on these rows, each of which is a member."""
        numbers = [number_of[tuple(row)] for row in rows.itertuples(index=False)]
        return trained(tuple(numbers), seed)

    audited = bring_table(members, label=table.label, generator=generator, epochs=epochs, seed=seed)
    return audited, train_again(members, seed), train_again
