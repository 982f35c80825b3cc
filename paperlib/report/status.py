"""The landing page's table: every table and figure of the papers, and what our runs say about it."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pandas as pd

from paperlib.report.printed import PAPERS, targets
from paperlib.report.records import REDUCED
from paperlib.report.tables import pipe_table

NOT_YET = "not yet"
COLUMNS = ("id", "paper", "item", "what", "notebook", "status", "scale", "paper_number", "our_number", "note")
CSV_NAME = "status.csv"


def status_table(
    runs: Iterable[Mapping[str, Any]], measured: Iterable[Mapping[str, Any]] = ()
) -> pd.DataFrame:
    """One row per target and finding; a target without finding has one row, "not yet".

    Args:
        runs: Result files of the notebooks run here, each with ``notebook`` and ``records``.
        measured: Committed result files of large runs, with ``provenance`` too.

    Returns:
        Columns ``COLUMNS``, in the papers' order; no target is ever left out. ``status`` is
        "holds", "does not hold" or "not yet"; ``scale`` is "paper's" or what is smaller.
    """
    findings = [_finding(run, item, "") for run in runs for item in run["records"]]
    findings += [_finding(run, item, _measured_on(run)) for run in measured for item in run["records"]]
    rows: list[dict[str, Any]] = []
    for target in targets().to_dict("records"):
        about = {
            "id": target["id"],
            "paper": target["paper"],
            "item": target["item"],
            "what": target["what"],
            "notebook": target["notebook"],
            "paper_number": target["headline"],
        }
        mine = [{**about, **item} for item in findings if item["id"] == target["id"]]
        rows += mine or [{**about, "status": NOT_YET, "scale": "", "our_number": "", "note": ""}]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _finding(run: Mapping[str, Any], item: Mapping[str, Any], where: str) -> dict[str, Any]:
    scale = "paper's" if item["scale"] == "paper" else item["scale"].removeprefix(REDUCED)
    return {
        "id": item["target"],
        "notebook": run["notebook"],
        "status": "holds" if item["holds"] else "does not hold",
        "scale": scale + where,
        "paper_number": item["paper"],
        "our_number": item["ours"],
        "note": item["note"],
    }


def _measured_on(run: Mapping[str, Any]) -> str:
    origin = run["provenance"]
    return f", measured {str(origin.get('date', ''))[:10]} on {origin.get('gpu') or origin.get('cpu')}"


def status_markdown(table: pd.DataFrame, *, profile: str, pages: Collection[str]) -> str:
    """The status as MyST: counts, one table per paper, and the CSV.

    Args:
        table: Table from `status_table`.
        profile: The profile of the runs.
        pages: Notebooks that have a page in the book; only these are linked.
    """
    parts = [_summary(table, profile)]
    parts += [_section(paper, table[table["paper"] == paper], pages) for paper in PAPERS]
    parts.append(f"All rows: {{download}}`{CSV_NAME} </_generated/data/{CSV_NAME}>`.")
    return "\n\n".join(parts) + "\n"


def _summary(table: pd.DataFrame, profile: str) -> str:
    total = table["id"].nunique()
    counted = {
        status: table.loc[table["status"] == status, "id"].nunique()
        for status in ("holds", "does not hold", NOT_YET)
    }
    full = table.loc[(table["status"] == "holds") & table["scale"].str.startswith("paper's"), "id"].nunique()
    return (
        f"Of {total} tables and figures, {counted['holds']} hold ({full} at the paper's scale), "
        f"{counted['does not hold']} do not hold, and {counted[NOT_YET]} are not reproduced yet. "
        f"Runs of this book: profile `{profile}`."
    )


def _section(paper: str, rows: pd.DataFrame, pages: Collection[str]) -> str:
    shown = pd.DataFrame(
        {
            "Item": [_link(*row, pages) for row in zip(rows["item"], rows["notebook"], strict=True)],
            "Shows": [_plain(text) for text in rows["what"]],
            "Status": [_status(*row) for row in zip(rows["status"], rows["scale"], strict=True)],
            "Paper": [_plain(text) for text in rows["paper_number"]],
            "Ours": [_plain(text) or "–" for text in rows["our_number"]],
        }
    )
    slug = paper.replace("_", "-")
    return f"````{{table}} {_plain(PAPERS[paper])}\n:name: tbl-status-{slug}\n\n{pipe_table(shown)}\n````"


def _status(status: str, scale: str) -> str:
    if not scale:
        return status
    size = (
        scale.replace("paper's", "at the paper's scale", 1)
        if scale.startswith("paper's")
        else f"reduced: {scale}"
    )
    return _plain(f"{status} ({size})")


def _link(item: str, notebook: str, pages: Collection[str]) -> str:
    page = next((name for name in notebook.split("; ") if name in pages), None)
    whole = item.replace(" ", "\N{NO-BREAK SPACE}")
    return f"{{doc}}`{whole} </notebooks/{page}>`" if page else whole


def _plain(text: str) -> str:
    """Keep Markdown from reading stars, tildes, braces and dollars as markup."""
    return "".join("\\" + letter if letter in "*_~{}$[]<>`" else letter for letter in text)
