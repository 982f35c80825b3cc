"""A finding: a title, a sentence with numbers of the run, a figure and the numbers that it draws."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from paperlib.report import show_figure, show_text


@dataclass(frozen=True, eq=False)
class Finding:
    """One finding.

    Attributes:
        slug: Short name; ``finding-<slug>`` is the name of its figure and CSV.
        paper: Key of the paper that it is about; empty for all of them.
        title: What was found, in a few words without numbers.
        sentence: The same with numbers of this run.
        figure: Its figure.
        caption: What the figure shows.
        alt: The figure in words.
        data: The numbers that the figure draws.
    """

    slug: str
    paper: str
    title: str
    sentence: str
    figure: Figure
    caption: str
    alt: str
    data: pd.DataFrame

    def show(self) -> None:
        """Show sentence and figure on the page, and keep the numbers as CSV."""
        show_text(self.sentence)
        show_figure(
            self.figure, name=f"finding-{self.slug}", caption=self.caption, alt=self.alt, data=self.data
        )


def one_origin(origins: Iterable[str]) -> str:
    """Origins of several runs in one phrase; what differs in the minutes alone is said once.

    >>> one_origin(["measured today on A, in 1 minutes", "measured today on A, in 2 minutes"])
    'measured today on A, in 1 and 2 minutes'
    """
    minutes: dict[str, list[str]] = {}
    for origin in dict.fromkeys(origins):
        place, _, took = origin.rpartition(", in ")
        minutes.setdefault(place, []).append(took.removesuffix(" minutes"))
    listed = {place: " and ".join([*filter(None, [", ".join(some[:-1])]), some[-1]])
              for place, some in minutes.items()}  # fmt: skip
    return "; ".join(f"{place}, in {some} minutes" for place, some in listed.items())


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row per finding: slug, paper, title, sentence, caption, alt."""
    names = ("slug", "paper", "title", "sentence", "caption", "alt")
    return pd.DataFrame([{name: getattr(one, name) for name in names} for one in findings])
