"""Checks of the papers' tables, propositions and claims that need more than a sum of printed
numbers.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom, norm

from paperlib.bounds import rank_success_probability
from paperlib.bounds.one_run.tails import epsilon_from_counts, refuted_log_odds
from paperlib.papers.errata.rows import Comparison, between, by_data, cells, claim, compare, worst
from paperlib.papers.natural_identifiers.benchmark import paper_averages
from paperlib.papers.output_sets.gain import exact_epsilon, proposition_epsilon
from paperlib.papers.panoramia.dp import table_eleven_ranges
from paperlib.report import paper_table

M, ERROR = 10_000, 0.025  # audit examples of Table 3, and the error of each of its two tests (C.4)
_KEYS = ["target_model", "target_dp_eps", "audit"]


def _detections(section: str, *tables: str) -> Comparison:
    """Where the text says whether leakage is detected, whether the tables have a value above 0."""
    text = paper_table("panoramia_text").query(
        "section == @section and quantity == 'leakage_detected'"
    )
    every = pd.concat([paper_table(name) for name in tables])
    stated = text.astype({"target_dp_eps": float}).merge(every, on=_KEYS)
    measured = stated["eps_tilde"].fillna(stated["eps"])
    agree = (measured > 0) == (stated["value"].astype(float) == 1)
    return claim(f"{len(text)} claims", agree, f"; not {', '.join(measured[~agree].astype(str))}")


def _best_prior(*tables: str) -> Comparison:
    """Whether the larger of O(1) and RM;RN is at least eps~, model by model."""
    parts = [
        part for name in tables for _, part in paper_table(name).groupby(_KEYS[:2], dropna=False)
    ]
    return claim(
        "best prior is larger", [part["eps_tilde"].max() <= part["eps"].max() for part in parts]
    )


def _epsilons_listed() -> Comparison:
    listed = cells("panoramia_settings | section == 'C.1' and component == 'target_dp'")["value"]
    holds = listed.isin(cells("panoramia_table08")["target_dp_eps"])
    return claim(f"{len(listed)} values of eps", holds, f"; not {', '.join(listed[~holds])}")


def _delta_lowers() -> Comparison:
    table = paper_table("panoramia_table11")
    pure, both = (table[table["target_dp_delta"] == d] for d in (0, 1e-5))
    pairs = both.merge(pure, on=["target_dp_eps", "generator_gamma"])
    return claim("smaller eps~ with delta", pairs["eps_tilde_x"] <= pairs["eps_tilde_y"])


def _gamma_lowers() -> Comparison:
    parts = paper_table("panoramia_table11").groupby(["target_dp_eps", "target_dp_delta"])[
        "eps_tilde"
    ]
    return claim(
        "smaller eps~ with gamma", [a >= b for _, part in parts for a, b in pairwise(part)]
    )


_left = cache(table_eleven_ranges)


def _left_by_propositions(column: str, query: str) -> Comparison:
    """Table 11 beside the range that Propositions 3 and 4 leave of its bound at gamma = delta =
    0.
    """
    rows = _left().query(query)[[column, f"{column} low", f"{column} high"]].to_numpy()
    return worst(between(f"{printed:.3f}", low, high) for printed, low, high in rows)


def _relaxed_over_guesses() -> Comparison:
    """Table 11 with 2 r gamma failures, r the guesses, not 2 m gamma, and the whole error in each
    test.
    """
    table, found = paper_table("panoramia_table11", as_printed=True), list[Comparison]()
    counts = {"2": (308, 336), "15": (118, 118)}  # right and all guesses of the attack, by epsilon
    baseline = {"0": (715, 760), "1e-5": (1660, 1851)}  # of the baseline, by delta
    for row in table[table["target_dp_eps"].isin(list(counts))].to_dict("records"):
        gamma, delta = float(row["generator_gamma"]), float(row["target_dp_delta"])
        pairs = {"c_lb": (baseline[row["target_dp_delta"]], gamma)}
        pairs["c_plus_eps_lb"] = counts[row["target_dp_eps"]], gamma + delta - gamma * delta
        for name, ((right, guesses), failing) in pairs.items():
            bound = float(refuted_log_odds(right, guesses, 2 * ERROR, guesses * failing))
            found.append(
                compare(row[name], bound, 1e-4)
            )  # the paper's search for it has steps, too
    return worst(found)


def _v_without_end(r: int = 100) -> Comparison:
    counts = np.arange(r + 2)  # v = r + 1 has probability 0, as every larger v
    rejected = counts[binom.sf(counts - 1, r, 0.5) <= ERROR]
    end = "no end" if rejected[-1] > r else f"{rejected[-1]}"
    return Comparison(end, f"smallest: {rejected[0]}", math.inf)


def _nested() -> Comparison:
    """Lexicographically (1, 100) is below (2, 0): whoever rejects (2, 0) should reject it too."""
    attack, baseline = (float(epsilon_from_counts(v, 100, ERROR)) for v in (95, 60))
    upper, lower = (c <= baseline or c + eps <= attack for c, eps in ((2, 0), (1, 100)))
    return claim("rejections nested", [lower or not upper], f"; {baseline:.2f}, {attack:.2f}")


_AUC = tuple(f"nid_table{number}" for number in ("01", "04", "05", "03"))
_TPR = tuple(f"nid_table{number}" for number in ("06", "07", "08", "09"))


def _settings(name: str, query: str) -> list[float]:
    return cells(f"{name}_settings | {query}")["value"].astype(float).tolist()


def _reduction() -> Comparison:
    text = cells("epsilon_star_text").set_index("quantity")["value"]
    return between(
        text["epsilon_star_reduction_pct"], 100 - 100 / float(text["epsilon_star_max"]), 100
    )


def _experiments(dataset: str) -> Comparison:
    own = cells("epsilon_star_settings").query("dataset == @dataset")
    grid = ["target_eps", "clipping_norm", "batch_size", "micro_batches"]
    private = math.prod((own["setting"] == name).sum() for name in grid)
    printed = own.set_index("setting")["value"]["n_experiments"]
    return compare(printed, float(private + (own["component"] == "baseline").sum()))


def _identified() -> Comparison:
    expected = [
        1 / math.log(n) for n in _settings("epsilon_star", "setting == 'n_train'")
    ]  # n times delta
    return claim(
        "below 1", [one < 1 for one in expected], f"; {expected[0]:.3f}, {expected[1]:.3f}"
    )


def _suprema(delta: float = 1e-5) -> Comparison:
    """eps* of members N(0, 1) and population N(3, 1), reached at the least FPR that either version
    has.
    """
    rates = (*_settings("epsilon_star", "setting == 'empirical_clip_low'"), delta)
    worth = [math.log((norm.cdf(norm.ppf(fpr, 3)) - delta) / fpr) for fpr in rates]
    return Comparison(f"{worth[0]:.2f}", f"{worth[1]:.2f}", worth[1] - worth[0])


def _clipped_average(limit: float = 1.0, others: float = -2.0) -> Comparison:
    """How far one record moves the clipped average of a batch whose others all have gradient
    ``others``.
    """
    before, after = np.clip([others, (63 * others + 1e3) / 64], -limit, limit)
    return compare(f"{limit:g}", float(after - before))


def _upper_bound(epsilon: Any) -> Comparison:
    """The upper bound of Figure 2b beside the nearest that ``epsilon`` gives on the grid of
    noises.
    """
    (printed,) = cells("output_sets_text | quantity == 'matched_upper_bound_eps'")["value"]
    noises = _settings("output_sets", "figure == 'figure02' and setting == 'b'")
    offered = [epsilon("laplace", b / 2) for b in noises]
    return compare(printed, min(offered, key=lambda one: abs(one - float(printed))))


def _counterexample(b: float = 0.25) -> Comparison:
    """Left of all centres: records (4, 4) give 1 in both orders, (-4, 4) give 3 and -3, equation
    11.
    """
    printed, ratio = (
        proposition_epsilon("laplace", b / 2),
        math.log((math.exp(-4 / b) + math.exp(8 / b)) / 2),
    )
    return Comparison(f"eps {printed:g}", f"log-ratio {ratio:.1f}", ratio - printed)


def _complement(epsilon: float = 1.0, ratio: float = 1.0) -> Comparison:
    ends = (ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio)
    printed, cited = (
        float(f(ends[0]) - math.exp(epsilon) * f(ends[1])) for f in (norm.sf, norm.cdf)
    )
    return Comparison(f"delta {printed:.2f}", f"{cited:.3f}", cited - printed)


def _doubling() -> Comparison:
    grid = _settings("output_sets", "figure == 'figure02' and setting == 'm'")
    return claim("doubles", [b == 2 * a for a, b in pairwise(grid)])


def auc_cells(split: str = "") -> pd.DataFrame:
    """Printed AUCs of Tables 1, 3, 4 and 5 but the averages, percent; of one split if given."""
    every = pd.concat([paper_table(name) for name in _AUC]).query("subset != 'average'")
    return every.query("split == @split") if split else every


def _folded() -> Comparison:
    up = auc_cells("test")["value_pct"] >= 50
    half, count = up.size / 2, int(up.sum())
    allowed = 2 * math.sqrt(up.size)
    return Comparison(f"{count} of {up.size}", f"{half:g} of {up.size}", abs(count - half), allowed)


def _train_above_test(*tables: str, subset: str = "average", test: str = "average") -> Comparison:
    holds = list[bool]()
    for name in tables:
        every = paper_table(name).set_index(["split", "subset", "mia"])["value_pct"].sort_index()
        holds += (every["train", subset] > every["test", test]).tolist()
    return claim("train above test", holds)


def _left_out(least: int = 100) -> Comparison:
    """Training subsets of the Pile with enough identifiers, and whether Table 10 has them."""
    counts = paper_table("nid_table02").query(
        "corpus == 'pile' and split == 'train' and total >= @least"
    )
    names = counts["dataset"].str.removeprefix("pile train ").str.replace(" ", "").str.lower()
    tested = cells("nid_table10")["subset"].str.replace("[- ]", "", regex=True).str.lower()
    there = names.isin([name for name in names for one in tested if one.endswith(name)])
    return claim(f"{least} NIDs or more", there, f"; not {', '.join(names[~there])}")


def _theorem_two(
    hits: int = 400, sets: int = 500, size: int = 64, delta: float = 1e-5
) -> Comparison:
    chance = float(rank_success_probability(size, 5.33))
    steps = np.arange(1, hits + 1)
    tail, tails = binom.sf(hits - 1, sets, chance), binom.sf(hits - 1 - steps, sets, chance)
    printed, proved = (
        tail + delta * sets * size * ((tails - less) / steps).max() for less in (0, tail)
    )
    return Comparison(f"p = {printed:.4f}", f"p = {proved:.4f}", float(printed - proved))


def _means(*tables: str) -> Comparison:
    """Printed means beside those of the printed cells, whose rounding reaches as far as their
    own.
    """
    compared = list[Comparison]()
    for name in tables:
        means, follows = cells(name).query("subset == 'average'"), paper_averages(paper_table(name))
        both = means.merge(follows, on=["mia", "split"], suffixes=("", "_mean"))
        compared += map(compare, both["value_pct"], both["value_pct_mean"], [0.05] * len(both))
    return worst(compared)


def _theorem_one(size: int = 64, top: int = 8, epsilon: float = 5.0) -> Comparison:
    printed = top * math.exp(epsilon) / (size - 1 + math.exp(epsilon))
    return compare(f"{printed:.2f}", float(rank_success_probability(size, epsilon, top=top)))


CODED: dict[str, Callable[..., Comparison]] = {
    "7a": partial(_detections, "D.9", "panoramia_table07", "panoramia_table08"),
    "7b": partial(_detections, "5.2", "panoramia_table03"),
    "8a": partial(_best_prior, "panoramia_table03", "panoramia_table07"),
    "8b": partial(_best_prior, "panoramia_table08"),
    "9": _epsilons_listed,
    "14b": _delta_lowers,
    "15": _gamma_lowers,
    "26a": _v_without_end,
    "26b": lambda: Comparison(
        "no end", f"{float(epsilon_from_counts(90, 100, ERROR)):.4f}", math.inf
    ),
    "27": _nested,
    # All guesses right: t = 2 s - 1, and the credit is t s with s in {0, 1}, or t t.
    "30": lambda s=(0, 1) * 5: compare(
        f"{sum((2 * i - 1) * i for i in s)}", sum((2 * i - 1) ** 2 for i in s)
    ),
    "31": lambda gamma=1e-3, delta=0.0: compare(f"{2 * M * delta:g}", 2 * M * gamma),
    "63a": partial(_left_by_propositions, "c_lb", "delta == 0 and epsilon == 2"),
    "63b": partial(_left_by_propositions, "c_plus_eps_lb", "delta == 0"),
    "63c": partial(_left_by_propositions, "c_plus_eps_lb", "delta > 0"),
    "63d": _relaxed_over_guesses,
    # Chance of an answer with the record, and with another: eps-DP for add/remove, from 0.1 without
    # both.
    "64": lambda eps=1.0: compare(
        f"{eps:g}", math.log(0.1 * math.exp(eps) / (0.1 * math.exp(-eps)))
    ),
    "36": _left_out,
    "37": _folded,
    "38a": partial(_train_above_test, *_AUC[:3]),
    "38b": partial(_train_above_test, _AUC[3], test="proof_pile_2_test"),
    "38c": partial(_train_above_test, _AUC[0], subset="stackexchange", test="stackexchange"),
    "40": lambda c=2: compare(f"{c}", c + 1),
    "41": _theorem_two,
    # Where P = Q both expectations are one number, and the first is at least 1 - delta.
    "42": lambda delta=1e-5: Comparison(
        f"at most {delta:g}", f"at least {1 - delta:g}", 1 - 2 * delta
    ),
    "67c": partial(_means, *_AUC),
    "67d": partial(_means, *_TPR),
    "68": _theorem_one,
    "45": _reduction,
    "46c": lambda: worst(map(_experiments, ("adult", "purchase100"))),
    "50": _identified,
    "52": _suprema,
    "70": _clipped_average,
    # Sampling error on the whole line, m = 100 and beta = 0.05.
    "53": lambda: compare(
        f"{math.sqrt(2 * math.log(20) / 200):.4f}", math.sqrt(2 * math.log(40) / 200)
    ),
    "54": lambda: compare(
        f"{math.sqrt(2 * math.log(40) / 200):.4f}", math.sqrt(2 * math.log(40) / 100)
    ),
    "57a": partial(_upper_bound, proposition_epsilon),
    "57b": partial(_upper_bound, exact_epsilon),
    "57c": _counterexample,
    "57d": _complement,
    # The first step is 0 where the records are, and the second has gradient theta.
    "58": lambda theta=1.0, eta=0.5: compare(f"{theta:g}", theta - eta * theta),
    "59": _doubling,
    "61": lambda: Comparison("eps at delta 0", "∞", exact_epsilon("gaussian", 1.0)),
}
"""Checks that need code, by their number in the list of errata."""


def check_table() -> pd.DataFrame:
    """Every check in the papers' order."""
    listed = cells("errata_checks")
    done = [
        CODED[no]() if rule == "code" else by_data(rule, printed, follows)
        for no, rule, printed, follows in listed[["no", "rule", "printed", "follows"]].itertuples(
            index=False
        )
    ]
    names = ("printed", "follows", "off", "allowed", "fits")
    results = pd.DataFrame({name: [getattr(one, name) for one in done] for name in names})
    results = results.astype({"off": float, "allowed": float}).round(9)
    left, right = listed[["paper", "no", "place", "kind"]], listed[["compared", "meaning"]]
    return pd.concat([left, results, right], axis=1)


def entries(checks: pd.DataFrame) -> pd.DataFrame:
    """One row for each entry: of its checks 3a, 3b, ... the one that fits least."""
    number = checks["no"].str.extract(r"(\d+)", expand=False)
    least = (checks["off"] - checks["allowed"]).groupby(number, sort=False).idxmax()
    rows, counts = (
        checks.loc[least],
        checks["fits"].groupby(number, sort=False).agg(["size", "sum"]),
    )
    words = [_fits(*row) for row in rows[["fits", "off", "allowed"]].itertuples(index=False)]
    kinds = rows["kind"].where(~rows["fits"], "")
    columns = {"fits": words, "kind": kinds, "checks": counts["size"].to_numpy()}
    columns["fitting"] = counts["sum"].to_numpy()
    return rows.assign(no=least.index, **columns).reset_index(drop=True)


def _fits(fits: bool, off: float, allowed: float) -> str:
    """Whether a check fits, with its distance beside what rounding allows."""
    if fits and not off and not allowed:
        return "yes"
    ends = [f"{value:.3g}" if value < 1000 else f"{value:,.0f}" for value in (off, allowed)]
    return f"yes: {ends[0]} ≤ {ends[1]}" if fits else f"no: {ends[0]} > {ends[1]}"
