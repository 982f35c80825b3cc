"""How the comparison stands on a page: tables, a figure for each family, sentences, the decision guide."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paperlib.core import round_down
from paperlib.papers.comparison.audits import (
    ACCESS,
    ADD_REMOVE,
    AUDITS,
    BOUNDS,
    LOWER,
    MEASURED,
    REPLACEMENT,
    WITHIN,
)
from paperlib.report import COLORS, legend_below, panels, show_figure, show_table

_WORDS = {
    "coins": "fair coins tossed before training",
    "retraining": "time to train many times, which the seconds leave out",
    "nonmembers": "real records of the same kind that were not trained on",
    "generator": "a generator of non-members",
}
_NO_BREAK = "\N{NO-BREAK SPACE}"
_HEADINGS = {
    "target": "Target",
    "audit": "Audit",
    "shown_number": "ε (nats)",
    "shown_about": "Speaks of",
    "shown_theory": "Guarantee",
}
_LOOKS = {
    ADD_REMOVE: (COLORS[0], "o", "lower bound, add/remove"),
    REPLACEMENT: (COLORS[1], "s", "lower bound, replacement"),
    WITHIN: (COLORS[2], "^", "lower bound within a family"),
    MEASURED: (COLORS[6], "D", "measurement"),
}


def shown_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``shown_epsilon``, ``shown_number`` and ``shown_theory``: text of two decimals.

    Lower bounds are rounded down; a measurement has its interval beside it, if it has one.

    >>> row = {"kind": "lower bound", "epsilon": 1.239, "low": 1.239, "high": float("inf"), "theory": 2.0}
    >>> shown_rows(pd.DataFrame([row])).filter(like="shown").values.tolist()
    [['1.23', '≥\N{NO-BREAK SPACE}1.23', '2.00']]
    """
    text = [_texts(row) for row in frame.to_dict("records")]
    names = ("shown_epsilon", "shown_number", "shown_theory")
    return frame.assign(**{name: [row[at] for row in text] for at, name in enumerate(names)})


def _texts(row: Mapping[Any, Any]) -> tuple[str, str, str]:
    theory = "–" if pd.isna(row["theory"]) else f"{row['theory']:.2f}".replace("inf", "none")
    if row["kind"] in BOUNDS:
        number = f"{round_down(row['epsilon'], 2):.2f}"
        return number, f"≥ {number}".replace(" ", _NO_BREAK), theory
    number = f"{row['epsilon']:.2f}"
    interval = "" if pd.isna(row["low"]) else f" [{row['low']:.2f}, {row['high']:.2f}]"
    return number, f"{number}{interval}".replace(" ", _NO_BREAK), theory


def show_family(table: pd.DataFrame, family: str) -> None:
    """Show the figure and the table of one family."""
    rows, name = table[table["family"] == family], "compare-" + family.replace(" ", "-")
    delta, confidence = rows["delta"].iloc[0], rows["confidence"].iloc[0]
    show_figure(
        bounds_figure(rows),
        name=name,
        caption=f"Every audit of each {family}, δ = {delta:g}, confidence {confidence:g}.",
        alt=describe_bounds(rows),
        data=rows[["target", "audit", "kind", "about", "epsilon", "low", "high", "theory"]],
    )
    show_table(
        rows.assign(
            shown_about=rows["about"].mask(rows["kind"] == WITHIN, rows["about"] + ", family of curves")
        ),
        name=f"{name}-rows",
        columns=_HEADINGS,
        caption=f"Every audit of each {family}. Lower bounds (≥) are rounded down; the others are "
        "measurements, with their interval in brackets. Guarantee: the ε of training for the neighbours that "
        "the row speaks of. The file has the sentence that each number supports, the access it needed, and "
        "its seconds.",
    )


def show_access(table: pd.DataFrame) -> None:
    """Show what each audit needs."""
    show_table(
        access_table(table),
        name="compare-access",
        columns={
            "audit": "Audit",
            "coins": "Coins before training",
            "retraining": "Training again",
            "nonmembers": "Real non-members",
            "generator": "Generator",
            "labels": "Labels",
        },
        caption="What each audit needs. Labels are needed for the losses of the classifier only.",
    )


def show_guide(table: pd.DataFrame) -> None:
    """Show what to use, by what an auditor has."""
    targets = len(table[["family", "target"]].drop_duplicates())
    show_table(
        decision_guide(table),
        name="compare-decision-guide",
        columns={
            "you_have": "You have",
            "use": "Use",
            "you_get": "You get",
            "seconds": "Cost (seconds here)",
        },
        caption=f"What to use, by what you have. Seconds: median over the {targets} targets of this page.",
    )


