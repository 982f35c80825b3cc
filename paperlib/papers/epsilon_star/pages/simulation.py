"""Figures and tables of the notebook on losses whose distribution is known (Figures 3 to 5)."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from paperlib.papers.verdict import Evidence
from paperlib.report import (
    COLORS,
    dot_rows,
    legend_below,
    panels,
    plus_minus,
    show_figure,
    show_table,
    show_text,
)

_MOST_POINTS = 4_000
"""Points of a curve that a page keeps."""
_TRUE = {"true": ("true, every threshold", ":"), "true_delta_range": ("true, rates in [δ, 1 − δ]", "-.")}
_METHODS = {"empirical": ("o", "--", COLORS[0]), "parametric": ("s", "-", COLORS[1])}


def show_curves(curves: pd.DataFrame) -> None:
    """Show the first two ratios of the definition at every threshold, true and sampled (Figure 3)."""
    fig, axes = panels(2, height=2.6, share_x=True)
    for axis, source in zip(axes, ("true", "empirical"), strict=True):
        part = curves[curves["source"] == source]
        axis.sharey(axes[0])
        axis.plot(part["position"], part["first"], label="(TPR − δ) / FPR")
        axis.plot(part["position"], part["second"], label="(TNR − δ) / FNR")
        title = "the distributions themselves" if source == "true" else "one sample"
        axis.set(title=title, yscale="log", ylabel="ratio")
    axes[-1].set_xlabel("(TPR + FPR) / 2")
    legend_below(fig)
    peaks = curves.groupby("source")[["first", "second"]].max()
    show_figure(
        fig,
        name="epsilon-star-curves",
        caption="The first two ratios of the definition, from the true and from the empirical distributions "
        "(Figure 3).",
        alt="Two panels. Above, the true distributions: two smooth curves, one falling from "
        f"{peaks.loc['true', 'first']:.2g} at the left end, one rising to {peaks.loc['true', 'second']:.2g} "
        "at the right end, both near 1 at the other end. Below, one sample: the same curves in the middle, "
        f"but jagged at the ends, where they stop at {peaks.loc['empirical', 'first']:.2g} and "
        f"{peaks.loc['empirical', 'second']:.2g}.",
        data=curves.iloc[:: max(1, len(curves) // _MOST_POINTS)],
    )


def show_noise(noise: pd.DataFrame) -> None:
    """Show how far the sampled ratios are off, by decade of the rate (`curve_noise`)."""
    show_table(
        noise,
        name="epsilon-star-noise",
        caption="Noise of the sampled ratios: root mean square difference of logs (nats) from the true "
        "ratio, by the rate in the denominator.",
        columns={
            "rate_from": "rate from",
            "rate_to": "rate to",
            "first": "(TPR − δ) / FPR",
            "second": "(TNR − δ) / FNR",
        },
    )


def show_null(summary: pd.DataFrame, *, repeats: int) -> None:
    """Show both estimates where nothing leaks, over the number of losses (Figure 4)."""
    null = summary[summary["shift"] == 0]
    fig, (axis,) = panels()
    for method in _METHODS:
        rows = null[null["method"] == method].sort_values("size")
        _with_spread(axis, rows["size"], rows, method)
    axis.axhline(0, color="k", linestyle=":", label="true value")
    axis.set(xscale="log", xlabel="losses in each set", ylabel="Epsilon* (nats)")
    legend_below(fig, columns=3)
    words = {name: _numbers(rows.sort_values("size")["mean"]) for name, rows in null.groupby("method")}
    show_figure(
        fig,
        name="epsilon-star-null",
        caption=f"Identical distributions (Figure 4): mean and standard deviation over {repeats} samples.",
        alt=f"Two lines over the number of losses. The empirical means are {words['empirical']}; the "
        f"parametric ones {words['parametric']}. The true value is 0.",
        data=null,
    )


def show_shift(summary: pd.DataFrame, *, repeats: int) -> None:
    """Show both estimates beside two true values over the distance of the sets (Figure 5)."""
    sizes = sorted(summary["size"].unique())
    fig, axes = panels(len(sizes), height=2.4, share_x=True)
    for axis, size in zip(axes, sizes, strict=True):
        part = summary[summary["size"] == size].sort_values("shift")
        for name, (label, line) in _TRUE.items():
            true = part[part["method"] == "empirical"]
            axis.plot(true["shift"], true[name], color="k", linestyle=line, label=label)
        for method in _METHODS:
            rows = part[part["method"] == method]
            _with_spread(axis, rows["shift"], rows, method)
        axis.set(title=f"{size:,} losses in each set", ylabel="Epsilon* (nats)")
        axis.set_xticks(sorted(summary["shift"].unique()))
    axes[-1].set_xlabel("shift d")
    legend_below(fig)
    show_figure(
        fig,
        name="epsilon-star-shift",
        caption=f"Growing distance (Figure 5): mean and standard deviation over {repeats} samples, with two "
        "true values.",
        alt=_shift_in_words(summary),
        data=summary,
    )


def _shift_in_words(summary: pd.DataFrame) -> str:
    largest = summary[(summary["size"] == summary["size"].max()) & (summary["shift"] > 0)]
    largest = largest.sort_values("shift").set_index("method")
    means = {method: _numbers(largest.loc[[method], "mean"]) for method in _METHODS}
    true = {name: _numbers(largest.loc[["empirical"], name]) for name in _TRUE}
    return (
        f"One panel per sample size, lines rising with the shift d. At n = {summary['size'].max():,} and "
        f"d from 1 up the empirical means are {means['empirical']}, the true values over rates in "
        f"[delta, 1 - delta] {true['true_delta_range']}, the parametric ones {means['parametric']}, and "
        f"the true values over every threshold {true['true']}."
    )


def _with_spread(axis: Axes, places: pd.Series, rows: pd.DataFrame, method: str) -> None:
    marker, line, color = _METHODS[method]
    axis.errorbar(
        places, rows["mean"], yerr=rows["std"], marker=marker, linestyle=line, color=color, label=method
    )


def _numbers(values: pd.Series) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def show_undershoot(evidence: Evidence) -> None:
    """Show how far the empirical version lies below each true value, by size and shift."""
    show_table(
        undershoot(evidence),
        name="epsilon-star-undershoot",
        caption="How far the empirical version lies below the true value, nats: mean over the samples and "
        "its 95 % interval.",
    )


def undershoot(evidence: Evidence) -> pd.DataFrame:
    """True value - empirical version, one row for each true value and shift, one column for each size."""
    rows = []
    for (term, label), sample in evidence.samples().items():
        if term == "empirical undershoots":
            size, shift, true = label.split(", ", 2)
            values = np.array(sample, dtype=float)
            error = 1.96 * values.std(ddof=1) / np.sqrt(values.size)
            text = plus_minus(float(values.mean()), float(error))
            rows.append({"true value": true, "d": shift.removeprefix("d = "), "size": size, "text": text})
    table = pd.DataFrame(rows)
    wide = table.pivot(index=["true value", "d"], columns="size", values="text")
    return wide[list(dict.fromkeys(table["size"]))].rename_axis(columns=None).reset_index()


def show_ranges(summary: pd.DataFrame) -> None:
    """Show both estimates of the largest samples beside the true value over three ranges of rates."""
    largest = summary[summary["size"] == summary["size"].max()]
    estimates = [plus_minus(*pair) for pair in zip(largest["mean"], largest["std"], strict=True)]
    show_table(
        largest.assign(estimate=estimates, rate=largest["typical_fpr"].map("{:.4f}".format)),
        name="epsilon-star-gamma",
        caption=f"n = {summary['size'].max():,}: both estimates (mean ± standard deviation) beside the true "
        "value over the rates that the version itself uses, over rates in [δ, 1 − δ], and over every "
        "threshold; nats. Last: the false-positive rate at which the estimate is attained (median).",
        columns={
            "shift": "d",
            "method": "version",
            "estimate": "estimate",
            "true_own_range": "true, its own rates",
            "true_delta_range": "true, [δ, 1 − δ]",
            "true": "true, every threshold",
            "rate": "FPR there",
        },
    )


def show_where(values: pd.DataFrame, fits: pd.DataFrame, *, size: int) -> None:
    """Show the value at every threshold for a shift of 1, and the normals behind the parametric one."""
    best = values.loc[values.groupby("source")["epsilon"].idxmax()].set_index("source")
    fig, (axis,) = panels(height=3.2)
    styles = {"true": ("k", "-."), **{name: (color, line) for name, (_, line, color) in _METHODS.items()}}
    for source, (color, line) in styles.items():
        part = values[values["source"] == source].sort_values("false_positive_rate")
        axis.plot(part["false_positive_rate"], part["epsilon"], color=color, linestyle=line, label=source)
        peak = best.loc[[source]]
        axis.plot(peak["false_positive_rate"], peak["epsilon"], color=color, marker="o")
    axis.set(xscale="logit", xlabel="false-positive rate at the threshold", ylabel="value there (nats)")
    axis.set_xticks([1e-6, 1e-4, 1e-2, 0.5, 0.99, 0.9999])
    axis.tick_params(axis="x", rotation=45)
    axis.xaxis.set_minor_formatter("")
    legend_below(fig, columns=3)
    show_figure(
        fig,
        name="epsilon-star-where",
        caption=f"The value at every threshold, Gamma losses, d = 1, n = {size:,}; dots mark the maxima.",
        alt="Three curves over the false-positive rate. "
        + " ".join(
            f"The {source} one is highest, {best.loc[source, 'epsilon']:.2f} nats, at a rate of "
            f"{best.loc[source, 'false_positive_rate']:.6f}."
            for source in styles
        ),
        data=values,
    )
    show_table(
        fits,
        name="epsilon-star-fits",
        caption="The normals behind the parametric value: skewness of the losses and of the transformed "
        "losses, and the distance and Lilliefors p-value of the fit. A normal has skewness 0 and kurtosis 3.",
        columns={
            "set": "set",
            "skewness_of_losses": "skewness of losses",
            "skewness": "skewness",
            "kurtosis": "kurtosis",
            "ks_distance": "KS distance",
            "ks_p_value": "p-value",
        },
    )


def show_laplace(values: pd.DataFrame) -> None:
    """Show both estimates where the true value is known whatever the threshold (`laplace_values`)."""
    ratios = values["parametric"] / values["true"]
    show_table(
        values,
        name="epsilon-star-laplace",
        caption="Losses with Laplace tails: true Epsilon*, the two estimates (means), and how often the fit "
        "check rejects the normals.",
        columns={
            "gap": "gap g",
            "true": "true, every threshold",
            "empirical": "empirical",
            "parametric": "parametric",
            "rejected": "share of fits rejected",
        },
    )
    show_text(
        f"The parametric number is {ratios.min():.1f} to {ratios.max():.1f} times the true value. It is an "
        "estimate that can lie on either side of the truth, and so no bound."
    )


def show_coverage(coverage: pd.DataFrame, *, size: int, draws: int, confidence: float) -> None:
    """Show how often each interval holds the true value, a panel for each pair of normals."""
    pairs: list[tuple[Any, pd.DataFrame]] = list(coverage.groupby(["gap", "ratio"], sort=False))
    fig, axes = panels(len(pairs), height=1.9, share_x=True)
    for axis, ((gap, ratio), rows) in zip(axes, pairs, strict=True):
        low, high = (rows["coverage"] + sign * 2 * rows["standard_error"] for sign in (-1, 1))
        names = [f"{row['method']}, {row['interval']}" for row in rows.to_dict("records")]
        dot_rows(
            axis, names, rows["coverage"], low=np.maximum(low, 0), high=np.minimum(high, 1), label="share"
        )
        axis.axvline(confidence, color="k", linestyle=":", label="nominal")
        axis.set(title=f"population N({gap:g}, {ratio:g}²)", xlim=(-0.05, 1.05))
    axes[-1].set_xlabel("share of intervals that hold the true value")
    legend_below(fig)
    show_figure(
        fig,
        name="epsilon-star-coverage",
        caption=f"Share of {draws} samples of {size} normal losses whose interval holds the true value, with "
        "two standard errors. Training losses N(0, 1). An interval that cannot be formed counts as a miss.",
        alt="; ".join(_coverage_in_words(pairs)) + f". The nominal share is {confidence:g}.",
        data=coverage,
    )


def _coverage_in_words(pairs: list[tuple[Any, pd.DataFrame]]) -> list[str]:
    return [
        f"Population N({gap:g}, {ratio:g} squared): "
        + ", ".join(
            f"{row['method']} {row['interval']} {row['coverage']:.2f}" for row in rows.to_dict("records")
        )
        for (gap, ratio), rows in pairs
    ]


def wrong_tail(values: pd.DataFrame, fits: pd.DataFrame) -> str:
    """In which tail each curve of `value_over_thresholds` is highest, and whether the fits are rejected."""
    best = values.loc[values.groupby("source")["epsilon"].idxmax()].set_index("source")["false_positive_rate"]
    tails = {source: "left" if best[source] < 0.5 else "right" for source in ("true", "parametric")}
    same = "the same" if tails["true"] == tails["parametric"] else "the *other*"
    rejected = int((fits["ks_p_value"] < 0.01).sum())
    return (
        f"The true maximum is in the {tails['true']} tail, that of the fitted normals in {same} one. A "
        f"Lilliefors test at 1 % rejects {rejected} of the {len(fits)} fits."
    )


def growth(summary: pd.DataFrame) -> str:
    """Whether the empirical version comes nearer to the true values of `gamma_summary` in larger samples."""
    shifted = summary[(summary["shift"] > 0) & (summary["method"] == "empirical")]
    short = shifted.assign(**{name: shifted[name] - shifted["mean"] for name in _TRUE})
    first, last = (
        short[short["size"] == size].sort_values("shift")[list(_TRUE)].to_numpy()
        for size in (short["size"].min(), short["size"].max())
    )
    grown = last > first
    return (
        "The paper adds that the undershooting is worse for smaller samples and can be mitigated by larger "
        f"ones. Here the distance is larger at n = {summary['size'].max():,} than at "
        f"n = {summary['size'].min():,} in {grown.sum()} of {grown.size} rows: "
        "$\\delta = 1/(n \\ln n)$ falls as $n$ grows, so both true values rise, while the rates of "
        "the empirical version stay within $(0.001, 0.999)$."
    )
