"""The page of errata: one table for each paper, what each entry means, folded AUCs, wording, readings."""

import html

import pandas as pd

from paperlib.papers.errata import other_papers, panoramia
from paperlib.papers.errata.rows import check_table, in_words
from paperlib.report import paper_table, show_table, show_text
from paperlib.report.display import Bundle, keep_csv, show
from paperlib.report.printed import PAPERS

CODED = {
    "panoramia": panoramia.CHECKS,
    "epsilon_star": other_papers.EPSILON_STAR,
    "natural_identifiers": other_papers.NATURAL_IDENTIFIERS,
    "output_sets": other_papers.OUTPUT_SETS,
}
"""Checks that need code, by the paper's key."""


def check_tables() -> dict[str, pd.DataFrame]:
    """Every check of every paper: rows of `check_table` by the paper's key."""
    return {paper: check_table(paper, checks).round(9) for paper, checks in CODED.items()}


def show_summary(tables: dict[str, pd.DataFrame]) -> None:
    """How many checks fit, and the file with all of them."""
    every = pd.concat(tables, names=["paper"]).reset_index(level=0)
    fit, slips = int(every["fits"].sum()), len(paper_table("errata_wording", as_printed=True))
    words = (
        f"In all, {len(every)} checks were computed: {fit} fit, {len(every) - fit} do not. Another {slips} "
        "slips are of wording: a wrong cross-reference, a name, a missing symbol, something not stated."
    )
    link, download = keep_csv("errata-checks", every.to_csv(index=False))
    show(Bundle(html=f"<p>{words}</p><p>{link}</p>", markdown=f"{words}\n\n{download}\n", text=words))


def entries(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each entry, of the checks 3a, 3b, ... that which fits least, as text.

    Columns: no, place, compared, printed, follows, fits, checks and fitting (how many there are, and fit).
    """
    numbers = table["no"].str.extract(r"(\d+)")[0]
    excess = table["off"] - table["allowed"]
    worst = excess.groupby(numbers, sort=False).idxmax()
    counts = table["fits"].groupby(numbers, sort=False).agg(["size", "sum"])
    first = table["compared"].groupby(numbers).transform("first")
    told = table["compared"].where(
        ~table["compared"].str.startswith("The same"), first + " " + table["compared"]
    )
    rows = table.assign(compared=told).loc[worst, ["place", "compared", "printed", "follows"]]
    fits = [_fits(row) for row in table.loc[worst].to_dict("records")]
    columns = {"fits": fits, "checks": counts["size"].to_numpy(), "fitting": counts["sum"].to_numpy()}
    return rows.assign(no=worst.index, **columns).reset_index(drop=True)


def _fits(row: dict) -> str:
    """Whether a check fits, with its distance beside what rounding allows.

    >>> _fits({"fits": False, "off": 0.12, "allowed": 0.01}), _fits({"fits": True, "off": 0, "allowed": 0})
    ('no: 0.12 > 0.01', 'yes')
    """
    off, allowed = (
        f"{row[name]:.3g}" if row[name] < 1000 else f"{row[name]:,.0f}" for name in ("off", "allowed")
    )
    if row["fits"]:
        return f"yes: {off} ≤ {allowed}" if row["off"] or row["allowed"] else "yes"
    return f"no: {off} > {allowed}"


def show_checks(paper: str, table: pd.DataFrame) -> None:
    """The entries of a paper, and below them, folded, what every check means for a reader."""
    show_table(
        entries(table),
        name=f"errata-{paper.replace('_', '-')}",
        columns={
            "no": "No.",
            "place": "Place",
            "compared": "What is compared",
            "printed": "Printed",
            "follows": "Follows",
            "fits": "Fits within rounding",
        },
        caption=f"{PAPERS[paper]}: {int(table['fits'].sum())} of {len(table)} checks fit. One row for each "
        "entry; of several checks the one that fits least.",
    )
    words, title = in_words(table), "What each check means for a reader"
    folded = "".join(f"<li>{html.escape(line[2:])}</li>" for line in words.splitlines())
    show(
        Bundle(
            html=f"<details><summary>{title}</summary><ul>{folded}</ul></details>",
            markdown=f"````{{dropdown}} {title}\n{words}\n````\n",
            text=f"{title}\n{words}",
        )
    )


def show_wording(paper: str) -> None:
    """Slips of wording of a paper."""
    wording = paper_table("errata_wording", as_printed=True)
    show_table(
        wording[wording["paper"] == paper],
        name=f"errata-{paper.replace('_', '-')}-wording",
        columns={"no": "No.", "place": "Place", "printed": "Printed", "meant": "Meant"},
        caption=f"{PAPERS[paper]}: slips of wording.",
    )


def show_folding(draws: int) -> None:
    """Folded AUCs of noise beside those printed for test sets."""
    cells, folded = other_papers.auc_cells()["value_pct"], other_papers.folding(draws)
    show_table(
        folded,
        name="errata-folding",
        columns={
            "test set": "Test set",
            "NIDs": "Identifiers",
            "noise, mean": "Noise, mean",
            "noise, 95 %": "Noise, 95 %",
            "least printed": "Least printed",
            "largest": "Largest printed",
        },
        caption="Folded AUC of pure noise with that many independent identifiers, each against 127 "
        f"alternatives, beside the AUCs printed for test sets, percent. Of all {len(cells)} cells "
        f"{int((cells < 50).sum())} are below 50.0; if a fair coin decided each, the chance of none would be "
        f"{2.0 ** -len(cells):.0e}. The cells share identifiers and models: a guide, not a test.",
    )
    below = folded.loc[folded["largest"] < folded["noise, mean"], "test set"]
    if len(below):
        show_text(
            f"On {len(below)} of the test sets ({', '.join(below)}) even the largest printed AUC is below "
            "the mean of folded noise. We cannot explain that."
        )


def show_readings() -> None:
    """How doubtful places of the texts were read."""
    readings = paper_table("errata_readings", as_printed=True)
    show_table(
        readings.assign(paper=readings["paper"].map(PAPERS)),
        name="errata-readings",
        columns={"paper": "Paper", "reading": "Our reading"},
        caption="Readings of doubtful places.",
    )
