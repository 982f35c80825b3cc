"""What PANORAMIA does not say: null targets, and which neighbouring data sets its number is about."""

from typing import Any

import pandas as pd

from paperlib.bounds import gaussian_dp_epsilon
from paperlib.core import FloatArray
from paperlib.papers.findings.finding import Finding
from paperlib.papers.panoramia.null.matched import MARGIN, over_worlds
from paperlib.report import dot_rows, legend_below, panels

PLAIN = "D_G and generated"
"""Helpers of the paper's kind, which learn no member."""


def nulls(games: pd.DataFrame, origin: str) -> Finding:
    """Eps-tilde of targets and of null targets, which never saw a member, by kind of data."""
    table = over_worlds(games)
    rows = table[table["helpers"] == PLAIN].sort_values(["data", "null"], ignore_index=True)
    null = rows[rows["null"].astype(bool)]
    alarms = null[null["low"] > MARGIN]
    figure, (axis,) = panels(height=0.5 + 0.42 * len(rows))
    axis.axvspan(-MARGIN, MARGIN, color="#dddddd", zorder=0)
    kinds = rows["null"].astype(bool).map({True: "null", False: "target"})
    dot_rows(axis, [f"{data}, {kind}" for data, kind in zip(rows["data"], kinds, strict=True)],
             rows["eps_tilde"], low=rows["low"], high=rows["high"])  # fmt: skip
    axis.set_xlabel("eps~ (nats), not clipped")
    listed = "; ".join(
        f"{row['data']}: null {_range(row)}, target {_range(_target(rows, row['data']))}"
        for row in null.to_dict("records")
    )
    found = [
        f"on {one['data']} it is {_range(one)}, beside {_range(_target(rows, one['data']))} of the target"
        for one in alarms.to_dict("records")
    ]
    verdict = (
        f"But {'; '.join(found)}: there a part of the number is no leakage."
        if found
        else f"Here every interval reaches into the margin of {MARGIN:g}."
    )
    return Finding(
        slug="nulls",
        paper="panoramia",
        title="A model that never saw the members can score as if it had",
        sentence=r"$\tilde\varepsilon$ should be 0 for a *null target*, a model trained like the target "
        r"on other "
        f"records. {verdict} The paper has no null target.",
        figure=figure,
        caption=r"$\tilde\varepsilon$ of targets and of null targets, with helpers of the paper's kind: "
        r"means and "
        f"95 % t-intervals over worlds; grey: the margin of {MARGIN:g} that a null must lie in ({origin}).",
        alt=f"A row with a dot and an interval for each target and null target. {listed}.",
        data=rows,
    )


def _target(rows: pd.DataFrame, data: str) -> Any:
    return rows[(rows["data"] == data) & ~rows["null"].astype(bool)].iloc[0]


def _range(row: Any) -> str:
    return f"{row['eps_tilde']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def replacement(noises: FloatArray, *, delta: float) -> Finding:
    """Epsilon of Gaussian noise for adding or removing a record, and for replacing it."""
    table = pd.DataFrame({"noise": noises})
    table["add or remove"] = gaussian_dp_epsilon(1 / noises, delta)
    table["replace"] = gaussian_dp_epsilon(2 / noises, delta)
    figure, (axis,) = panels()
    for name, marker in (("add or remove", "o"), ("replace", "s")):
        axis.plot(table["noise"], table[name], marker=marker, label=name)
    axis.set(xlabel="noise / influence of one record", ylabel="epsilon (nats)", yscale="log")
    legend_below(figure)
    ratio = table["replace"] / table["add or remove"]
    return Finding(
        slug="replacement",
        paper="panoramia",
        title="Coins tossed after training bound another epsilon",
        sentence="In PANORAMIA, and with natural identifiers, a non-member that is shown stands in the "
        "place of a "
        "member that was trained on. So their bounds are about *replacing* a record. DP-SGD's guarantee "
        "is about "
        f"*adding or removing* one. For Gaussian noise at $\\delta$ = {delta:g} the epsilon for "
        "replacing is "
        f"{ratio.min():.2f} to {ratio.max():.2f} times the other: a bound above the guarantee of the "
        "training need "
        "not contradict it.",
        figure=figure,
        caption=f"Epsilon of the Gaussian mechanism at $\\delta$ = {delta:g} for both kinds of "
        "neighbouring data "
        "sets (exact).",
        alt="Two falling curves over the noise; the one for replacing lies above. At the least noise "
        f"{table['add or remove'].iloc[0]:.2f} for adding or removing and {table['replace'].iloc[0]:.2f} "
        "for "
        f"replacing, at the most {table['add or remove'].iloc[-1]:.2f} and "
        f"{table['replace'].iloc[-1]:.2f}.",
        data=table,
    )