def access_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per audit, and whether it needs each kind of access on any target: "yes" or empty."""
    needed = frame.groupby("audit")[list(ACCESS)].any().reindex(_in_order(frame))
    return needed.map(lambda one: "yes" if one else "").rename_axis("audit").reset_index()


def _in_order(frame: pd.DataFrame) -> list[str]:
    """Audits of the rows, in the order of `AUDITS`."""
    present = set(frame["audit"])
    return [one.name for one in AUDITS if one.name in present]


def bounds_figure(frame: pd.DataFrame) -> Figure:
    """One panel per target: every number, lower bounds filled, measurements hollow, the guarantee as a bar.

    A guarantee far above all numbers stands at the right edge, in digits.
    """
    limit = 1.1 * max(1.0, frame["epsilon"].max(), frame["high"][np.isfinite(frame["high"])].max())
    names, audits = list(frame["target"].unique()), _in_order(frame)
    fig, axes = panels(len(names), height=0.24 * len(audits) + 0.5, share_x=True)
    for axis, (name, rows) in zip(axes, frame.groupby("target", sort=False), strict=True):
        for row in rows.to_dict("records"):
            _draw(axis, len(audits) - 1 - audits.index(row["audit"]), row, limit)
        axis.set(title=name, ylim=(-0.6, len(audits) - 0.4))
        axis.set_yticks(range(len(audits)), audits[::-1])
    axes[-1].set(xlabel="ε (nats)", xlim=(-0.03 * limit, limit))
    legend_below(fig, columns=1)
    return fig


def _draw(axis: Axes, place: int, row: Mapping[Any, Any], limit: float) -> None:
    bound = row["kind"] != MEASURED
    color, marker, label = _LOOKS[row["about"] if row["kind"] == LOWER else row["kind"]]
    if not bound and pd.notna(row["low"]):
        axis.plot([row["low"], row["high"]], [place, place], color=color, linestyle="-", linewidth=1)
    look: dict[str, Any] = {"marker": marker, "markersize": 6, "color": color, "label": label}
    axis.plot(row["epsilon"], place, linestyle="", markerfacecolor=color if bound else "none", **look)
    if limit < row["theory"] < np.inf:
        axis.text(limit, place, f"{row['theory']:.1f} →", ha="right", va="center")
    elif row["theory"] <= limit:
        look = {"color": "black", "linestyle": "-", "linewidth": 2, "zorder": 1}
        axis.plot([row["theory"]] * 2, [place - 0.5, place + 0.5], label="ε that training guarantees", **look)


def describe_bounds(frame: pd.DataFrame) -> str:
    """The figure of one family in words."""
    parts = []
    for name, rows in frame.groupby("target", sort=False):
        told = [f"{row.audit} {row.shown_epsilon}" for row in shown_rows(rows).itertuples()]
        parts.append(f"{name}: {', '.join(told)}")
    told = f"A panel for each of {len(parts)} targets, a row for each audit, epsilon in nats"
    return f"{told}. {'; '.join(parts)}."


def decision_guide(frame: pd.DataFrame) -> pd.DataFrame:
    """What to use, by what an auditor has, from the rows of `compare_audits`."""
    return pd.DataFrame([_advice(name, frame[frame["audit"] == name]) for name in _in_order(frame)])


def _advice(name: str, rows: pd.DataFrame) -> dict[str, object]:
    first, needed = rows.iloc[0], [one for one in ACCESS if rows[one].any()]
    have = [_WORDS[one] for one in needed if one != "labels"] + [first["have"]] * bool(first["have"])
    about = {ADD_REMOVE: "adding or removing a record", REPLACEMENT: "replacing a record"}
    get = f"{LOWER} on ε of training, {about.get(first['about'])}"
    if first["kind"] == WITHIN:
        get += ", if its trade-off curve is of the named family"
    if first["kind"] == MEASURED:
        get = "measurement of this model, no bound on ε"
    return {
        "you_have": "; ".join(have),
        "use": name,
        "page": first["page"],
        "you_get": get,
        "access": ", ".join(needed),
        "seconds": float(rows["seconds"].median()),
    }


def things_to_take(frame: pd.DataFrame) -> str:
    """Three points that follow from the rows of `compare_audits`, as a numbered list."""
    known = frame[np.isfinite(frame["add_remove"])]
    bounds, measured = known[known["kind"] == LOWER], known[known["kind"] == MEASURED]
    above = int((bounds["epsilon"] > bounds["theory"]).sum())
    over = int((measured["epsilon"] > measured["add_remove"]).sum())
    points = (
        f"**Lower bounds.** Where training guarantees an ε, {above} of {len(bounds)} lower bounds lie above "
        "the ε of their own adjacency. Each may do so with probability "
        f"{1 - frame['confidence'].iloc[0]:.2g} at most.",
        f"**Measurements.** {over} of {len(measured)} measurements on the same targets lie above the ε that "
        "training guarantees for adding or removing a record. A measurement speaks of one trained model, so "
        "this is no contradiction. It is no bound on the ε of training.",
        _over_training(frame),
    )
    return "\n".join(f"{number}. {one}" for number, one in enumerate(points, 1))


def _over_training(frame: pd.DataFrame) -> str:
    """How the bound of the first audit goes from the least to the most trained target of each family."""
    rows = frame[frame["audit"] == AUDITS[0].name]
    rows = rows.assign(shown=shown_rows(rows)["shown_epsilon"], private=np.isfinite(rows["add_remove"]))
    told = []
    for family, part in rows.groupby("family", sort=False):
        plain, private = (part[part["private"] == flag] for flag in (False, True))
        if len(plain):
            ends = [f"{one['shown']} ({one['target']})" for one in plain.iloc[[0, -1]].to_dict("records")]
            told.append(f"{family} {' and '.join(ends)}, with DP-SGD {' and '.join(private['shown'])}")
    return (
        f"**Over-training.** The audit *{AUDITS[0].name}* shows for the least and the most trained model, in "
        f"nats: {'; '.join(told)}. Each audit was fixed before looking: the largest of several numbers on "
        "one target is not covered by their confidence."
    )
