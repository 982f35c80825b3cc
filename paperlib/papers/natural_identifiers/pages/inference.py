"""What the page on dataset inference shows: Table 10, Figure 3, the level of the test, and its power."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paperlib.audits.candidates import CandidateScores
from paperlib.papers.natural_identifiers.evidence import inference_evidence
from paperlib.papers.natural_identifiers.hub import HubConfig, HubScores, hub_scale, inference_sets
from paperlib.papers.natural_identifiers.inference import (
    InferenceConfig,
    held_out_p_values,
    p_values_of_draws,
    rejection_rates,
)
from paperlib.papers.verdict import Evidence, Scale, record
from paperlib.report import (
    COLORS,
    LINES,
    MARKERS,
    legend_below,
    panels,
    paper_table,
    show_figure,
    show_table,
    show_text,
)

_LEAST = 1e-12  # p-values below are drawn here
_TESTS = {"one-sided": "p_value", "two-sided": "p_value_two_sided"}
_SCHEDULES = {"kfold": "K-fold", "forward": "in order"}
_DRAWS = 20  # random sets of each group that count the power
_HELD_OUT = "held out"


def hub_suspects(scored: Sequence[HubScores], config: InferenceConfig) -> pd.DataFrame:
    """p-values of further models, by corpus and subset; empty without models."""
    options: dict[str, int] = {"set_size": config.set_size, "trees": config.trees}
    return pd.concat([one.inference(**options) for one in scored] or [pd.DataFrame()])


def evidence_and_scale(
    config: InferenceConfig,
    scores: CandidateScores,
    sets: pd.DataFrame,
    null: pd.DataFrame,
    scored: Sequence[HubScores],
    hub_config: HubConfig,
    *,
    sizes: Sequence[int],
    draws: int,
) -> tuple[list[Evidence], Scale]:
    """Evidence on Table 10 and Figure 3 by the paper's test, and its scale."""
    scale = Scale(
        "substitute",
        f"a GPT of width {config.planted.width} trained here on planted identifiers, {config.generated} "
        f"alternatives each ({config.null_alternatives} in null sets), sets of {config.set_size}",
    )
    suspects = hub_suspects(scored, config)
    if len(suspects):
        sets, scores = inference_sets(suspects), scored[0].features()
        if (scores.groups == 0).sum() >= config.set_size:
            null = held_out_p_values(config, scores)
        scale = Scale(*hub_scale(scored, hub_config))
    both = sorted({min(sizes), max(sizes)})
    ends = p_values_of_draws(config, scores, both, draws=draws, schedule="kfold")
    return inference_evidence(sets, null, ends), scale


def show_table_10(sets: pd.DataFrame, evidence: Sequence[Evidence], scale: Scale) -> None:
    """Show the p-values of whole sets beside the paper's, and judge them."""
    printed = paper_table("nid_table10")
    show_table(
        beside_table_10(sets, printed),
        name="nid-table-10",
        caption="p-values of dataset inference. The paper's test is K-fold and two-sided; it prints values "
        "for sets of 100 identifiers.",
        columns={
            "set": "Set",
            "identifiers": "Identifiers",
            "kfold, two-sided": "K-fold, two-sided",
            "paper": "The paper",
            "kfold, one-sided": "K-fold, one-sided",
            "forward, two-sided": "In order, two-sided",
            "forward, one-sided": "In order, one-sided",
        },
    )
    here = ", ".join(
        f"{row['set']} {row['p_value_two_sided']:.2g}"
        for row in sets[sets["schedule"] == "kfold"].to_dict("records")
    )
    theirs = "; ".join(
        f"{model}, {split}: {rows['p_value'].min():.2g} to {rows['p_value'].max():.2g}"
        for (model, split), rows in printed.groupby(["model", "split"], sort=False)
    )
    show_figure(
        p_values_figure(sets, printed),
        name="nid-table-10-paper",
        caption="All p-values of Table 10, a cross for each subset, below ours by the same test (K-fold, "
        f"two-sided). Those that the paper prints as at most 0.0001 stand there; ours below {_LEAST:g} stand "
        "at the left edge. Dashed: 0.01.",
        alt=f"Rows of p-values on a logarithmic axis. Here: {here}. The paper: {theirs}.",
        data=printed,
    )
    record(evidence[0], scale=scale)


