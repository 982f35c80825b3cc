"""The tables of a report: measures, most exposed records, groups of records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from paperlib.core import AuditResult, MembershipScores, round_down
from paperlib.core.checks import check_at_least
from paperlib.core.intervals import ScoreMeasures, score_measures
from paperlib.core.results import round_up

if TYPE_CHECKING:
    import pandas as pd

Names = Sequence[Any] | np.ndarray
"""A name, or a group, of each example: members first, then non-members."""

_STAND_OUT = 0.01  # largest share of the non-members that reach the score of a listed member


@dataclass(frozen=True, kw_only=True)
class TableSection:
    """A section of a report with a table, whose first column names the row."""

    title: str
    text: str = ""  # paragraph before the table
    remark: str = ""  # a second one, in a softer colour
    headings: Sequence[str] = ()  # one per column
    rows: Sequence[Sequence[str]] = ()  # cells; without any the section has no table
    one_line: Sequence[
        int
    ] = ()  # positions of columns whose cells stay on one line where there is room
    wide: bool = False  # many columns, which a phone scrolls sideways
    note: str = ""  # paragraph below the table
    style: str = "part"  # or "short" for a section that paper keeps on one page


def with_interval(value: float, low: float, high: float, digits: int = 3) -> str:
    """A share, in [0, 1], with its interval, whose ends are rounded outwards to ``digits``
    decimals: "0.750 [0.701, 0.793]".
    """
    low, high = round_down(low, digits), min(1.0, round_up(high, digits))
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def measures_section(measures: ScoreMeasures, result: AuditResult | None) -> TableSection:
    """AUC and true-positive rates with intervals, a row each, and the ceiling of ``result`` (nats):
    the most that so many examples could have shown; without a result there is no such row.
    """
    sure = f"{100 * measures.confidence:g} %"
    auc = with_interval(measures.auc, *measures.auc_interval)
    rows = [("AUC", auc, f"{sure} interval; 0.5 is guessing, 1 is perfect")]
    for rate in measures.rates:
        if rate.true_positive_rate is None or rate.interval is None:
            rows.append((rate.name, "–", rate.note))
            continue
        value = with_interval(rate.true_positive_rate, *rate.interval)
        note = (
            f"{sure} interval, with the threshold's error; guessing gives "
            f"{rate.false_positive_rate:g}"
        )
        rows.append((rate.name, value, "; ".join(filter(None, [note, rate.note]))))
    ceiling = None if result is None else result.most
    if result is not None and ceiling is not None:
        records = "so many" if result.total is None else f"{result.total:,}"
        most = f"the most that {records} audited records could show"
        rows.append(("Ceiling", f"ε ≤ {round_up(ceiling):.3f}", most))
    return TableSection(
        title="Measures",
        headings=("Measure", "Value [interval]", "Note"),
        rows=rows,
        one_line=(1,),
        note="AUC and rates describe this attack on these records. They are not bounds on epsilon.",
        style="short",
    )


def most_exposed(
    scores: MembershipScores, ids: Sequence[Any] | np.ndarray | None = None, count: int = 20
) -> "pd.DataFrame":
    """The members with the most extreme scores, most extreme first.

    These are scores of single records and no bounds: picking them needs no correction.

    Args:
        ids: One name per example, members first; by default members are numbered from 1 on.
        count: Largest number of rows, 1 or more.

    Returns:
        Columns record, score, nonmembers_as_extreme (non-members whose score points to membership
        at least as much) and share (of all non-members).

    Raises:
        ValueError: Another number of ids than of examples, or a ``count`` below 1.

    >>> most_exposed(MembershipScores([1, 5, 3], [2, 4]), ids=list("abcde"), count=2)
      record  score  nonmembers_as_extreme  share
    0      b    5.0                      0    0.0
    1      c    3.0                      1    0.5
    """
    import pandas as pd  # slow to load, and JSON needs no table

    check_at_least(1, count=count)
    if ids is not None and len(ids) != len(scores):
        raise ValueError(f"ids: expected one for each of {len(scores)} examples, got {len(ids)}")
    oriented = scores.oriented()
    members = pd.Series(oriented.member).nlargest(count).index.to_numpy()
    above = np.array(
        [np.count_nonzero(oriented.nonmember >= value) for value in oriented.member[members]]
    )
    return pd.DataFrame(
        {
            "record": members + 1 if ids is None else [ids[int(member)] for member in members],
            "score": scores.member[members],
            "nonmembers_as_extreme": above,
            "share": above / scores.nonmember.size,
        }
    )


def exposed_section(
    scores: MembershipScores, ids: Names | None, *, doubted: bool = False, count: int = 20
) -> TableSection:
    """The members whose scores point to membership most, at most ``count`` of those whose score at
    most 1 % of non-members reach; nobody while the direction is in doubt (``doubted``).

    ``ids`` has a name of each example, members first; without names members are numbered from 1.
    """
    title = "Most exposed records"
    if doubted:
        reason = "Not shown while the direction of the score, or the membership, is in doubt."
        return TableSection(title=title, text=reason)
    oriented = scores.oriented()  # higher means member
    nonmembers = np.sort(oriented.nonmember)
    # For each member the number of non-members whose score is at least as high.
    reached_by = nonmembers.size - np.searchsorted(nonmembers, oriented.member, side="left")
    number = int(np.count_nonzero(reached_by <= _STAND_OUT * nonmembers.size))
    stand_out = (
        f"{number:,} of {scores.member.size:,} members stand out: at most 1 % of non-members reach"
    )
    if not number:
        return TableSection(title=title, text=f"{stand_out} their score. No record is listed.")
    frame = most_exposed(scores, ids, min(count, number))
    what, extreme = ("score", "high") if scores.higher_means_member else ("loss", "low")
    numbered = (
        "" if ids is not None else " Members are numbered from 1 in the order they were given."
    )
    # Members with the score of the last row that have no row themselves.
    last = float(frame["score"].iloc[-1])
    tied = np.count_nonzero(scores.member == last) - np.count_nonzero(frame["score"] == last)
    return TableSection(
        title=title,
        text=f"{stand_out} their {what}. These are scores of single records, not bounds. Nothing "
        f"is claimed about any of them, so choosing them needs no correction.{numbered}",
        remark="This table shows which records were trained on: share it with care.",
        headings=(
            "Member number" if numbered else "Record",
            what.capitalize(),
            f"Non-members with as {extreme} a {what}",
        ),
        rows=[
            (
                str(row["record"]),
                f"{row['score'] + 0.0:.5g}",  # the sum shows -0.0 as 0
                f"{row['nonmembers_as_extreme']:,} of {nonmembers.size:,}",
            )
            for row in frame.to_dict("records")
        ],
        note=f"{tied:,} more members have the {what} of the last row." if tied else "",
    )


def group_table(
    scores: MembershipScores,
    groups: Sequence[Any] | np.ndarray,
    confidence: float = 0.95,
    *,
    most: int = 50,
) -> "pd.DataFrame":
    """How well the scores tell members from non-members within each group, largest group first.

    The rows are measurements and no bounds on epsilon, and their intervals hold one by one: among
    many groups some stand out by chance.

    Args:
        groups: One group per example, members first; None and NaN make a group "not given".
        confidence: Confidence level of each interval, in (0, 1).
        most: Largest number of rows, 1 or more.

    Returns:
        Columns group, members, nonmembers, auc, auc_low, auc_high, tpr, tpr_low, tpr_high
        (true-positive rate at 1 % false positives) and note (why a value is missing).

    Raises:
        ValueError: Another number of groups than of examples, or ``most`` below 1.

    >>> scores = MembershipScores([3, 4, 1], [1, 2, 0])
    >>> group_table(scores, list("aabaab"))[["group", "members", "nonmembers", "auc"]]
      group  members  nonmembers  auc
    0     a        2           2  1.0
    1     b        1           1  1.0
    """
    import pandas as pd

    check_at_least(1, most=most)
    if len(groups) != len(scores):
        raise ValueError(
            f"groups: expected one for each of {len(scores)} examples, got {len(groups)}"
        )
    codes, names = _coded(groups)  # a number for each example, and the group of each number
    sizes = np.bincount(codes, minlength=len(names))
    rows = []
    for code in np.argsort(-sizes, kind="stable")[:most]:
        in_group = codes == code
        member = scores.member[in_group[: scores.member.size]]
        nonmember = scores.nonmember[in_group[scores.member.size :]]
        # AUC and true-positive rate, each with the two ends of its interval.
        if not nonmember.size:
            measured, note = [np.nan] * 6, "no non-members"
        elif not member.size:
            measured, note = [np.nan] * 6, "no members"
        else:
            group = MembershipScores(
                member, nonmember, higher_means_member=scores.higher_means_member
            )
            measured, note = _group_measures(group, confidence)
        rows.append((names[code], member.size, nonmember.size, *measured, note))
    columns = "group members nonmembers auc auc_low auc_high tpr tpr_low tpr_high note"
    return pd.DataFrame(rows, columns=columns.split())


def _group_measures(scores: MembershipScores, confidence: float) -> tuple[list[float], str]:
    """AUC and TPR at 1 % FPR, each followed by the ends of its interval; NaN where there are too
    few non-members, as the note says.
    """
    measures = score_measures(scores, confidence=confidence)
    rate = next(rate for rate in measures.rates if rate.false_positive_rate == 0.01)
    tpr = np.nan if rate.true_positive_rate is None else rate.true_positive_rate
    tpr_low, tpr_high = rate.interval or (np.nan, np.nan)
    return [measures.auc, *measures.auc_interval, tpr, tpr_low, tpr_high], rate.note


def groups_section(scores: MembershipScores, groups: Names, confidence: float) -> TableSection:
    """The measures of each group, largest first, as by `group_table`; a note below the table counts
    the groups that it leaves out.
    """
    frame = group_table(scores, groups, confidence)
    left_out = len(_coded(groups)[1]) - len(frame)
    sure = f"{100 * confidence:g} %"
    rows = []
    for row in frame.to_dict("records"):
        auc = _interval_text(row, "auc")
        rate = f"– ({row['note']})" if row["note"] else _interval_text(row, "tpr")
        rows.append((str(row["group"]), f"{row['members']:,}", f"{row['nonmembers']:,}", auc, rate))
    return TableSection(
        title="Groups",
        text="Measurements within each group, largest group first. They are not bounds on epsilon, "
        "and each interval holds only by itself: among many groups some stand out by chance.",
        headings=("Group", "Members", "Non-members", f"AUC [{sure}]", f"TPR at 1 % FPR [{sure}]"),
        rows=rows,
        one_line=(3, 4),
        wide=True,
        note=f"{left_out:,} smaller groups are not shown." if left_out else "",
    )


def _interval_text(row: Mapping[Any, Any], name: str) -> str:
    """A measure of a row of `group_table` with its interval, "–" where it is missing."""
    if np.isnan(row[name]):
        return "–"
    return with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _coded(groups: Sequence[Any] | np.ndarray) -> tuple[np.ndarray, list[str]]:
    """A number for each example, shape (n,), and the name of the group that each number stands for;
    missing groups (None, NaN) are one, "not given", which comes last.
    """
    import pandas as pd

    values = groups if isinstance(groups, np.ndarray) else np.asarray(groups, dtype=object)
    codes, groups_in_order = pd.factorize(values)
    names = [str(name) for name in groups_in_order]
    if (codes < 0).any():
        codes = np.where(codes < 0, len(names), codes)
        names.append("not given")
    return codes, names
