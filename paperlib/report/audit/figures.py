"""The figures of an audit: histograms of the scores, ROC curve, bound over guesses."""

import base64
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from scipy.special import betaincinv

from paperlib.core import FloatArray, IntArray, MembershipScores, ScoreAudit, round_down
from paperlib.core.intervals import ScoreMeasures

_POINTS = 300  # of a ROC curve, along each axis
_STYLE: dict[Any, Any] = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}


class Image(NamedTuple):
    """A figure of a report: its address, what stands below it, and its description in words."""

    address: str
    caption: str
    alt: str


def _panel(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of this size (inches), unknown to pyplot, with one panel and room for its labels."""
    fig = Figure(figsize=(width, height))
    fig.subplots_adjust(
        left=0.8 / width, right=1 - 0.1 / width, bottom=0.55 / height, top=1 - 0.1 / height
    )
    return fig, fig.add_subplot()


def _plain_log(axes: Axes, directions: str) -> None:
    """Write plain numbers, such as 0.01, at powers of ten of log axes; ``directions`` is "x" or
    "xy".
    """
    for name in directions:
        axis = axes.xaxis if name == "x" else axes.yaxis
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def score_histogram(scores: MembershipScores, *, bins: int = 60) -> tuple[Figure, pd.DataFrame]:
    """Histograms of both classes' scores: the figure, and a row for each bin, with its ends low and
    high and the shares of each class in it, member and nonmember.

    The bins span the finite scores; infinite ones are counted in the first bin and the last.
    """
    values = scores.pooled()[0]
    edges = np.histogram_bin_edges(values[np.isfinite(values)], bins=bins)

    def share_of_bins(side: FloatArray) -> FloatArray:
        return np.histogram(np.clip(side, edges[0], edges[-1]), edges)[0] / side.size

    shares = {
        "member": share_of_bins(scores.member),
        "nonmember": share_of_bins(scores.nonmember),
    }
    fig, axes = _panel(5.6, 3.2)
    axes.stairs(shares["member"], edges, label="members", fill=True, alpha=0.45)
    axes.stairs(
        shares["nonmember"],
        edges,
        label="non-members",
        linewidth=1.6,
        linestyle="--",
        color="black",
    )
    axes.set(xlabel="score" if scores.higher_means_member else "loss", ylabel="share of each class")
    axes.legend()
    return fig, pd.DataFrame({"low": edges[:-1], "high": edges[1:], **shares})


def roc_figure(
    scores: MembershipScores, *, confidence: float = 0.95, auc: float | None = None
) -> tuple[Figure, pd.DataFrame]:
    """True- against false-positive rate on log axes, which show the leakage of few records.

    Args:
        scores: With an infinite score as with any other.
        confidence: Of the interval at each threshold, in (0, 1).
        auc: For the legend, if it is known already; None computes it.

    Returns:
        The figure, and at most 600 points of the curve: false_positive_rate, true_positive_rate,
        and low and high, the Clopper-Pearson interval of the true-positive rate at each single
        threshold.
    """
    auc = scores.auc() if auc is None else auc
    fpr, tpr, _ = scores.roc()
    if fpr.size > 2 * _POINTS:
        keep = _spread_points(fpr, tpr)
        fpr, tpr = fpr[keep], tpr[keep]
    total = scores.member.size
    low, high = _clopper_pearson(np.rint(tpr * total), total, confidence)
    # A log axis has no 0: rates of 0 are drawn at half of the smallest other one.
    floor = 0.5 / max(total, scores.nonmember.size)
    fig, axes = _panel(4.6, 4.0)
    x = np.maximum(fpr, floor)
    band = np.maximum(low, floor), np.maximum(high, floor)
    axes.fill_between(x, *band, alpha=0.25, linewidth=0, label=f"{100 * confidence:g} % band")
    axes.plot(x, np.maximum(tpr, floor), label=f"scores (AUC {auc:.3f})")
    axes.plot(
        [floor, 1],
        [floor, 1],
        linestyle="--",
        color="black",
        linewidth=1,
        label="guessing (AUC 0.5)",
    )
    axes.set(xscale="log", yscale="log", xlim=(floor, 1.1), ylim=(floor, 1.1))
    axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
    _plain_log(axes, "xy")
    axes.legend(loc="lower right", fontsize="small")
    columns = {"false_positive_rate": fpr, "true_positive_rate": tpr, "low": low, "high": high}
    return fig, pd.DataFrame(columns)


def _clopper_pearson(
    hits: FloatArray, total: int, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of the two-sided Clopper-Pearson interval of a share, shape (n,), from
    the ``hits`` among ``total`` draws: quantiles of beta distributions, 0 and 1 at the extremes.
    """
    tail = (1 - confidence) / 2
    # The maxima keep the arguments positive where the other branch is taken.
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), total - hits + 1, tail), 0.0)
    high = np.where(hits < total, betaincinv(hits + 1, np.maximum(total - hits, 1), 1 - tail), 1.0)
    return low, high


