"""Figures and tables of the notebook on the privacy-utility landscape (Figures 1 and 2)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paperlib.papers.epsilon_star.landscape_claims import section_42
from paperlib.papers.epsilon_star.landscape_grids import LandscapeConfig, config_fields
from paperlib.papers.epsilon_star.landscape_tables import (
    describe,
    noise_models,
    pareto,
    readings,
    strategies,
    which_number_moves,
)
from paperlib.papers.verdict import Scale
from paperlib.papers.verdict.evidence import Level
from paperlib.report import (
    COLORS,
    MARKERS,
    dot_rows,
    legend_below,
    panels,
    paper_table,
    plus_minus,
    show_figure,
    show_table,
)

KINDS = {"baseline": (COLORS[1], "o", "no DP"), "dp": (COLORS[0], "s", "DP-SGD")}
_WHOSE = {"Figure 1": ("purchase100", "dp_sgd", "DP"), "Figure 2": ("adult", "all", "all")}
"""Data set of a figure of the paper, and of which models it prints a limit."""
_TICKS = (0.001, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
_LEAST = 1e-3
"""Smallest Epsilon* that the logarithmic axes show, nats."""


def landscape_scale(level: Level, frame: pd.DataFrame, config: LandscapeConfig, about: str = "") -> Scale:
    """How near the models of `landscape` are to the paper's."""
    layers = "-".join(map(str, config.widths)) + (" tanh" if config.activation == "tanh" else "")
    return Scale(
        level,
        f"{frame['dataset'].iloc[0]}{about}, {len(frame)} models; {layers} hidden units and "
        f"{config.private_epochs} epochs with DP, which the paper does not state",
    )


def show_landscape(
    frame: pd.DataFrame, *, figure: str, utility: str, origin: str, name: str | None = None
) -> None:
    """Show the landscape of one data set and its Pareto frontier on a page."""
    table = strategies(frame)
    frontier = pareto(table)
    dataset = frame["dataset"].iloc[0]
    ending = (name or dataset).replace("_", "-")
    show_figure(
        landscape_figure(table, frontier, utility=utility, figure=figure),
        name=f"landscape-{ending}",
        caption=f"{dataset} (in the manner of {figure}): one point per strategy, {len(frame)} models, "
        f"{origin}. Bars: smallest and largest of its models. Numbers: epochs without DP.",
        alt=describe_landscape(table, frontier, utility=utility),
        data=frame,
    )
    show_table(
        frontier.assign(strategy=[describe(row) for _, row in frontier.iterrows()]),
        name=f"frontier-{ending}",
        caption=f"The Pareto frontier of {dataset}, {origin}: strategies that no other one, and no mix "
        "of two others, beats on both.",
        columns={
            "strategy": "strategy",
            "epsilon_star_mean": "Epsilon*",
            "utility_mean": utility,
            "models": "models",
        },
    )


def landscape_figure(table: pd.DataFrame, frontier: pd.DataFrame, *, utility: str, figure: str) -> Figure:
    """Utility over Epsilon*, one point per strategy, with what the paper prints of the figure."""
    fig, (axis,) = panels(height=4.4)
    _points(axis, table)
    axis.plot(frontier["epsilon_star_mean"], frontier["utility_mean"], "k-", lw=1, label="Pareto frontier")
    _printed(axis, figure)
    axis.set(xscale="log", xlabel="Epsilon* (nats)", ylabel=utility)
    low, high = axis.get_xlim()
    axis.set_xticks([tick for tick in _TICKS if low <= tick <= high], minor=False)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("")
    axis.margins(y=0.1)
    legend_below(fig)
    return fig


def _points(axis: Axes, table: pd.DataFrame) -> None:
    targets = sorted(table["target_epsilon"].dropna().unique())
    styles = list(zip(COLORS, MARKERS, strict=True))
    del styles[1]  # that of the models without DP
    for (kind, target), part in table.groupby(["kind", "target_epsilon"], dropna=False):
        color, marker, label = KINDS["baseline"]
        if kind == "dp":
            color, marker = styles[(targets.index(target) + 1) % len(styles)]
            label = f"DP epsilon {target:g}"
        place = part["epsilon_star_mean"].clip(lower=_LEAST), part["utility_mean"]
        bars = _ends(part, "epsilon_star", _LEAST), _ends(part, "utility")
        axis.errorbar(
            *place, xerr=bars[0], yerr=bars[1], fmt="none", color=color, lw=0.7, alpha=0.5, capsize=0
        )
        axis.plot(*place, marker, color=color, label=label, zorder=3)
    for row_number, row in enumerate(table[table["kind"] == "baseline"].to_dict("records")):
        at, above = (row["epsilon_star_mean"], row["utility_mean"]), row_number % 2 == 0
        axis.annotate(f"{row['epochs']:g}", at, xytext=(4, 5 if above else -14), textcoords="offset points")


