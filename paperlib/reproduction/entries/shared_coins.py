"""How often rows that share coins are noticed, in made-up files without a leak.

``python -m paperlib.reproduction.entries.shared_coins FILE`` counts them for the book, in minutes,
and goes on with the rows that FILE does not have.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from paperlib.audits import audit, audit_scores
from paperlib.audits.score_results import Audits
from paperlib.bounds import audit_ranks, combine_runs
from paperlib.core import AuditResult, FloatArray, IntArray, MembershipScores
from paperlib.reproduction.entries.counting import FIRST, SEED, Cells, count_rows, interval_cells

HEADING = "rows"
_RUNS_EPSILON = 0.5  # of the mechanism behind the runs of one split, nats
_UNIT_COLUMNS = ("id", "sample_id", "user_id", "uid", "patient", "path", "x7")  # that name a unit
_SPREADS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)  # of rows of a unit, as a share of that between units

Outcome = Literal["refused", "warned and above", "above", "warned", "quiet"]
"""What is said of a file; "above" where the bound is above the truth, and "warned" where shared
coins, or one split, are suspected.
"""


def _judged(audited: Audits | AuditResult, truth: float = 0.0) -> Outcome:
    """The outcome of an audit whose bound should be ``truth``, nats, at most."""
    headline = audited if isinstance(audited, AuditResult) else audited.headline
    is_above = (headline.epsilon or 0.0) > truth
    is_warned = any("coins of their own" in text or "split" in text for text in audited.warnings)
    if is_warned:
        return "warned and above" if is_above else "warned"
    return "above" if is_above else "quiet"


def _in_a_column(rng: np.random.Generator, number: int) -> Outcome:
    """A file of 200 units of ten rows each, which a column names; ``number``, of the file, chooses
    the column's name.
    """
    member = rng.permutation(200) < 100
    losses = np.repeat(rng.normal(size=200), 10) + 0.05 * rng.normal(size=2_000)
    table = pd.DataFrame(
        {
            _UNIT_COLUMNS[number % len(_UNIT_COLUMNS)]: [f"u{row // 10}" for row in range(2_000)],
            "epoch": np.tile(np.arange(10), 200),
            "loss": losses,
            "member": np.repeat(member, 10).astype(int),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        table.to_csv(path, index=False)
        return _judged(audit(path, design="game"))


def _repeated(rng: np.random.Generator, number: int, times: tuple[int, ...]) -> Outcome:
    """Scores of 1,000 records of which a fifth is rare and learned more; the rare ones among the
    members stand one of these numbers of times.
    """
    rare, member = rng.random(1_000) < 0.2, rng.random(1_000) < 0.5
    losses = rng.normal(size=1_000) - 2 * rare
    repeats = np.where(rare[member], rng.choice(times, int(member.sum())), 1)
    scores = MembershipScores(
        np.repeat(losses[member], repeats), losses[~member], higher_means_member=False
    )
    return _judged(audit_scores(scores, design="game"))


def _without_a_column(rng: np.random.Generator, number: int, spread: float) -> Outcome:
    """Scores of 100 units of ten rows, which differ by ``spread`` of what units do."""
    member = np.repeat(rng.random(100) < 0.5, 10)
    values = np.repeat(rng.normal(size=100), 10) + spread * rng.normal(size=1_000)
    return _judged(audit_scores(MembershipScores(values[member], values[~member])))


def _one_split(rng: np.random.Generator, number: int) -> Outcome:
    """Five models on one split of 400 records by randomized response, most of whose noise they
    share; four files have lost a row.
    """
    # Chance that an answer is right, and which answers are in the noise that the models share.
    right = np.exp(_RUNS_EPSILON) / (1 + np.exp(_RUNS_EPSILON))
    member = rng.random(400) < 0.5
    common = rng.random(400) < right
    runs: list[MembershipScores] = []
    for run in range(5):
        is_right = np.where(rng.random(400) < 0.9, common, rng.random(400) < right)
        # Right answers score members high; every file but the first lacks a random row.
        values = 10 * np.where(is_right, member, ~member) + rng.random(400)
        is_kept = np.arange(400) != (rng.integers(400) if run else -1)
        runs.append(MembershipScores(values[is_kept & member], values[is_kept & ~member]))
    return _judged(combine_runs(runs), _RUNS_EPSILON)


_MARGINS: tuple[Callable[[np.random.Generator, IntArray], FloatArray], ...] = (
    lambda rng, ranks: np.zeros(ranks.size),
    lambda rng, ranks: (rng.random(ranks.size) < 0.2).astype(float),
    lambda rng, ranks: np.round(rng.exponential(size=ranks.size), 1),
)


def _sorted_ranks(rng: np.random.Generator, number: int) -> Outcome:
    """500 sets of 16 values in the order of the ranks, with margins that are tied."""
    ranks = np.sort(rng.integers(1, 17, 500))
    margins = _MARGINS[number % len(_MARGINS)](rng, ranks)
    return _judged(audit_ranks(ranks, 16, margins=margins))


@dataclass(frozen=True)
class Rows:
    """How a file is made and audited, and how often for the book."""

    outcome: Callable[[np.random.Generator, int], Outcome]  #: generator, number of the file
    files: int


ROWS: dict[str, Rows] = {
    f"200 units of 10 rows, in a column of any of {len(_UNIT_COLUMNS)} names": Rows(
        _in_a_column, 280
    ),
    "rare members 2 to 5 times": Rows(partial(_repeated, times=(2, 3, 4, 5)), 400),
    "rare members twice": Rows(partial(_repeated, times=(2,)), 400),
    "the same files with each member once": Rows(partial(_repeated, times=(1,)), 200),
    **{
        f"100 units of 10 rows, no column, which differ by {spread:g} of what units do": Rows(
            partial(_without_a_column, spread=spread), 400
        )
        for spread in _SPREADS
    },
    "five models on one split, a row lost from four files": Rows(_one_split, 400),
    "ranks of true values, sorted, with tied margins": Rows(_sorted_ranks, 900),
}


def outcomes_of(name: str, files: int) -> list[Outcome]:
    """The outcome of each of so many files of one row of `ROWS`."""
    outcomes: list[Outcome] = []
    for number in range(files):
        rng = np.random.default_rng([SEED, number, *name.encode()])
        try:
            outcomes.append(ROWS[name].outcome(rng, number))
        except ValueError:
            outcomes.append("refused")
    return outcomes


def counted(outcomes: list[Outcome]) -> Cells:
    """How many files are refused, warned of, and above the truth; one may be both of the latter."""
    return {
        "refused": outcomes.count("refused"),
        "warned": sum(outcome.startswith("warned") for outcome in outcomes),
        "above": sum(outcome.endswith("above") for outcome in outcomes),
    }


def count_files(name: str, files: int) -> Cells:
    """A row of the table: the counts of all files, with the interval of the share above the truth,
    and those of the first `FIRST` files.
    """
    outcomes = outcomes_of(name, files)
    counts = counted(outcomes)
    first = counted(outcomes[:FIRST])
    return {
        "files": files,
        **counts,
        **interval_cells(outcomes.count("above") + outcomes.count("warned and above"), files),
        **{f"{key}_of_first": value for key, value in first.items()},
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    count_rows(
        Path(sys.argv[1]),
        HEADING,
        {name: partial(count_files, name, rows.files) for name, rows in ROWS.items()},
    )