def _spread_points(fpr: FloatArray, tpr: FloatArray) -> IntArray:
    """Indices of points of a curve that are spread evenly on log axes in both directions, at most
    ``2 * _POINTS``, first and last included; both rates rise, shape (n,).
    """
    indices = [np.array([0, fpr.size - 1])]
    for rates in (fpr, tpr):
        even = np.geomspace(max(rates[rates > 0].min(), 1e-12), 1.0, _POINTS - 1)  # from above 0
        indices.append(np.searchsorted(rates, even, side="right") - 1)
    return np.unique(np.concatenate(indices))


def describe_roc(data: pd.DataFrame, auc: float) -> str:
    """A ROC curve in words: its AUC, and the true-positive rate at three false-positive rates.

    ``data`` has the columns of `roc_figure`'s points; the rates are shares.
    """
    rates: list[str] = []
    for rate in (0.001, 0.01, 0.1):
        reached = data["true_positive_rate"][data["false_positive_rate"] <= rate].max()
        rates.append(f"{reached:.3f} at false-positive rate {rate:g}")
    return (
        f"ROC curve on log axes with AUC {auc:.3f}; the true-positive rate is {', '.join(rates)}."
    )


def report_images(
    scores: MembershipScores, audits: Sequence[ScoreAudit], measures: ScoreMeasures
) -> list[Image]:
    """The figures of a report, in order: the ROC curve, the histograms, and the bound over guesses
    of each audit that has such a curve and is no baseline.
    """
    with mpl.rc_context(_STYLE):
        roc, points = roc_figure(scores, confidence=measures.confidence, auc=measures.auc)
        histogram, _ = score_histogram(scores)
        caption = (
            "ROC curve on log axes: the left end shows what can be said about few records with few "
            f"errors. The band is the {100 * measures.confidence:g} % Clopper-Pearson interval of "
            "the true-positive rate at each single threshold."
        )
        what = "scores" if scores.higher_means_member else "losses"
        medians = (
            f"Two overlaid histograms of {what}: the median is {np.median(scores.member):.4g} for "
            f"{scores.member.size} members and {np.median(scores.nonmember):.4g} for "
            f"{scores.nonmember.size} non-members."
        )
        return [
            Image(_svg_address(roc), caption, describe_roc(points, measures.auc)),
            Image(_svg_address(histogram), "Scores of members and non-members.", medians),
            *filter(None, (_curve_image(audit) for audit in audits if audit.kind != "baseline")),
        ]


def _curve_image(audit: ScoreAudit) -> Image | None:
    """The bound of an audit over its guesses; None where its result has no such curve.

    A curve with a column "test", as PANORAMIA's, has two bounds, of a baseline and of the attack.
    """
    result = audit.result
    curve = None if result is None else result.curve
    if result is None or curve is None or not {"guesses", "bound"} <= set(curve.columns):
        return None
    if "test" in curve:
        return _image_of_two_bounds(audit.title, curve, result.ceiling)
    curve = curve[curve["guesses"] > 0]
    if curve.empty:  # no guess was made
        return None
    return _image_of_bound(audit.title, curve, result.epsilon)


def _image_of_two_bounds(title: str, curve: pd.DataFrame, ceiling: float | None) -> Image:
    """Lower bounds of baseline and attack over recall, with the ceiling (nats), where it is known;
    the columns are those of `bounds_figure` but for target, seed and ceiling.
    """
    from matplotlib import pyplot as plt

    from paperlib.report.curve_figures import bounds_figure
    from paperlib.report.figures import svg_uri

    height = float("nan") if ceiling is None else ceiling
    fig, words = bounds_figure(curve.assign(target="your model", seed=0, ceiling=height))
    plt.close(fig)
    caption = f"{title}: lower bounds on c (baseline) and on c + epsilon (attack) over recall."
    return Image(svg_uri(fig), caption, words)


def _image_of_bound(title: str, curve: pd.DataFrame, epsilon: float | None) -> Image:
    """The lower bound (nats) at each number of guesses, columns guesses (1 or more) and bound, and
    the reported ``epsilon``; None takes the largest bound for it.
    """
    guesses, bounds = curve["guesses"].to_numpy(), curve["bound"].to_numpy()
    if epsilon is None:
        epsilon = float(bounds.max())
    fig, axes = _panel(5.6, 3.2)
    axes.plot(guesses, bounds, label="bound at this many guesses")
    axes.axhline(
        epsilon,
        linestyle="--",
        color="black",
        linewidth=1,
        label=f"reported: {round_down(epsilon):.3f}",
    )
    top = 1.08 * max(float(bounds.max()), epsilon)
    axes.set(xscale="log", ylim=(0, top if top > 0 else 1))
    axes.set(
        xlabel="guesses made (the rest are abstentions)", ylabel="lower bound on epsilon (nats)"
    )
    _plain_log(axes, "x")
    axes.legend(loc="lower right" if top > 0 else "best")
    return Image(
        _svg_address(fig),
        f"{title}: the bound over the number of guesses, corrected for trying all of them.",
        f"Line of the lower bound over {guesses.min()} to {guesses.max()} guesses; "
        f"it is highest, {round_down(epsilon):.3f}, at {guesses[bounds.argmax()]} guesses and "
        f"{round_down(float(bounds[-1])):.3f} when guessing on all of them.",
    )


def _svg_address(fig: Figure) -> str:
    """The figure as a ``data:`` address of an SVG in its own size; the same figure gives the same
    address.
    """
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "paperlib", "svg.fonttype": "path"}):
        fig.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