def beside_table_10(sets: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Each set with its p-values by schedule and test, and the range of the paper's for such sets."""
    ranges = {}
    for split, rows in printed.groupby("split"):
        low, high = rows["p_value"].min(), rows["p_value"].max()
        ranges[split] = f"{low:.2g} to {high:.2g} ({len(rows)} sets)"
    found = []
    for (name, identifiers), rows in sets.groupby(["set", "identifiers"], sort=False):
        row = {"set": name, "identifiers": identifiers}
        row["paper"] = ranges["test" if name == _HELD_OUT else "train"]
        for one in rows.to_dict("records"):
            row |= {f"{one['schedule']}, {test}": one[column] for test, column in _TESTS.items()}
        found.append(row)
    return pd.DataFrame(found)


def p_values_figure(sets: pd.DataFrame, printed: pd.DataFrame) -> Figure:
    """Our sets by the paper's test, a dot each, and the paper's subsets, crosses in a row for each model."""
    ours = sets[sets["schedule"] == "kfold"]
    rows = [(f"here, {one['set']}", [one["p_value_two_sided"]]) for one in ours.to_dict("records")]
    groups = printed.groupby(["model", "split"], sort=False)["p_value"]
    theirs = [(f"{model}, {split}", values.tolist()) for (model, split), values in groups]
    fig, (panel,) = panels(height=0.9 + 0.28 * (len(rows) + len(theirs)))
    places = range(len(rows) + len(theirs))[::-1]
    for place, (at, (_, values)) in zip(places, enumerate([*rows, *theirs]), strict=True):
        marker, color, label = ("o", COLORS[0], "here") if at < len(rows) else ("x", COLORS[1], "the paper")
        panel.plot(pd.Series(values).clip(_LEAST), [place] * len(values), marker, color=color, label=label)
    panel.axvline(0.01, color="black", ls="--", lw=1)
    panel.set_yticks(list(places), [name for name, _ in [*rows, *theirs]])
    panel.set(xscale="log", xlabel="p-value", xlim=(_LEAST / 3, 3))
    legend_below(fig)
    return fig


def show_figure_3(curves: pd.DataFrame, evidence: Sequence[Evidence], scale: Scale, *, draws: int) -> None:
    """Show the p-value against the number of identifiers, and judge it."""
    last = curves[curves["identifiers"] == curves["identifiers"].max()].set_index("set")["median"]
    show_figure(
        sizes_figure(curves),
        name="nid-figure-03",
        caption="p-value against the number of identifiers, folds in order and one-sided: median and "
        f"quartiles of {draws} random sets, cut at {_LEAST:g}. The dotted line is at 0.01; the paper prints "
        "values below it for its training subsets.",
        alt="One curve for each set. Medians for the largest set: "
        f"{', '.join(f'{name} {value:.2g}' for name, value in last.items())}.",
        data=curves,
    )
    record(evidence[1], scale=scale)


def sizes_figure(curves: pd.DataFrame) -> Figure:
    """A curve for each set of `p_values_by_size`, with quartiles."""
    fig, (panel,) = panels(height=3.4)
    for at, (name, curve) in enumerate(curves.groupby("set", sort=False)):
        color, median, low, high = (
            COLORS[at % len(COLORS)],
            *(curve[part].clip(_LEAST) for part in ("median", "low", "high")),
        )
        style = {"color": color, "marker": MARKERS[at % len(MARKERS)], "ls": LINES[at % len(LINES)]}
        panel.plot(curve["identifiers"], median, label=str(name), **style)
        panel.fill_between(curve["identifiers"], low, high, alpha=0.15, color=color, lw=0)
    panel.axhline(0.01, color="black", ls=":")
    panel.set(yscale="log", ylim=(_LEAST, 2), xlabel="identifiers in the suspect set", ylabel="p-value")
    legend_below(fig)
    return fig


def show_level(null: pd.DataFrame) -> None:
    """Show how often each test rejects sets that were not trained on."""
    rates = rejection_rates(null)
    show_table(
        _in_words(rates),
        name="nid-false-positives",
        caption="Rejections among sets that were not trained on, with 95 % intervals. An exact test rejects "
        "as often as its level says.",
        columns={
            "folds": "Folds",
            "test": "Test",
            "percent": "Level",
            "sets": "Sets",
            "rejected": "Rejected",
            "shown": "Share",
        },
    )
    at_five = rates[(rates["level"] == 0.05) & (rates["test"] == "two-sided")].to_dict("records")
    said = [f"{_SCHEDULES[row['schedule']]} {_share(row)}" for row in at_five]
    show_figure(
        null_figure(null),
        name="nid-null-p-values",
        caption="Distribution of p-values over held-out sets: on the diagonal if exact, above if too small.",
        alt="Two panels, one-sided and two-sided, with the diagonal of uniform p-values and a curve for each "
        f"schedule. Share of two-sided p-values up to 0.05: {', '.join(said)}.",
        data=null,
    )
    show_text(" ".join(_level_in_words(row) for row in at_five))


def _in_words(rates: pd.DataFrame) -> pd.DataFrame:
    """Rejection rates with the columns folds, percent (the level) and shown (share and interval) in words."""
    shown = [_share(row) for row in rates.to_dict("records")]
    percent = [f"{100 * level:g} %" for level in rates["level"]]
    return rates.assign(folds=rates["schedule"].map(_SCHEDULES), percent=percent, shown=shown)


def _level_in_words(row: Mapping[Hashable, Any]) -> str:
    inside = row["low"] <= row["level"] <= row["high"]
    place = "holds" if inside else "lies above" if row["low"] > row["level"] else "lies below"
    folds = "Folds in order" if row["schedule"] == "forward" else "K-fold"
    return f"{folds}, two-sided at 5 %: {_share(row)} of the sets are rejected; the interval {place} 5 %."


def _share(row: Mapping[Hashable, Any]) -> str:
    return f"{100 * row['rate']:.1f} % ({100 * row['low']:.1f} to {100 * row['high']:.1f} %)"


def null_figure(null: pd.DataFrame) -> Figure:
    """The share of sets at or below each p-value, by schedule, a panel for each test."""
    fig, axes = panels(2, share_x=True)
    for panel, (test, column) in zip(axes, _TESTS.items(), strict=True):
        for at, (schedule, found) in enumerate(null.groupby("schedule", sort=False)):
            _shares(panel, found[column], _SCHEDULES[str(schedule)], at)
        panel.plot([0, 1], [0, 1], color="black", ls=":", lw=1, label="uniform")
        panel.set(title=test, ylabel="share of sets")
    axes[-1].set_xlabel("p-value")
    legend_below(fig, columns=3)
    return fig


def _shares(panel: Axes, p_values: pd.Series, label: str, at: int) -> None:
    ordered = p_values.sort_values()
    shares = [(i + 1) / len(ordered) for i in range(len(ordered))]
    panel.plot(ordered, shares, color=COLORS[at], ls=LINES[at], label=label)


def show_power(config: InferenceConfig, scores: CandidateScores, size: int) -> None:
    """Show how often random sets of trained identifiers are found."""
    options: dict[str, Any] = {"draws": _DRAWS, "schedule": None, "held_out": False}
    found = p_values_of_draws(config, scores, [size], **options)
    show_table(
        power_table(found),
        name="nid-power",
        caption=f"Rejections among {_DRAWS} random sets of {size} trained identifiers, with 95 % intervals. "
        "The sets of a group overlap and share one model: the intervals, which take sets as independent, are "
        "too short.",
        columns={
            "set": "Sets",
            "folds": "Folds",
            "test": "Test",
            "shown 0.01": "Found at level 0.01",
            "shown 0.05": "Found at level 0.05",
        },
    )


def power_table(found: pd.DataFrame) -> pd.DataFrame:
    """One row per set, schedule and test of `p_values_of_draws`, with the rejections at both levels."""
    keys = ["set", "schedule", "folds", "test", "sets"]
    rates = _in_words(rejection_rates(found, by=("set", "schedule"), levels=(0.01, 0.05)))
    levels = rates.drop(columns="percent").groupby("level")
    both = [rows.drop(columns="level").set_index(keys).add_suffix(f" {level:g}") for level, rows in levels]
    return pd.concat(both, axis=1).reset_index()


def show_hub(scored: Sequence[HubScores], config: InferenceConfig) -> None:
    """Show the p-values of further models, and what of their corpora was not read."""
    suspects = hub_suspects(scored, config)
    if len(suspects):
        show_table(
            suspects,
            name="nid-hub-inference",
            caption="p-values of further models, by corpus and subset.",
            columns={
                "model": "Model",
                "set": "Set",
                "held_out": "Held out",
                "identifiers": "Identifiers",
                "schedule": "Folds",
                "p_value": "One-sided",
                "p_value_two_sided": "Two-sided",
            },
        )
    if scored and len(scored[0].skipped):
        show_table(
            scored[0].skipped,
            name="nid-hub-inference-skipped",
            caption="What of the corpus was not read, or with a loss, and the first example.",
        )
