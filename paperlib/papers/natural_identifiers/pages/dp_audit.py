"""What the page on auditing DP-SGD shows: the theory, Figures 2 and 5 over models, and several places."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from paperlib.papers.measured import measured_table
from paperlib.papers.natural_identifiers.dp_audit import CURVES, mean_bounds, theoretical_epsilons
from paperlib.papers.natural_identifiers.dp_models import PUBLIC_OF, DpRun
from paperlib.papers.natural_identifiers.evidence import dp_evidence
from paperlib.papers.verdict import Scale, record
from paperlib.papers.verdict.evidence import Level
from paperlib.report import (
    COLORS,
    LINES,
    MARKERS,
    legend_below,
    panels,
    plus_minus,
    show_figure,
    show_table,
    show_text,
)

FIGURES = ("Figure 2", "Figure 5")
LEVELS: Mapping[str, Level] = {"persona_chat": "paper's data", "documentation": "substitute"}
"""How near a run is to the paper's, by its dialogues."""
_KEPT = "book/measured/nid_dp_audit_persona_chat.csv"
_MOST_SIZES = 4  # sizes of candidate sets that a table has columns for


def earlier_audits(measured: str, dialogues: str) -> tuple[pd.DataFrame, Scale] | None:
    """Audits on true dialogues that were run on another occasion, and their scale."""
    if measured == "none" or dialogues == "persona_chat":
        return None
    try:
        found = measured_table(measured or _KEPT)
    except ValueError:
        if measured:
            raise
        show_text("No audits on true dialogues are kept with this book.")
        return None
    assert found is not None
    audits, origin = found
    text, kind = audits["dialogues"].iloc[0], audits["kind"].iloc[0]
    facts = f"a GPT of width {PUBLIC_OF[text].width}, {kind} canaries before {text} text, {origin}"
    return audits, Scale(LEVELS[text], facts)


def show_theory(targets: Mapping[DpRun, float], delta: float) -> None:
    """Show the theoretical epsilons of runs, by adjacency."""
    rows = []
    for run, target in targets.items():
        add, swap = theoretical_epsilons(run, delta)
        rows.append({"target": target, "noise multiplier": run.noise, "steps": run.sampling[1]})
        rows[-1] |= {"add/remove": add, "replacement": swap}
    show_table(
        pd.DataFrame(rows),
        name="nid-dp-theory",
        caption=f"Theoretical epsilon (nats, δ = {delta:g}) of each run, by adjacency. The audit's bounds "
        "compare with the last column.",
        columns={
            "target": "Target ε",
            "noise multiplier": "Noise multiplier",
            "steps": "Steps",
            "add/remove": "ε, add or remove",
            "replacement": "ε, replace",
        },
    )


def show_figure_2(audits: pd.DataFrame, scale: Scale, *, suffix: str = "") -> None:
    """Show the bound against the number of candidates, the gain of the largest sets over pairs."""
    second, fifth = (audits[audits["figure"] == name] for name in FIGURES)
    means = mean_bounds(second, ["target", "cardinality"])
    show_figure(
        bound_curves(means, "cardinality", "target"),
        name=f"nid-figure-02{suffix}",
        caption="Lower bound (replacement, r = 1) against the number of candidates, for each target epsilon "
        "(∞: no noise): mean over models, bars with 95 % t-intervals where there are several "
        f"({scale.facts}).",
        alt=f"Three panels with a curve for each target epsilon. {_largest(means)}",
        data=second,
    )
    gain, ends = gain_of_large_sets(second)
    show_table(
        gain,
        name=f"nid-dp-cardinality{suffix}",
        caption=f"Bound at c = {ends[1]} less that at c = {ends[0]}, nats, paired by model, with the 95 % "
        f"t-interval of each row by itself ({scale.facts}).",
        columns={"curve": "Bound and score", "target": "Target ε", "models": "Models", "shown": "Difference"},
    )
    record(dp_evidence(second, fifth)[0], scale=scale)


def gain_of_large_sets(second: pd.DataFrame) -> tuple[pd.DataFrame, tuple[int, int]]:
    """How much more the largest candidate sets show than the smallest, paired by model, and both sizes."""
    small, large = int(second["cardinality"].min()), int(second["cardinality"].max())
    means = mean_bounds(second, ["target", "cardinality"], less=small)
    gain = means[means["cardinality"] == large].drop(columns="cardinality")
    gain = gain.rename(columns={"mean": "difference"})
    cells = zip(gain["difference"], gain["high"] - gain["difference"], strict=True)
    return gain.assign(shown=[plus_minus(*cell) for cell in cells]), (small, large)


