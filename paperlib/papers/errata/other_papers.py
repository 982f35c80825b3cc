"""Checks of the other three papers that need more than a sum of printed numbers."""

import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom, norm

from paperlib.bounds import rank_success_probability
from paperlib.papers.errata.rows import Found, between, cells, claim, compare, worst
from paperlib.papers.natural_identifiers.benchmark import folded_null, paper_averages
from paperlib.papers.output_sets.mechanisms import exact_epsilon, proposition_epsilon
from paperlib.report import paper_table

_AUC = tuple(f"nid_table{number}" for number in ("01", "04", "05", "03"))
_TPR = tuple(f"nid_table{number}" for number in ("06", "07", "08", "09"))


def _settings(name: str, query: str) -> list[float]:
    return cells(f"{name}_settings | {query}")["value"].astype(float).tolist()


def _reduction() -> Found:
    text = cells("epsilon_star_text").set_index("quantity")["value"]
    return between(text["epsilon_star_reduction_pct"], 100 - 100 / float(text["epsilon_star_max"]), 100)


def _experiments(dataset: str) -> Found:
    own = cells("epsilon_star_settings").query("dataset == @dataset")
    grid = ["target_eps", "clipping_norm", "batch_size", "micro_batches"]
    private = math.prod((own["setting"] == name).sum() for name in grid)
    printed = own.set_index("setting")["value"]["n_experiments"]
    return compare(printed, float(private + (own["component"] == "baseline").sum()))


def _identified() -> Found:
    expected = [1 / math.log(n) for n in _settings("epsilon_star", "setting == 'n_train'")]  # n times delta
    return claim("below 1", [one < 1 for one in expected], f"; {expected[0]:.3f}, {expected[1]:.3f}")


def _ranges(delta: float = 1e-5) -> Found:
    """eps* of members N(0, 1) and population N(3, 1), reached at the least FPR that either version has."""
    rates = (*_settings("epsilon_star", "setting == 'empirical_clip_low'"), delta)
    worth = [math.log((norm.cdf(norm.ppf(fpr, 3)) - delta) / fpr) for fpr in rates]
    return Found(f"{worth[0]:.2f}", f"{worth[1]:.2f}", worth[1] - worth[0])


def _clipped_average(limit: float = 1.0, others: float = -2.0) -> Found:
    """How far one record moves the clipped average of a batch whose others all have gradient ``others``."""
    before, after = np.clip([others, (63 * others + 1e3) / 64], -limit, limit)
    return compare(f"{limit:g}", float(after - before))


def _upper_bound(epsilon: Any) -> Found:
    """The upper bound of Figure 2b beside the nearest that ``epsilon`` gives on the grid of noises."""
    (printed,) = cells("output_sets_text | quantity == 'matched_upper_bound_eps'")["value"]
    noises = _settings("output_sets", "figure == 'figure02' and setting == 'b'")
    offered = [epsilon("laplace", b / 2) for b in noises]
    return compare(printed, min(offered, key=lambda one: abs(one - float(printed))))


def _counterexample(b: float = 0.25) -> Found:
    """Left of all centres: records (4, 4) give 1 in both orders, (-4, 4) give 3 and -3, equation 11."""
    printed, ratio = proposition_epsilon("laplace", b / 2), math.log((math.exp(-4 / b) + math.exp(8 / b)) / 2)
    return Found(f"eps {printed:g}", f"log-ratio {ratio:.1f}", ratio - printed)


def _complement(epsilon: float = 1.0, ratio: float = 1.0) -> Found:
    ends = (ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio)
    printed, cited = (float(f(ends[0]) - math.exp(epsilon) * f(ends[1])) for f in (norm.sf, norm.cdf))
    return Found(f"delta {printed:.2f}", f"{cited:.3f}", cited - printed)


def _doubling() -> Found:
    grid = _settings("output_sets", "figure == 'figure02' and setting == 'm'")
    return claim("doubles", [b == 2 * a for a, b in pairwise(grid)])


def auc_cells(split: str = "") -> pd.DataFrame:
    """Printed AUCs of Tables 1, 3, 4 and 5 but the averages, percent; of one split if given."""
    every = pd.concat([paper_table(name) for name in _AUC]).query("subset != 'average'")
    return every.query("split == @split") if split else every


def folding(draws: int) -> pd.DataFrame:
    """What folding gives on each test set if ``draws`` AUCs are noise, and what is printed, percent."""
    counts = paper_table("nid_table02").set_index("dataset")["total"]
    sizes = {name: int(counts[f"pile test {name}"]) for name in ("github", "stackexchange")}
    sizes["pile"] = int(counts["Pile test (all subsets)"])
    sizes["proof_pile_2_test"] = int(counts["open web math test"] + counts["algebraic stack test"])
    noise = 100 * folded_null(list(sizes.values()), draws=draws)[["mean_folded", "folded_95"]].round(3)
    printed = auc_cells("test").groupby("subset")["value_pct"].agg(["min", "max"]).loc[list(sizes)]
    table = pd.DataFrame(
        {"test set": [name.replace("_", " ") for name in sizes], "NIDs": list(sizes.values())}
    )
    table[["noise, mean", "noise, 95 %"]] = noise.to_numpy()
    table[["least printed", "largest"]] = printed.to_numpy()
    return table


