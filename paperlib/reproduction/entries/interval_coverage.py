"""How often the intervals of areas and rates of nominal 95 % cover the truth.

``python -m paperlib.reproduction.entries.interval_coverage FILE`` counts them for the book, in
minutes, and goes on with the rows that FILE does not have.
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import norm

from paperlib.bounds.one_run.adaptive import Flags
from paperlib.core import MembershipScores
from paperlib.core.intervals import auc_interval, tpr_interval
from paperlib.reproduction.entries.counting import SEED, Cells, count_rows, interval_cells

HEADING = "setting"
FIRST_INTERVALS = 100  # whose count stands beside that of all, so that a test can draw them again


@dataclass(frozen=True)
class Setting:
    """Normal scores of members, beside standard normal ones of non-members, and what is estimated.

    Attributes:
        mean, spread: Of the members' scores.
        members, nonmembers: Scores on either side.
        rate: False-positive rate at which the true-positive rate is estimated; None for the area
            under the ROC curve.
        files: Intervals computed for the book.
    """

    mean: float
    spread: float
    members: int
    nonmembers: int
    rate: float | None = None
    files: int = 2_000

    @property
    def truth(self) -> float:
        """The area under the ROC curve, or the true-positive rate, of these two normal laws."""
        if self.rate is None:  # the chance that a member's score is above a non-member's
            return float(norm.cdf(self.mean / np.hypot(self.spread, 1)))
        return float(norm.sf((norm.isf(self.rate) - self.mean) / self.spread))

    @property
    def name(self) -> str:
        """What is estimated, the law of the members and the sizes."""
        kind = "AUC" if self.rate is None else f"TPR at {self.rate:.0%} FPR"
        law = f"N({self.mean:g},{self.spread:g})"
        return f"{kind}, {law}, {self.members} and {self.nonmembers}"


_AREAS = [
    *(Setting(0, 1, size, size) for size in (20, 500)),
    Setting(0, 1, 2_000, 2_000),
    Setting(0, 5, 20, 500),
    Setting(1, 1, 300, 300),
    Setting(2, 1, 100, 100),
    Setting(10, 4, 300, 300),
    Setting(4, 1, 20, 20),
    Setting(5, 1, 300, 300),
    Setting(6, 1, 2_000, 2_000),
]
_RATES = [
    Setting(1, 1, 100, 100, rate=0.1),
    Setting(1, 1, 300, 300, rate=0.01),
    Setting(3, 1, 400, 400, rate=0.01),
    Setting(0, 1, 2_000, 2_000, rate=0.01),
]
SETTINGS = {setting.name: setting for setting in _AREAS + _RATES}


def covered(setting: Setting, files: int) -> Flags:
    """Whether each of so many intervals, of scores drawn anew, covers the truth, shape (files,)."""
    covers = np.zeros(files, dtype=bool)
    for number in range(files):
        rng = np.random.default_rng([SEED, number, *setting.name.encode()])
        scores = MembershipScores(
            setting.mean + setting.spread * rng.normal(size=setting.members),
            rng.normal(size=setting.nonmembers),
        )
        if setting.rate is None:
            low, high = auc_interval(scores)
        else:
            low, high = tpr_interval(scores, setting.rate)
        covers[number] = low <= setting.truth <= high
    return covers


def count_setting(setting: Setting) -> Cells:
    """The row of the table: intervals that cover, of all and of the first ones."""
    covers = covered(setting, setting.files)
    count = int(covers.sum())
    return {
        "truth": round(setting.truth, 5),
        "files": setting.files,
        "covered": count,
        **interval_cells(count, setting.files),
        "covered_of_first": int(covers[:FIRST_INTERVALS].sum()),
    }


if __name__ == "__main__":
    count_rows(
        Path(sys.argv[1]),
        HEADING,
        {name: partial(count_setting, setting) for name, setting in SETTINGS.items()},
    )
