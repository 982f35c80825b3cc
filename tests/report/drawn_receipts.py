"""Honest receipts of any size, plan and content."""

from typing import Any

import numpy as np

from paperlib.audits import audit, seal_plan
from paperlib.audits.score_results import Audits
from paperlib.core import toss_coins

GUESSES = ("adaptive", "adaptive", "adaptive", "both", "members", "nonmembers")
LIMITS = (None, 0.5, 3.0, 1e-5, 12345678.0)
TEXTS = (
    "",
    "DP-SGD </script> \n 'noise' 0.8",
    "ε & <b>more</b>",
    "\u202ereversed\x1b[2J\x00",
    "\U0001f600",
)


def drawn_fields(rng: np.random.Generator, at: int) -> dict[str, Any]:
    """Fields of a plan."""
    return {
        "score": "loss",
        "direction": str(rng.choice(["lower", "higher"])),
        "guess": GUESSES[at % len(GUESSES)],
        "delta": float(rng.choice([0.0, 0.0, 0.0, 1e-9, 1e-5, 1e-4, 1e-3])),
        "confidence": float(rng.choice([0.5, 0.9, 0.95, 0.999])),
        "limit": LIMITS[int(rng.integers(len(LIMITS)))],
        "claimed_epsilon": LIMITS[int(rng.integers(2))],
        "mechanism": TEXTS[at % len(TEXTS)],
        "notes": TEXTS[at // 5 % len(TEXTS)],
    }


def drawn_audits(at: int) -> Audits:
    """The planned audit of scores of any size, leak, direction of leak and number of digits."""
    rng = np.random.default_rng(at)
    size = int(rng.choice([3, 9, 10, 25, 60, 120, 300, 700]))
    unit, copies = [("", 0), ("", 0), ("customer", 0), ("", 1), ("", 3)][at % 5]
    ids = [f"{TEXTS[at // 7 % len(TEXTS)]}{number}" for number in range(size)]
    seed = int(rng.choice([at, 10**17 + at]))
    coins = toss_coins(ids, seed=seed, unit=unit, copies=copies)
    while coins.included.all() or not coins.included.any():
        seed += 1
        coins = toss_coins(ids, seed=seed, unit=unit, copies=copies)
    plan = seal_plan({**drawn_fields(rng, at), "coins": coins.commitment})
    leak, share = rng.choice([-2.0, 0.0, 1.0, 3.0, 3.0, 8.0]), rng.choice([0.2, 1.0, 1.0])
    values = rng.normal(0, 1, size) + leak * (coins.included & (rng.random(size) < share))
    digits = int(rng.choice([1, 4, 17, 17]))
    if digits < 17:
        values = np.round(values, digits)
    if plan.direction == "lower":
        values = -values
    return audit(dict(zip(ids, values, strict=True)), coins=coins, plan=plan)
