"""The tables of a report: measures, most exposed records, groups, the model, where the numbers come from."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from paperlib.core import AuditResult, MembershipScores, ScoreMeasures
from paperlib.core.results import round_up
from paperlib.report.audit.about import About, about_schema
from paperlib.report.audit.exposed import most_exposed, standing_out, tied_with_last
from paperlib.report.audit.groups import groups_and_count
from paperlib.report.audit.parts import data_table, pairs_table, paragraphs, section, with_interval
from paperlib.report.audit.verdict import ceiling_of
from paperlib.report.tables import format_cell

_MOST_GROUPS = 50
Names = Sequence[Any] | np.ndarray


def measures_section(measures: ScoreMeasures, result: AuditResult | None) -> str:
    """AUC and true-positive rates with intervals, and the most that so many examples could have shown."""
    sure = f"{100 * measures.confidence:g} %"
    rows = [
        (
            "AUC",
            with_interval(measures.auc, *measures.auc_interval),
            f"{sure} interval; 0.5 is guessing, 1 is perfect",
        )
    ]
    for rate in measures.rates:
        name = f"TPR at {100 * rate.false_positive_rate:g} % FPR"
        if rate.true_positive_rate is None or rate.interval is None:
            rows.append((name, "–", rate.note))
            continue
        value = with_interval(rate.true_positive_rate, *rate.interval)
        note = f"{sure} interval, with the threshold's error; guessing gives {rate.false_positive_rate:g}"
        rows.append((name, value, "; ".join(filter(None, [note, rate.note]))))
    ceiling = None if result is None else ceiling_of(result)
    if ceiling is not None:
        total = getattr(result, "total", None)
        records = "so many" if total is None else f"{total:,}"
        rows.append(
            ("Ceiling", f"ε ≤ {round_up(ceiling):.3f}", f"the most that {records} audited records could show")
        )
    return section(
        "Measures",
        data_table(("Measure", "Value [interval]", "Note"), rows, name="Measures", values=(1,)),
        "<p class='soft'>AUC and rates describe this attack on these records. They are no bounds on "
        "epsilon.</p>",
        name="short",
    )


def exposed_section(
    scores: MembershipScores, ids: Names | None, *, doubted: bool = False, count: int = 20
) -> str:
    """The members whose scores point to membership most; nobody while the direction is in doubt."""
    if doubted:
        reason = "Not shown while the direction of the score, or who was trained on, is in doubt."
        return section("Most exposed records", f"<p>{reason}</p>")
    number = standing_out(scores)
    stand_out = (
        f"{number:,} of {scores.member.size:,} members stand out: at most 1 % of the non-members reach"
    )
    if not number:
        text = f"<p>{stand_out} their score. Nobody is listed.</p>"
        return section("Most exposed records", text)
    found = most_exposed(scores, ids, min(count, number))
    as_extreme, others = "nonmembers_as_extreme", scores.nonmember.size
    what, extreme = ("score", "high") if scores.higher_means_member else ("loss", "low")
    rows = [
        (str(row["record"]), f"{row['score'] + 0.0:.5g}", f"{row[as_extreme]:,} of {others:,}")
        for row in found.to_dict("records")
    ]
    named = "Record" if ids is not None else "Member number"
    by = "" if ids is not None else "Members are numbered from 1 in the order they were given."
    more = tied_with_last(scores, found)
    return section(
        "Most exposed records",
        f"<p>{stand_out} their {what}. These are scores of single records and no bounds; nothing "
        f"is claimed about any of them, so that picking them needs no correction. {by}</p>"
        "<p class='soft'>This table tells who was trained on: share it with care.</p>",
        data_table(
            (named, what.capitalize(), f"Non-members with as {extreme} a {what}"), rows, name="Most exposed"
        ),
        paragraphs([f"{more:,} more members have the {what} of the last row." if more else ""], "soft"),
    )


def groups_section(scores: MembershipScores, groups: Names | None, confidence: float) -> str:
    """The measures of each group, where groups are given."""
    if groups is None:
        return ""
    found, count = groups_and_count(scores, groups, confidence, _MOST_GROUPS)
    left_out = count - len(found)
    sure = f"{100 * confidence:g} %"
    note = f"{left_out:,} smaller groups are not shown." if left_out else ""
    return section(
        "Groups",
        "<p>Measurements within each group, largest group first. They are no bounds on epsilon, and each "
        "interval holds for itself: among many groups some stand out by chance.</p>",
        data_table(
            ("Group", "Members", "Non-members", f"AUC [{sure}]", f"TPR at 1 % FPR [{sure}]"),
            [_group_row(row) for row in found.to_dict("records")],
            name="Groups",
            values=(3, 4),
            wide=True,
        ),
        paragraphs([note], "soft"),
    )


def _group_row(row: Mapping[Any, Any]) -> tuple[str, ...]:
    auc, rate = (
        "–" if pd.isna(row[name]) else with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
        for name in ("auc", "tpr")
    )
    if row["note"]:
        rate = f"– ({row['note']})"
    return str(row["group"]), f"{row['members']:,}", f"{row['nonmembers']:,}", auc, rate


def about_section(about: About | None) -> str:
    """The model in its owner's words."""
    fields = (about or About()).to_dict()
    titles = about_schema()["properties"]
    return section(
        "About the model",
        pairs_table(
            [(titles[name]["title"], text or "not given") for name, text in fields.items()], links=True
        ),
        name="short",
    )


def facts_section(facts: Mapping[str, str]) -> str:
    """Where the numbers come from."""
    return section(
        "Where these numbers come from",
        pairs_table([(name, format_cell(text)) for name, text in facts.items()]) if facts else "",
    )