def _ends(part: pd.DataFrame, name: str, least: float = -np.inf) -> np.ndarray:
    low, mean, high = (part[f"{name}_{end}"].clip(lower=least) for end in ("min", "mean", "max"))
    return np.maximum(np.array([mean - low, high - mean]), 0.0)  # a mean may be a rounding above equal values


def _printed(axis: Axes, figure: str) -> None:
    points, limit = printed_landscape(figure)
    if len(points):
        axis.plot(points["epsilon_star"], points["utility"], "kx", ms=7, mew=2, label="the paper, no DP")
    axis.axvline(limit, color="k", linestyle=":", label=f"the paper: {_WHOSE[figure][2]} below {limit:g}")


def printed_landscape(figure: str) -> tuple[pd.DataFrame, float]:
    """What Section 4.2 prints of "Figure 1" or "Figure 2".

    >>> points, limit = printed_landscape("Figure 1")
    >>> points["epsilon_star"].tolist(), limit
    ([2.48, 7.06, 7.79], 1.0)
    """
    dataset, training, _ = _WHOSE[figure]
    text = paper_table("epsilon_star_text")
    text = text[(text["section"].astype(str) == "4.2") & (text["dataset"] == dataset)]
    below = text[(text["training"] == training) & (text["relation"] == "lt") & text["target_dp_eps"].isna()]
    wanted = text["quantity"].isin(["epsilon_star", "test_accuracy_pct"]) & text["epochs"].notna()
    points = text[wanted].pivot(index="epochs", columns="quantity", values="value").astype(float)
    points = points.reindex(columns=["epsilon_star", "test_accuracy_pct"]).reset_index()
    points["utility"] = points.pop("test_accuracy_pct") / 100
    return points, float(below["value"].iloc[0])


def describe_landscape(table: pd.DataFrame, frontier: pd.DataFrame, *, utility: str) -> str:
    """The landscape in words, for readers who cannot see it."""
    base = table[table["kind"] == "baseline"].sort_values("epochs")
    private = table[table["kind"] == "dp"]
    without = "; ".join(
        f"epochs {row['epochs']:g}: {row['epsilon_star_mean']:.2f} and {row['utility_mean']:.3f}"
        for _, row in base.iterrows()
    )
    text = f"Scatter of {utility} over Epsilon*. Models without DP, Epsilon* and {utility}: {without}."
    if len(private):
        star, gain = private["epsilon_star_mean"], private["utility_mean"]
        text += (
            f" The {len(private)} DP strategies have Epsilon* from {star.min():.2f} to {star.max():.2f} and "
            f"{utility} from {gain.min():.3f} to {gain.max():.3f}."
        )
    return f"{text} The Pareto frontier joins {len(frontier)} strategies."


def show_section_42(data: str, frames: Mapping[str, pd.DataFrame]) -> None:
    """Show every number of Section 4.2 on "purchase100" or "adult" beside those of our models."""
    printed = paper_table("epsilon_star_text")
    printed = printed[printed["dataset"] == data]
    found = {heading: section_42(printed, frame) for heading, frame in frames.items()}
    first = next(iter(found.values()))[["what", "paper"]]
    show_table(
        first.assign(**{heading: table["ours"].to_numpy() for heading, table in found.items()}),
        name=f"section-42-{data}",
        caption=f"Every number of Section 4.2 on {data}, beside ours; the heading names our models.",
    )


def show_shuffled(frame: pd.DataFrame) -> None:
    """Show Epsilon* of every model over that of the same losses after membership is assigned anew."""
    name, ratio = frame["dataset"].iloc[0], frame["epsilon_star"] / frame["epsilon_shuffled"]
    over = ratio.groupby(frame["kind"]).median()
    show_figure(
        shuffled_figure(frame),
        name="epsilon-star-shuffled",
        caption=f"{name}: every model's Epsilon* over the mean of ten shuffled ones.",
        alt="Scatter on two logarithmic axes, with the diagonal. In the median the DP models lie at "
        f"{over.get('dp', float('nan')):.2f} times their shuffled value, the models without DP at "
        f"{over.get('baseline', float('nan')):.2f} times.",
        data=frame[["kind", "epochs", "target_epsilon", "seed", "epsilon_star", "epsilon_shuffled"]],
    )


