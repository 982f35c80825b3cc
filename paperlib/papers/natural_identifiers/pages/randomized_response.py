"""What the page on randomized response shows: Figure 4, the tight bound, and the penalty of delta."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paperlib.bounds import audit_ranks, ranks_from_scores
from paperlib.papers.natural_identifiers.evidence import randomized_response_evidence
from paperlib.papers.natural_identifiers.randomized_response import (
    DeltaConfig,
    RandomizedResponseConfig,
    bounds_by_delta,
    limits,
    simulated_scores,
    vacuous_deltas,
)
from paperlib.papers.verdict import Scale, record
from paperlib.report import COLORS, LINES, MARKERS, legend_below, panels, show_figure, show_table, show_text

PAPERS_SETS = 100_000
"""Sets at the right end of the axis from which a run counts as one at the paper's scale."""
_ONE_AUDIT = (8, 10_000)  # cardinality and sets of the audit that is sampled
_TERMS = {"published": ("Theorem 2", ":"), "sharp": ("sharp", "-")}
_SHORT = {"randomized response": "response", "subset selection": "selection"}


def show_figure_4(frame: pd.DataFrame, config: RandomizedResponseConfig) -> None:
    """Show the paper's bound on randomized response against the number of sets, and judge it."""
    papers = _of(frame, "randomized response", ["paper"])
    ends = _ends(papers)
    show_figure(
        curves_figure(papers, config.curves),
        name="nid-figure-04",
        caption="Figure 4 again: the paper's bound on randomized response, mean over all outcomes. Curves "
        "are (c, r): candidates of a set, and places that count as a hit. The black line is the true ε.",
        alt=f"One panel for each true epsilon, which is a black line. At the most sets: {ends}.",
        data=papers,
    )
    level = "paper's scale" if config.largest_sets >= PAPERS_SETS else "paper's data"
    facts = (
        f"randomized response, up to {config.largest_sets:,} sets; the paper states neither its curves nor "
        "its sets"
    )
    record(randomized_response_evidence(frame, confidence=config.confidence), scale=Scale(level, facts))


def show_one_audit(config: RandomizedResponseConfig, *, seed: int) -> None:
    """Say what one sampled audit shows, beside the means of the figure."""
    epsilon, (cardinality, sets) = config.epsilons[0], _ONE_AUDIT
    scores = simulated_scores(cardinality, epsilon, sets, seed=seed)
    found = audit_ranks(*ranks_from_scores(*scores, seed=seed), confidence=config.confidence)
    show_text(
        f"One audit that is sampled, with {sets:,} sets of {cardinality} candidates at ε = {epsilon:g}: "
        f"{found.headline}."
    )


def show_tight_bounds(frame: pd.DataFrame, config: RandomizedResponseConfig) -> None:
    """Show both bounds where more than one place counts as a hit, on both mechanisms, and their limits."""
    several = frame[frame["top"] > frame["top"].min()]
    selection = _of(several, "subset selection", ["paper", "tight"])
    response = _of(several, "randomized response", ["paper", "tight"])
    show_figure(
        curves_figure(selection, config.curves),
        name="nid-tight-bound",
        caption="Subset selection where several places count: the tight bound (solid) reaches the true ε, "
        "the paper's (dotted) does not.",
        alt=f"One panel for each true epsilon, a black line. At the most sets: {_ends(selection)}.",
        data=selection,
    )
    show_figure(
        curves_figure(response, config.curves),
        name="nid-randomized-response-tight",
        caption="Randomized response where several places count: the tight bound (solid) shows more than the "
        "paper's (dotted). Neither can reach the true ε, since only the first place tells something.",
        alt=f"One panel for each true epsilon, a black line. At the most sets: {_ends(response)}.",
        data=response,
    )
    bounds = [f"{bound}, {short}" for short in _SHORT.values() for bound in ("paper", "tight")]
    show_table(
        limits_table(config),
        name="nid-limits",
        caption="What each bound shows with infinitely many sets, nats, on randomized response and on subset "
        "selection. A bound is tight where this equals the true ε.",
        columns={"epsilon": "True ε", "cardinality": "c", "top": "r"}
        | {name: name[0].upper() + name[1:] for name in bounds},
        lower_bounds=bounds,
    )


def limits_table(config: RandomizedResponseConfig) -> pd.DataFrame:
    """`limits`, one row per true epsilon and curve, with a column for each bound on each mechanism."""
    keys = ["epsilon", "cardinality", "top"]
    table, found = limits(config), list[pd.DataFrame]()
    for mechanism, short in _SHORT.items():
        rows = table[table["mechanism"] == mechanism].set_index(keys)[["paper", "tight"]]
        found.append(rows.add_suffix(f", {short}"))
    return pd.concat(found, axis=1).reset_index()


