"""The papers' own numbers: facts as printed, shipped as CSV."""

from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

import pandas as pd

from paperlib.core.checks import check_choice

PAPERS = {
    "panoramia": "PANORAMIA",
    "epsilon_star": "Epsilon*",
    "natural_identifiers": "Natural Identifiers",
    "output_sets": "Optimal Output Sets",
}
"""Short names of the papers, in the book's order."""


def paper_tables() -> list[str]:
    """Names of the tables that `paper_table` can give."""
    return sorted(_files())


def paper_table(name: str, *, as_printed: bool = False) -> pd.DataFrame:
    """One of the `paper_tables`; ``as_printed`` keeps every cell as text with the printed decimals.

    Raises:
        ValueError: An unknown name.

    >>> paper_table("panoramia_table02")[["dataset", "c_lb"]].head(1).to_dict("records")
    [{'dataset': 'CIFAR10', 'c_lb': 2.44}]
    """
    files = _files()
    check_choice("name", name, sorted(files))
    with files[name].open(encoding="utf-8") as file:
        if as_printed:
            return pd.read_csv(file, dtype=str, keep_default_na=False)
        return pd.read_csv(file)


@cache
def _files() -> dict[str, Traversable]:
    """Files by the name of their table."""
    folder = resources.files("paperlib.reproduction.exhibits").joinpath("printed_tables")
    folders = [folder, *(folder.joinpath(paper) for paper in PAPERS)]
    files = [file for subfolder in folders for file in subfolder.iterdir()]
    return {file.name.removesuffix(".csv"): file for file in files if file.name.endswith(".csv")}


def targets() -> pd.DataFrame:
    """Every result table and figure of the four papers, one row each, as text.

    Columns: id, paper, item, what, notebook (names joined by "; "), claim, unit, repetitions, runs,
    own_data, widest (see `paperlib.reproduction.papers.verdict.evidence`), headline (the paper's
    number), its source, and the page of the table or figure, empty where it is not known.

    >>> len(targets())
    50
    """
    return paper_table("targets", as_printed=True).merge(
        paper_table("headlines", as_printed=True), on="id"
    )