def show_figure_5(audits: pd.DataFrame, scale: Scale, *, suffix: str = "") -> None:
    """Show the bound against the number of canaries, and judge it."""
    second, fifth = (audits[audits["figure"] == name] for name in FIGURES)
    counts = mean_bounds(fifth, ["cardinality", "canaries"])
    show_figure(
        bound_curves(counts, "canaries", "cardinality"),
        name=f"nid-figure-05{suffix}",
        caption=f"Lower bound against the number of canaries at target epsilon {fifth['target'].iloc[0]:g}, "
        f"for each number of candidates: mean over models, bars as before; those of two models may reach "
        f"beyond the panels ({scale.facts}).",
        alt=f"Three panels with a curve for each cardinality. {_largest(counts)}",
        data=fifth,
    )
    record(dp_evidence(second, fifth)[1], scale=scale)


def show_first_model(table: pd.DataFrame) -> None:
    """Show every bound by Theorem 2 with r = 1, by score and size of the candidate sets."""
    first = table[(table["top"] == 1) & (table["model"] == table["model"].iloc[0])]
    wide = first.pivot_table(
        "paper", ["target", "score", "replacement_epsilon"], "cardinality", sort=False
    ).add_prefix("c = ")
    sizes = [str(name) for name in wide.columns[:_MOST_SIZES]]
    show_table(
        wide.reset_index(),
        name="nid-dp-audit",
        caption="Every bound by Theorem 2 with r = 1 on the first model, nats, by the number c of "
        "candidates, and the theoretical epsilon for replacement.",
        columns={"target": "Target ε", "score": "Score"}
        | dict(zip(sizes, sizes, strict=True))
        | {"replacement_epsilon": "Theory"},
        lower_bounds=sizes,
    )


def show_several_places(table: pd.DataFrame) -> None:
    """Show both bounds where several places count as a hit: ``difference`` on the largest sets, one model."""
    several = table[(table["top"] > 1) & (table["score"] == "difference")]
    several = several[several["cardinality"] == table["cardinality"].max()]
    several = several[several["model"] == table["model"].iloc[0]]
    columns = {
        "target": "Target ε",
        "cardinality": "Candidates c",
        "top": "Places r",
        "hit_rate": "Share of hits",
        "paper": "The paper's bound",
        "tight": "Tight bound",
        "replacement_epsilon": "Theory",
    }
    show_table(
        several[list(columns)],
        name="nid-dp-tops",
        caption="Several places count as a hit: the paper's bound and the tight one on the same ranks, nats.",
        columns=columns,
        lower_bounds=["paper", "tight"],
    )


def show_theory_kept(*tables: pd.DataFrame) -> None:
    """Say how many of all bounds lie above the theory."""
    below = pd.concat([table["below_theory"] for table in tables]).astype(bool)
    above = len(below) - int(below.sum())
    show_text(
        f"Of {len(below):,} audits with every score, size and number of places, {above or 'none'} "
        f"{'has' if above == 1 else 'have'} a bound above the theoretical ε for replacement."
    )


def bound_curves(means: pd.DataFrame, across: str, line: str) -> Figure:
    """One panel per curve of `mean_bounds`, the bound against a column, a line for each value of another.

    No bound is below 0; bars of two models may reach beyond the panels.
    """
    places = sorted(means[across].unique())
    values = sorted(means[line].unique())
    fig, axes = panels(len(CURVES), height=2.4, share_x=True)
    for panel, curve in zip(axes, CURVES, strict=True):
        for value, rows in means[means["curve"] == curve].groupby(line):
            at = values.index(value) % len(COLORS)
            bars = (rows["high"] - rows["mean"]).fillna(0.0)
            style = {"color": COLORS[at], "marker": MARKERS[at], "linestyle": LINES[at]}
            panel.errorbar(
                rows[across], rows["mean"], yerr=bars, label=f"{value:g}".replace("inf", "∞"), **style
            )
        panel.set(xscale="log", ylabel="bound (nats)", title=curve)
        panel.set_xticks(places, [f"{place:g}" for place in places])
        panel.minorticks_off()
    # Intervals of two models are so wide that the panels would show nothing else.
    ends = [means["mean"].max(), means.loc[means["models"] > 2, "high"].max()]
    top = 1.1 * max(0.1, *(end for end in ends if end == end))
    for panel in axes:
        panel.set_ylim(-0.05 * top, top)
    axes[-1].set_xlabel({"cardinality": "candidates c", "canaries": "canaries"}[across])
    title = {"target": "target ε", "cardinality": "candidates c"}[line]
    legend_below(fig, columns=len(values), title=title)
    return fig


def _largest(means: pd.DataFrame) -> str:
    top = means.loc[means.groupby("curve", sort=False)["mean"].idxmax()]
    keys = [name for name in means.columns[1:3]]
    parts = [
        f"{one['curve']}: {one['mean']:.2f} nats at " + ", ".join(f"{key} {one[key]:g}" for key in keys)
        for one in top.to_dict("records")
    ]
    return f"Largest means: {'; '.join(parts)}."
