"""PANORAMIA: checks of its tables and propositions that need more than a sum of printed numbers."""

import math
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.stats import binom

from paperlib.bounds.one_run.tails import epsilon_from_counts
from paperlib.papers.errata.rows import Found, between, cells, claim, compare, worst
from paperlib.papers.panoramia.dp_evidence import table_eleven_ranges
from paperlib.report import paper_table

M, ERROR = 10_000, 0.025  # audit examples of Table 3, and the error of each of its two tests (C.4)
_KEYS = ["target_model", "target_dp_eps", "audit"]


def _detections(section: str, *tables: str) -> Found:
    """Where the text says whether leakage is detected, whether the tables have a value above 0."""
    text = paper_table("panoramia_text").query("section == @section and quantity == 'leakage_detected'")
    every = pd.concat([paper_table(name) for name in tables])
    stated = text.astype({"target_dp_eps": float}).merge(every, on=_KEYS)
    measured = stated["eps_tilde"].fillna(stated["eps"])
    agree = (measured > 0) == (stated["value"].astype(float) == 1)
    return claim(f"{len(text)} claims", agree, f"; not {', '.join(measured[~agree].astype(str))}")


def _best_prior(*tables: str) -> Found:
    """Whether the larger of O(1) and RM;RN is at least eps~, model by model."""
    parts = [part for name in tables for _, part in paper_table(name).groupby(_KEYS[:2], dropna=False)]
    return claim("best prior is larger", [part["eps_tilde"].max() <= part["eps"].max() for part in parts])


def _epsilons_listed() -> Found:
    listed = cells("panoramia_settings | section == 'C.1' and component == 'target_dp'")["value"]
    holds = listed.isin(cells("panoramia_table08")["target_dp_eps"])
    return claim(f"{len(listed)} values of eps", holds, f"; not {', '.join(listed[~holds])}")


def _delta_lowers() -> Found:
    table = paper_table("panoramia_table11")
    pure, both = (table[table["target_dp_delta"] == d] for d in (0, 1e-5))
    pairs = both.merge(pure, on=["target_dp_eps", "generator_gamma"])
    return claim("smaller eps~ with delta", pairs["eps_tilde_x"] <= pairs["eps_tilde_y"])


def _gamma_lowers() -> Found:
    parts = paper_table("panoramia_table11").groupby(["target_dp_eps", "target_dp_delta"])["eps_tilde"]
    return claim("smaller eps~ with gamma", [a >= b for _, part in parts for a, b in pairwise(part)])


_ranges = cache(table_eleven_ranges)


def _left_by_propositions(column: str, query: str) -> Found:
    """Table 11 beside the range that Propositions 3 and 4 leave of its bound at gamma = delta = 0."""
    found = _ranges().query(query)[[column, f"{column} low", f"{column} high"]].to_numpy()
    return worst(between(f"{printed:.3f}", low, high) for printed, low, high in found)


def _v_without_end(r: int = 100) -> Found:
    counts = np.arange(r + 2)  # v = r + 1 has probability 0, as every larger v
    rejected = counts[binom.sf(counts - 1, r, 0.5) <= ERROR]
    return Found("no end" if rejected[-1] > r else f"{rejected[-1]}", f"smallest: {rejected[0]}", math.inf)


def _nested() -> Found:
    """Lexicographically (1, 100) is below (2, 0): whoever rejects (2, 0) should reject it too."""
    attack, baseline = (float(epsilon_from_counts(v, 100, ERROR)) for v in (95, 60))
    upper, lower = (c <= baseline or c + eps <= attack for c, eps in ((2, 0), (1, 100)))
    return claim("rejections nested", [lower or not upper], f"; {baseline:.2f}, {attack:.2f}")


CHECKS = {
    "7a": partial(_detections, "D.9", "panoramia_table07", "panoramia_table08"),
    "7b": partial(_detections, "5.2", "panoramia_table03"),
    "8a": partial(_best_prior, "panoramia_table03", "panoramia_table07"),
    "8b": partial(_best_prior, "panoramia_table08"),
    "9": _epsilons_listed,
    "14b": _delta_lowers,
    "15": _gamma_lowers,
    "26a": _v_without_end,
    "26b": lambda: Found("no end", f"{float(epsilon_from_counts(90, 100, ERROR)):.4f}", math.inf),
    "27": _nested,
    # All guesses right: t = 2 s - 1, and the credit is t s with s in {0, 1}, or t t.
    "30": lambda s=(0, 1) * 5: compare(
        f"{sum((2 * i - 1) * i for i in s)}", sum((2 * i - 1) ** 2 for i in s)
    ),
    "31": lambda gamma=1e-3, delta=0.0: compare(f"{2 * M * delta:g}", 2 * M * gamma),
    "63a": partial(_left_by_propositions, "c_lb", "delta == 0 and epsilon == 2"),
    "63b": partial(_left_by_propositions, "c_plus_eps_lb", "delta == 0"),
    "63c": partial(_left_by_propositions, "c_plus_eps_lb", "delta > 0"),
    # Chance of an answer with the record, and with another: eps-DP for add/remove, from 0.1 without both.
    "64": lambda eps=1.0: compare(f"{eps:g}", math.log(0.1 * math.exp(eps) / (0.1 * math.exp(-eps)))),
}