def shuffled_figure(frame: pd.DataFrame) -> Figure:
    """Epsilon* of every model against its shuffled value, with the diagonal."""
    fig, (axis,) = panels(height=3.6)
    for kind in ("dp", "baseline"):
        color, marker, label = KINDS[kind]
        part = frame[frame["kind"] == kind]
        axis.plot(part["epsilon_shuffled"], part["epsilon_star"], marker, color=color, alpha=0.7, label=label)
    shown = frame[["epsilon_shuffled", "epsilon_star"]]
    ends = np.array([max(_LEAST, np.nanmin(shown)), np.nanmax(shown)])
    axis.plot(ends, ends, "k:", label="equal")
    axis.set(xscale="log", yscale="log", xlabel="Epsilon* after shuffling (nats)", ylabel="Epsilon* (nats)")
    legend_below(fig, columns=3)
    return fig


def show_noise_models(frame: pd.DataFrame, *, name: str) -> None:
    """Show which models have a large Epsilon* that comes from tails and not from membership."""
    table = noise_models(frame)
    utility = next(column for column in ("AUROC", "test accuracy") if column in table)
    bound = "one run" if table.get("one run", pd.Series(dtype=float)).notna().any() else "both ends"
    shown = ["models", "number", "Epsilon*", "shuffled", "clipped", utility, bound]
    show_table(
        table,
        name=name,
        caption=f"{frame['dataset'].iloc[0]}: means over models. Clipped: losses clipped at a probability of "
        "1e-7. The lower bound is from one run. Where the shuffled value is as large as "
        "Epsilon*, the number comes from heavy tails and not from membership.",
        columns={column: column for column in shown} | {bound: "lower bound"},
        lower_bounds=[column for column in ("one run", "both ends") if column in table],
    )


def clipped_in_words(frame: pd.DataFrame) -> str:
    """What clipping the losses does to the largest DP model and to the longest training without DP."""
    base = frame[frame["kind"] == "baseline"]
    longest = base[base["epochs"] == base["epochs"].max()]
    largest = frame.loc[frame["kind"] == "dp", ["epsilon_star", "epsilon_star_clipped"]].max()
    means = longest[["epsilon_star", "epsilon_star_clipped"]].mean()
    return (
        f"With exact losses the largest Epsilon* of a DP model is {largest.iloc[0]:.2f} nats, with clipped "
        f"ones {largest.iloc[1]:.2f}; without DP, after {longest['epochs'].iloc[0]:g} epochs, the means are "
        f"{means.iloc[0]:.2f} and {means.iloc[1]:.2f}. The verdict takes the exact ones."
    )


def show_readings(frames: Mapping[str, pd.DataFrame], *, origin: str) -> None:
    """Show both claims of Figure 2 under each reading of losses and layers (`readings`)."""
    table = readings(frames)
    half = (table["to"] - table["from"]) / 2
    pairs = zip(table["difference"], half, strict=True)
    show_table(
        table.assign(**{"baseline - DP": [plus_minus(*pair) for pair in pairs]}),
        name="adult-readings",
        caption="Adult: the largest Epsilon* of a model; the largest of a DP model, and that of the baseline "
        "of 5 epochs, means over seeds; and baseline - largest DP model with its 95 % interval over seeds."
        + (f" The second architecture: {origin}." if origin else ""),
        columns={
            "layers": "network",
            "losses": "losses",
            "largest": "largest model",
            "largest DP": "largest DP model",
            "no DP, 5 epochs": "no DP, 5 epochs",
            "baseline - DP": "baseline − DP",
        },
    )


