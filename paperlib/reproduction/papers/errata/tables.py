"""Tables of the errata: every check beside its place in the papers, and one row for each entry."""

from collections.abc import Mapping

import pandas as pd

from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.errata.comparison import Comparison

_RESULTS = ("printed", "follows", "off", "allowed", "fits")


def check_table(outcomes: Mapping[str, Comparison]) -> pd.DataFrame:
    """Every check in the papers' order: its place, its outcome and what the outcome means.

    ``outcomes`` are by the numbers of the shipped table ``errata_checks``; a ValueError names the
    numbers that one of them lacks.
    """
    listed = paper_table("errata_checks", as_printed=True)
    differing = set(outcomes) ^ set(listed["no"])
    if differing:
        raise ValueError(f"outcomes: expected those of the listed checks, not {sorted(differing)}")
    in_order = [outcomes[number] for number in listed["no"]]
    results = pd.DataFrame(
        {name: [getattr(outcome, name) for outcome in in_order] for name in _RESULTS}
    )
    results = results.astype({"off": float, "allowed": float}).round(9)
    checks = listed[["paper", "no", "place", "kind"]]
    texts = listed[["compared", "meaning"]]
    return pd.concat([checks, results, texts], axis=1)


def entries(checks: pd.DataFrame) -> pd.DataFrame:
    """One row for each entry of a `check_table`: of its checks 3a, 3b, ... the one that fits least.

    Columns ``fits`` and ``kind`` are words; ``checks`` and ``fitting`` count the entry's checks.
    """
    entry = checks["no"].str.extract(r"(\d+)", expand=False)
    least_fitting = (checks["off"] - checks["allowed"]).groupby(entry, sort=False).idxmax()
    counts = checks["fits"].groupby(entry, sort=False).agg(["size", "sum"])
    rows = checks.loc[least_fitting]
    columns = {
        "fits": [_fits(*row) for row in rows[["fits", "off", "allowed"]].itertuples(index=False)],
        "kind": rows["kind"].where(~rows["fits"], ""),
        "checks": counts["size"].to_numpy(),
        "fitting": counts["sum"].to_numpy(),
    }
    return rows.assign(no=least_fitting.index, **columns).reset_index(drop=True)


def _fits(fits: bool, off: float, allowed: float) -> str:
    """Whether a check fits, with its distance beside what is allowed."""
    if fits and not off and not allowed:
        return "yes"
    if fits:
        return f"yes: {_short(off)} ≤ {_short(allowed)}"
    return f"no: {_short(off)} > {_short(allowed)}"


def _short(value: float) -> str:
    """A number in three digits, or whole with commas."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