def show_deltas(config: DeltaConfig) -> None:
    """Show what delta does to the bound of one audit, by Theorem 2 and by the sharp term."""
    by_delta, vacuous = bounds_by_delta(config), vacuous_deltas(config)
    show_figure(
        deltas_figure(by_delta, config.epsilon),
        name="nid-delta",
        caption=f"One audit of randomized response (ε = {config.epsilon:g}, m = {config.sets}, r = 1) judged "
        "at growing δ: Theorem 2 (dotted), and the sharp term, the exact worst case (solid). The black line "
        "is the ε of the mechanism.",
        alt="The bound over delta. It falls to 0 at these deltas, by Theorem 2 and by the sharp term: "
        + "; ".join(
            f"c = {row['cardinality']:.0f}, {row['published']:.2g} and {row['sharp']:.2g}"
            for row in vacuous.to_dict("records")
        )
        + ".",
        data=by_delta,
    )
    show_table(
        vacuous.assign(ratio=vacuous["sharp"] / vacuous["published"]),
        name="nid-vacuous-delta",
        caption="Smallest δ at which the same audit shows nothing (bound 0).",
        columns={
            "cardinality": "Candidates c",
            "published": "Theorem 2",
            "sharp": "Sharp term",
            "ratio": "Sharp over Theorem 2",
        },
        digits=3,
    )


def curves_figure(frame: pd.DataFrame, curves: Sequence[tuple[int, int]]) -> Figure:
    """A panel for each true epsilon, and in it a curve for each pair (c, r) and bound."""
    epsilons = list(dict.fromkeys(frame["epsilon"]))
    both = frame["bound"].nunique() > 1
    fig, axes = panels(len(epsilons), share_x=True)
    for panel, epsilon in zip(axes, epsilons, strict=True):
        here = frame[frame["epsilon"] == epsilon]
        for (c, r, bound), rows in here.groupby(["cardinality", "top", "bound"], sort=False):
            at = list(curves).index((c, r))
            line = (":" if bound == "paper" else "-") if both else LINES[at % len(LINES)]
            label = f"({c}, {r})" + (f" {bound}" if both else "")
            _draw(panel, rows["sets"], rows["mean"], at, line, label)
        panel.axhline(epsilon, color="black", lw=1)
        panel.set(xscale="log", ylabel="bound on ε (nats)", title=f"true ε = {epsilon:g}")
    axes[-1].set_xlabel("number of sets m")
    legend_below(fig, columns=2 if both else 3)
    return fig


def deltas_figure(by_delta: pd.DataFrame, epsilon: float) -> Figure:
    """The bound over delta, a curve for each cardinality and delta term of `bounds_by_delta`."""
    cardinalities = list(dict.fromkeys(by_delta["cardinality"]))
    fig, (panel,) = panels(height=3.8)
    for (c, term), rows in by_delta.groupby(["cardinality", "delta_term"], sort=False):
        name, line = _TERMS[str(term)]
        _draw(panel, rows["delta"], rows["bound"], cardinalities.index(c), line, f"c = {c}, {name}")
    panel.axhline(epsilon, color="black", lw=1)
    panel.set(xscale="log", xlabel="δ", ylabel="bound on ε (nats)", ylim=(0, None))
    legend_below(fig)
    return fig


def _draw(panel: Axes, x: pd.Series, y: pd.Series, at: int, line: object, label: str) -> None:
    style = {"color": COLORS[at % len(COLORS)], "marker": MARKERS[at % len(MARKERS)], "linestyle": line}
    panel.plot(x, y, ms=4, label=label, **style)


def _of(frame: pd.DataFrame, mechanism: str, bounds: Sequence[str]) -> pd.DataFrame:
    return frame[(frame["mechanism"] == mechanism) & frame["bound"].isin(bounds)]


def _ends(frame: pd.DataFrame) -> str:
    """The bounds at the most sets, in words."""
    last = frame[frame["sets"] == frame["sets"].max()]
    return "; ".join(
        f"epsilon {epsilon:g}, "
        + ", ".join(
            f"({row['cardinality']}, {row['top']}) {row['bound']} {row['mean']:.2f}"
            for row in rows.to_dict("records")
        )
        for epsilon, rows in last.groupby("epsilon", sort=False)
    )
