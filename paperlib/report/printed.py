"""The papers' own numbers: facts as printed, shipped as CSV, with their known inconsistencies as notes."""

from importlib import resources

import pandas as pd

PAPERS = {
    "panoramia": "PANORAMIA",
    "epsilon_star": "Epsilon*",
    "natural_identifiers": "Natural Identifiers",
    "output_sets": "Optimal Output Sets",
}
"""Short names of the papers, in the book's order."""


def paper_tables() -> list[str]:
    """Names of the tables that `paper_table` can give.

    >>> "epsilon_star_text" in paper_tables()
    True
    """
    files = resources.files("paperlib.report").joinpath("papers").iterdir()
    return sorted(item.name.removesuffix(".csv") for item in files if item.name.endswith(".csv"))


def paper_table(name: str, *, as_printed: bool = False) -> pd.DataFrame:
    """One table of numbers as a paper prints them.

    Args:
        name: One of `paper_tables`, such as ``"panoramia_table03"`` or ``"epsilon_star_text"``.
        as_printed: Keep every cell as text with the printed decimals.

    Raises:
        ValueError: An unknown name; the message lists the known ones.

    >>> paper_table("panoramia_table02")[["dataset", "c_lb"]].head(1).to_dict("records")
    [{'dataset': 'CIFAR10', 'c_lb': 2.44}]
    """
    known = paper_tables()
    if name not in known:
        raise ValueError(f"name: expected one of {', '.join(known)}; got {name!r}")
    with resources.files("paperlib.report").joinpath("papers", f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype=str, keep_default_na=False) if as_printed else pd.read_csv(file)


def targets() -> pd.DataFrame:
    """Every result table and figure of the four papers, one row each, as text.

    Columns: id, paper, item, what, notebook (names joined by "; "), must_show, headline (the
    paper's number to compare with) and source (where the paper prints it).

    >>> len(targets())
    50
    """
    return paper_table("targets", as_printed=True).merge(paper_table("headlines", as_printed=True), on="id")


def target_ids() -> tuple[str, ...]:
    """The ids that `record` accepts, in the papers' order."""
    return tuple(paper_table("targets", as_printed=True)["id"])


def paper_notes(paper: str) -> list[str]:
    """What is inconsistent in a paper, or how a doubtful place was read.

    Args:
        paper: A key of ``PAPERS``.

    Raises:
        ValueError: An unknown paper.

    >>> len(paper_notes("output_sets"))
    13
    """
    if paper not in PAPERS:
        raise ValueError(f"paper: expected one of {', '.join(PAPERS)}; got {paper!r}")
    notes = paper_table("notes", as_printed=True)
    return list(notes.loc[notes["paper"] == paper, "note"])