def show_theorem_2(both: pd.DataFrame, *, models: int, records: int) -> None:
    """Show both sides of Theorem 2 (`summary_of_theorem_2`) and the order of their means."""
    one = both["one_model"] - both["mechanism"]
    text = {
        "gap": zip(both["difference"], (both["high"] - both["low"]) / 2, strict=True),
        "one_gap": zip(one, (both["one_high"] - both["one_low"]) / 2, strict=True),
    }
    show_table(
        both.assign(**{name: [plus_minus(*pair) for pair in pairs] for name, pairs in text.items()}),
        name="theorem-2",
        caption=f"Both sides of Theorem 2, nats: means over {both['repetitions'].iloc[0]} repetitions with "
        f"{models} models a side, each trained on {records} records of its own; differences with 95 % "
        f"t-intervals. The order of the means holds in {(both['difference'] >= 0).sum()} of {len(both)} "
        f"rows. It is shown (interval above 0) in {(both['low'] > 0).sum()}, and refuted (interval below 0) "
        f"in {(both['high'] < 0).sum()}.",
        columns={
            "strategy": "training",
            "mechanism": "left",
            "log_mean_exp": "right",
            "gap": "right − left",
            "failed": "share with right < left",
            "one_model": "one model",
            "one_gap": "one model − left",
        },
    )


def show_moves(frames: Mapping[str, pd.DataFrame]) -> None:
    """Show Epsilon* beside its shuffled value and a lower bound, by kind of training."""
    moves = {title: which_number_moves(frame) for title, frame in frames.items()}
    rows = [len(table) for table in moves.values()]
    fig, axes = panels(len(moves), height=0.8 + 0.24 * sum(rows) / len(rows))
    grid = axes[0].get_gridspec()
    assert grid is not None
    grid.set_height_ratios(rows)
    for axis, (title, table) in zip(axes, moves.items(), strict=True):
        dot_rows(
            axis,
            [name.replace(" clipped", "") for name in table["training"]],
            table["epsilon_star"],
            label="Epsilon*",
        )
        places = np.arange(len(table))[::-1]
        bound = "one_run" if table["one_run"].notna().any() else "one_run_both"
        axis.plot(
            table["epsilon_shuffled"], places, "v", mfc="none", color=COLORS[1], label="after shuffling"
        )
        axis.plot(table[bound], places, "|", ms=10, mew=2, color=COLORS[2], label="one run (lower bound)")
        axis.set_title(title)
    axes[-1].set_xlabel("nats")
    legend_below(fig)
    everything = pd.concat([table.assign(data=title) for title, table in moves.items()], ignore_index=True)
    show_figure(
        fig,
        name="which-number-moves",
        caption="Means over the models of a kind of training. The CSV has the other numbers of the list.",
        alt=" ".join(_move_in_words(title, table) for title, table in moves.items()),
        data=everything[["data", *everything.columns.drop("data")]],
    )


def _move_in_words(title: str, table: pd.DataFrame) -> str:
    at = table.iloc[int(table["epsilon_star"].argmax())]
    return (
        f"{title}: the largest mean Epsilon* is {at['epsilon_star']:.2f} ({at['training']}), where the "
        f"shuffled value is {at['epsilon_shuffled']:.2f}."
    )


def show_grids(configs: Sequence[LandscapeConfig]) -> None:
    """Show the grids of training strategies, a column for each data set."""
    grid = [config_fields(one).set_index("setting")["value"].rename(one.dataset) for one in configs]
    table = pd.concat(grid, axis=1).drop(["dataset", "seed", "confidence"]).reset_index()
    show_table(
        table,
        name="landscape-grid",
        caption="The grids. Microbatches: how many parts of a batch have their average gradient clipped; or "
        "each record's own gradient is.",
    )


def show_speed(speed: pd.DataFrame, frames: Sequence[pd.DataFrame]) -> None:
    """Show how fast models are trained (`measure_throughput`), and how long those of the page took."""
    show_table(
        speed,
        name="training-speed",
        caption="Models per minute, and how much faster than one at a time: than this package's own loop "
        "with fused Adam (plain), than a plain Opacus loop (DP-SGD); by the clock and in CPU time.",
        columns={
            "task": "training",
            "method": "method",
            "models": "models",
            "models_per_minute": "models per minute",
            "speedup": "times as fast",
            "speedup_per_core": "times, CPU time",
        },
    )
    seconds = pd.concat(frames).groupby(["dataset", "kind"])["seconds"].agg(["size", "sum"]).reset_index()
    show_table(
        seconds,
        name="training-seconds",
        caption="Seconds of training behind this page, summed over processes; results kept from an earlier "
        "run count with the time they took then.",
        columns={"dataset": "data", "kind": "training", "size": "models", "sum": "seconds of training"},
    )