def _folded() -> Found:
    up = auc_cells("test")["value_pct"] >= 50
    half, found = up.size / 2, int(up.sum())
    return Found(f"{found} of {up.size}", f"{half:g} of {up.size}", abs(found - half), 2 * math.sqrt(up.size))


def _train_above_test(*tables: str, subset: str = "average", test: str = "average") -> Found:
    holds = list[bool]()
    for name in tables:
        every = paper_table(name).set_index(["split", "subset", "mia"])["value_pct"].sort_index()
        holds += (every["train", subset] > every["test", test]).tolist()
    return claim("train above test", holds)


def _left_out(least: int = 100) -> Found:
    """Training subsets of the Pile with enough identifiers, and whether Table 10 has them."""
    counts = paper_table("nid_table02").query("corpus == 'pile' and split == 'train' and total >= @least")
    names = counts["dataset"].str.removeprefix("pile train ").str.replace(" ", "").str.lower()
    tested = cells("nid_table10")["subset"].str.replace("[- ]", "", regex=True).str.lower()
    there = names.isin([name for name in names for one in tested if one.endswith(name)])
    return claim(f"{least} NIDs or more", there, f"; not {', '.join(names[~there])}")


def _theorem_two(hits: int = 400, sets: int = 500, size: int = 64, delta: float = 1e-5) -> Found:
    chance = float(rank_success_probability(size, 5.33))
    steps = np.arange(1, hits + 1)
    tail, tails = binom.sf(hits - 1, sets, chance), binom.sf(hits - 1 - steps, sets, chance)
    printed, proved = (tail + delta * sets * size * ((tails - less) / steps).max() for less in (0, tail))
    return Found(f"p = {printed:.4f}", f"p = {proved:.4f}", float(printed - proved))


def _means(*tables: str) -> Found:
    """Printed means beside those of the printed cells, whose rounding reaches as far as their own."""
    found = list[Found]()
    for name in tables:
        means, follows = cells(name).query("subset == 'average'"), paper_averages(paper_table(name))
        both = means.merge(follows, on=["mia", "split"], suffixes=("", "_mean"))
        found += map(compare, both["value_pct"], both["value_pct_mean"], [0.05] * len(both))
    return worst(found)


def _theorem_one(size: int = 64, top: int = 8, epsilon: float = 5.0) -> Found:
    printed = top * math.exp(epsilon) / (size - 1 + math.exp(epsilon))
    return compare(f"{printed:.2f}", float(rank_success_probability(size, epsilon, top=top)))


NATURAL_IDENTIFIERS = {
    "36": _left_out,
    "37": _folded,
    "38a": partial(_train_above_test, *_AUC[:3]),
    "38b": partial(_train_above_test, _AUC[3], test="proof_pile_2_test"),
    "38c": partial(_train_above_test, _AUC[0], subset="stackexchange", test="stackexchange"),
    "40": lambda c=2: compare(f"{c}", c + 1),
    "41": _theorem_two,
    # Where P = Q both expectations are one number, and the first is at least 1 - delta.
    "42": lambda delta=1e-5: Found(f"at most {delta:g}", f"at least {1 - delta:g}", 1 - 2 * delta),
    "43": lambda n=127: Found(
        f"ln n = {math.log(n):.2f}", f"{math.log2(n) - math.log2(n / 2):g}", math.log(n) - 1
    ),
    "67c": partial(_means, *_AUC),
    "67d": partial(_means, *_TPR),
    "68": _theorem_one,
}
EPSILON_STAR = {
    "45": _reduction,
    "46c": lambda: worst(map(_experiments, ("adult", "purchase100"))),
    "50": _identified,
    "52": _ranges,
    "70": _clipped_average,
}
OUTPUT_SETS = {
    # Sampling error on the whole line, m = 100 and beta = 0.05.
    "53": lambda: compare(f"{math.sqrt(2 * math.log(20) / 200):.4f}", math.sqrt(2 * math.log(40) / 200)),
    "54": lambda: compare(f"{math.sqrt(2 * math.log(40) / 200):.4f}", math.sqrt(2 * math.log(40) / 100)),
    "57a": partial(_upper_bound, proposition_epsilon),
    "57b": partial(_upper_bound, exact_epsilon),
    "57c": _counterexample,
    "57d": _complement,
    # The first step is 0 where the records are, and the second has gradient theta.
    "58": lambda theta=1.0, eta=0.5: compare(f"{theta:g}", theta - eta * theta),
    "59": _doubling,
    "61": lambda: Found("eps at delta 0", "∞", exact_epsilon("gaussian", 1.0)),
}
