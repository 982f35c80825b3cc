"""Columns of made-up rows in the forms that files of users have."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from paperlib.bounds.one_run.adaptive import Flags
from paperlib.core import FloatArray

Drawn = TypeVar("Drawn")

LOSSES = [
    *("loss", "val_loss", "nll", "cross_entropy"),
    *("per_example_loss", "perplexity", "Loss", "train loss"),
]
SCORES = ["score", "mia_score", "logit", "confidence", "log_prob", "lira_score"]


def chosen(rng: np.random.Generator, choices: Sequence[Drawn]) -> Drawn:
    """One of the choices, each as likely."""
    return choices[int(rng.integers(len(choices)))]


def coins(rng: np.random.Generator, rows: int) -> Flags:
    """Fair coins, shape (rows,), with three of each side at least."""
    while True:
        member = rng.random(rows) < 0.5
        if 3 <= member.sum() <= rows - 3:
            return member


def _mostly_small(rng: np.random.Generator, rows: int) -> FloatArray:
    small = rng.random(rows) < 0.3
    return np.where(small, rng.exponential(0.01, rows), rng.exponential(2, rows))


_LAWS: list[Callable[[np.random.Generator, int], FloatArray]] = [
    lambda rng, rows: rng.gamma(1.5, 1.0, rows),
    lambda rng, rows: np.abs(rng.normal(3, 1, rows)),
    lambda rng, rows: rng.exponential(size=rows),
    lambda rng, rows: np.abs(rng.standard_cauchy(rows)),
    _mostly_small,
    lambda rng, rows: -np.log(np.clip(rng.beta(5, 1, rows), 1e-6, 1)),
    lambda rng, rows: rng.lognormal(0, 2, rows),
    lambda rng, rows: rng.uniform(0, 10, rows),
]

_LEAKS: list[Callable[[np.random.Generator, FloatArray, Flags], FloatArray]] = [
    lambda rng, losses, member: losses,
    lambda rng, losses, member: losses,
    # Of a standard deviation, but of one that no outlier makes large; no loss is below 0.
    lambda rng, losses, member: np.maximum(losses - 0.3 * member * _spread(losses), 0.0),
    # A tenth of the members is memorised: their losses are tied.
    lambda rng, losses, member: np.where(
        member & (rng.random(losses.size) < 0.1), losses.min(), losses
    ),
    lambda rng, losses, member: losses * np.where(member, 0.7, 1.0),
]


def _spread(losses: FloatArray) -> float:
    """Standard deviation of the normal law with the same quartiles."""
    low, high = np.quantile(losses, [0.25, 0.75])
    return float(high - low) / 1.35


def _in_bfloat16(losses: FloatArray) -> FloatArray:
    bits = losses.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(np.float64)


_ROUNDED: list[Callable[[FloatArray], FloatArray]] = [
    lambda losses: losses,
    lambda losses: losses,
    lambda losses: losses.astype(np.float32).astype(np.float64),
    lambda losses: np.minimum(losses, 60_000).astype(np.float16).astype(np.float64),
    lambda losses: np.round(losses, 2),
    lambda losses: np.round(losses, 4),
    lambda losses: np.round(losses, 6),
    lambda losses: np.floor(np.minimum(losses, 50) * 4),
    _in_bfloat16,
]


def rounded_losses(rng: np.random.Generator, member: Flags) -> FloatArray:
    """Losses of one of eight laws, none below 0, as a file rounds them; of the shape of ``member``,
    which has True for members: their losses may leak, by one of `_LEAKS`.
    """
    losses = chosen(rng, _LEAKS)(rng, chosen(rng, _LAWS)(rng, member.size), member)
    return chosen(rng, _ROUNDED)(losses)


def named_scores(rng: np.random.Generator, losses: FloatArray) -> tuple[str, FloatArray]:
    """The name of a column and its values, shape (rows,): these losses or their exponentials, or
    scores, which fall where the losses rise.
    """
    if rng.random() < 0.6:
        name = chosen(rng, LOSSES)
        return name, np.exp(np.minimum(losses, 20)) if name == "perplexity" else losses
    name = chosen(rng, SCORES)
    return name, np.exp(-losses) if name == "confidence" else -losses


def named_membership(rng: np.random.Generator, member: Flags) -> tuple[str, Any]:
    """The name of a column and its cells, which say who is a member."""
    name = chosen(rng, ["member", "is_member", "membership", "in_train", "seen"])
    forms = [
        (name, member.astype(int)),
        (name, member),
        (name, member.astype(float)),
        (name, np.where(member, "yes", "no")),
        ("membership", np.where(member, "member", "nonmember")),
        ("split", np.where(member, "train", "test")),
        ("split", np.where(member, "train", "holdout")),
    ]
    return chosen(rng, forms)


_OTHERS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "id": lambda rng, rows: rng.permutation(rows * 3)[:rows],
    "uid": lambda rng, rows: [f"{value:016x}" for value in rng.integers(0, 2**63, rows)],
    "name": lambda rng, rows: [f"img_{value:05d}.png" for value in rng.permutation(90_000)[:rows]],
    "label": lambda rng, rows: rng.integers(0, chosen(rng, [2, 3, 10, 40]), rows),
    "class_name": lambda rng, rows: rng.choice(["cat", "dog", "ship", "frog", "horse"], rows),
    "age": lambda rng, rows: np.clip(rng.normal(45, 15, rows), 18, 95).astype(int),
    "site": lambda rng, rows: [
        f"S{value}" for value in rng.integers(1, chosen(rng, [3, 8, 30, 60]), rows)
    ],
    "sex": lambda rng, rows: rng.choice(["F", "M"], rows),
    "birth": lambda rng, rows: (
        pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, rows), "D")
    ),
    "date": lambda rng, rows: (
        pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 365, rows), "D")
    ).strftime(chosen(rng, ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])),
    "zip": lambda rng, rows: [
        f"{value:05d}"
        for value in rng.integers(10_000, 10_000 + chosen(rng, [50, 500, 89_999]), rows)
    ],
    "price": lambda rng, rows: [f"${value:.2f}" for value in rng.gamma(2, 20, rows)],
    "tokens": lambda rng, rows: rng.poisson(40, rows),
    "confidence_2": lambda rng, rows: rng.random(rows).round(3),
    "prediction": lambda rng, rows: rng.integers(0, 10, rows),
    "correct": lambda rng, rows: rng.random(rows) < 0.8,
    "epoch": lambda rng, rows: np.full(rows, 30),
    "model": lambda rng, rows: np.full(rows, "resnet18"),
    "fold": lambda rng, rows: rng.integers(0, 5, rows),
    "household": lambda rng, rows: rng.integers(0, max(4, rows // 2), rows),
    "phone": lambda rng, rows: [f"+49 {value}" for value in rng.integers(10**8, 10**9, rows)],
    "comment": lambda rng, rows: rng.choice(["", "ok", "see note", "n/a"], rows),
    "weight_kg": lambda rng, rows: rng.normal(75, 12, rows).round(1),
    "batch": lambda rng, rows: np.arange(rows) // 32,
    "time_ms": lambda rng, rows: rng.gamma(3, 4, rows).round(2),
}


def other_columns(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Up to five columns that say nothing of membership: cells by name, shape (rows,) each."""
    names = rng.permutation(list(_OTHERS))[: rng.integers(0, 6)]
    return {str(name): _OTHERS[str(name)](rng, rows) for name in names}


