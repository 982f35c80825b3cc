"""A small network on handwritten digits, trained so that it leaks, and its losses for an audit.

Clean digits do not leak. Few records, wrong labels on a fifth of them and many epochs do: the
network has to learn the wrong labels by heart. Members and non-members get wrong labels alike, so
the labels themselves do not tell who was trained on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import nn

from paperlib.bounds import audit_one_run
from paperlib.core import MembershipScores
from paperlib.io import LoadedScores, read_scores
from paperlib.report import used_data


@dataclass(frozen=True, kw_only=True)
class OwnModelConfig:
    """What is trained.

    Attributes:
        examples: Audited records, each trained on or not by its own fair coin; 20 to 1797.
        epochs: Passes over the members.
        width: Hidden units.
        noisy_labels: Share of the records whose label is drawn anew, in [0, 1].
        seed: Of the choice of records, the coins, the labels, and the training.
    """

    examples: int = 600
    epochs: int = 300
    width: int = 256
    noisy_labels: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        if not 20 <= self.examples <= 1797:
            raise ValueError(f"examples: expected 20 to 1797 (all digits), got {self.examples}")
        if not 0 <= self.noisy_labels <= 1:
            raise ValueError(f"noisy_labels: expected a share in [0, 1], got {self.noisy_labels}")
        for name in ("epochs", "width"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected at least 1, got {getattr(self, name)}")


@dataclass(frozen=True)
class AuditedDigits:
    """The audited records: pixels in [0, 1], labels as trained on, and who is a member."""

    pixels: np.ndarray
    labels: np.ndarray
    member: np.ndarray


def audited_digits(config: OwnModelConfig) -> AuditedDigits:
    """Choose the records, toss one fair coin for each, and spoil a share of the labels.

    >>> digits = audited_digits(OwnModelConfig(examples=100))
    >>> digits.pixels.shape, digits.labels.shape, bool(30 < digits.member.sum() < 70)
    ((100, 64), (100,), True)
    """
    loaded: Any = load_digits(return_X_y=True)
    images, labels = loaded
    used_data("handwritten digits (scikit-learn)", np.column_stack([images, labels]))
    rng = np.random.default_rng(config.seed)
    chosen = rng.permutation(len(labels))[: config.examples]
    spoiled = rng.random(config.examples) < config.noisy_labels
    drawn = rng.integers(0, 10, config.examples)
    member = rng.integers(0, 2, config.examples).astype(bool)
    return AuditedDigits(
        pixels=(images[chosen] / 16).astype(np.float32),
        labels=np.where(spoiled, drawn, labels[chosen]),
        member=member,
    )


def train_and_score(config: OwnModelConfig, checkpoints: tuple[int, ...] = ()) -> dict[int, MembershipScores]:
    """Train on the members, and take every record's loss at the checkpoints and at the end.

    Args:
        config: What is trained.
        checkpoints: Numbers of epochs after which the losses are taken too; those above
            ``config.epochs`` are not reached.

    Returns:
        Epochs to the losses of members and non-members (lower means member).
    """
    digits = audited_digits(config)
    pixels = torch.from_numpy(digits.pixels)
    labels = torch.from_numpy(digits.labels)
    members = torch.from_numpy(np.flatnonzero(digits.member))
    wanted = {*checkpoints, config.epochs}
    found: dict[int, MembershipScores] = {}
    with torch.random.fork_rng(devices=[]), _one_thread():
        torch.manual_seed(config.seed)
        network = nn.Sequential(nn.Linear(64, config.width), nn.ReLU(), nn.Linear(config.width, 10))
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
        for epoch in range(1, config.epochs + 1):
            for batch in members[torch.randperm(len(members))].split(64):
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(pixels[batch]), labels[batch]).backward()
                optimizer.step()
            if epoch in wanted:
                losses = margin_losses(network, pixels, labels)
                found[epoch] = MembershipScores(
                    losses[digits.member], losses[~digits.member], higher_means_member=False
                )
    return found


@contextmanager
def _one_thread() -> Iterator[None]:
    """The same sums in the same order everywhere; for so small a network also the fastest way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def margin_losses(network: nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> np.ndarray:
    """Minus the log odds of the given label, from logits; low for records the network is sure of.

    Source:
        Epsilon* (Negoescu et al.), Section 4: ``-(log f_y - log(1 - f_y))``.
    """
    with torch.no_grad():
        logits = network(pixels).double()
    given = logits.gather(1, labels[:, None])[:, 0]
    others = logits.scatter(1, labels[:, None], -torch.inf).logsumexp(dim=1)
    return (others - given).numpy()


def leak_by_epoch(
    scored: dict[int, MembershipScores], *, delta: float = 0.0, confidence: float = 0.95
) -> pd.DataFrame:
    """The leak over training: one row per checkpoint with epochs, auc and epsilon (a lower bound).

    Each bound holds on its own; they are not corrected for looking at several.
    """
    rows = [
        {
            "epochs": epochs,
            "auc": scores.auc(),
            "epsilon": audit_one_run(scores, delta=delta, confidence=confidence).epsilon,
        }
        for epochs, scores in sorted(scored.items())
    ]
    return pd.DataFrame(rows)


def own_scores(path: str, *, kind: str = "") -> LoadedScores:
    """Scores of the reader's own model from a file.

    Args:
        path: CSV, Parquet, NPZ or NPY with a score or loss column and a membership column.
        kind: "scores" (higher means member), "losses" (lower does), or empty to tell by the
            column's name.

    Raises:
        ValueError: The file cannot be audited; the message says why.
    """
    return read_scores(path, kind=kind or None)