_TRAITS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "age": lambda rng, rows: np.clip(rng.normal(45, 15, rows), 0, 95).astype(int),
    "income": lambda rng, rows: rng.lognormal(10, 0.6, rows).round(2),
    "sex": lambda rng, rows: rng.choice(["F", "M"], rows),
    "job": lambda rng, rows: rng.choice(list("abcdefgh"), rows),
    "admitted": lambda rng, rows: (
        pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 700, rows), "D")
    ).strftime("%Y-%m-%d"),
    "weight": lambda rng, rows: [f"{value:.1f} kg" for value in rng.normal(75, 12, rows)],
    "zip": lambda rng, rows: [f"{value:05d}" for value in rng.integers(10_115, 10_999, rows)],
    "score": lambda rng, rows: rng.normal(size=rows),
    "smoker": lambda rng, rows: rng.random(rows) < 0.3,
    "stays": lambda rng, rows: rng.poisson(1.5, rows),
    "lab": lambda rng, rows: np.where(
        rng.random(rows) < 0.2, np.nan, rng.gamma(2, 3, rows).round(1)
    ),
    "phone": lambda rng, rows: [f"0{value}" for value in rng.integers(10**9, 10**10, rows)],
    "key": lambda rng, rows: [f"P{value:06d}" for value in rng.permutation(10**6)[:rows]],
    "half": lambda rng, rows: rng.normal(size=rows).astype(np.float16),
}
_MEASURED = {"age", "income", "score", "admitted", "lab", "stays", "weight"}


def traits(rng: np.random.Generator) -> list[str]:
    """Names of two to nine columns of people, one of which at least is measured."""
    names = [str(name) for name in rng.permutation(list(_TRAITS))[: rng.integers(2, 9)]]
    return names if _MEASURED & set(names) else [*names, "age"]


def people(rng: np.random.Generator, rows: int, names: Sequence[str]) -> pd.DataFrame:
    """A frame of so many independent made-up people, a row each, with columns that `traits`
    names.
    """
    return pd.DataFrame({name: _TRAITS[name](rng, rows) for name in names})
