"""The page on validity: rates of wrong bounds, and what validity costs, from the tables of the study."""

import textwrap

import pandas as pd
from matplotlib.axes import Axes

from paperlib.report import (
    COLORS,
    LINES,
    MARKERS,
    dot_rows,
    legend_below,
    panels,
    plus_minus,
    show_figure,
    show_table,
)

_RULES = {"both": "Both ends", "members": "Members", "nonmembers": "Non-members"}
_TWIN = "(twin)"
_LINE = 0.22
"""Height of a line of a row's name, inches."""


def split_twins(ours: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Rows of `coverage`: those that claim the nominal level, the twins, and those that claim less."""
    twin = ours["bound"].str.contains(_TWIN, regex=False)
    return ours[ours["valid"]], ours[twin], ours[~ours["valid"] & ~twin]


def worst_rows(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """The row with the highest rate of each group, in the groups' order."""
    return frame.loc[frame.groupby(by, sort=False)["rate"].idxmax()]


def show_rates(ours: pd.DataFrame) -> None:
    """The worst sound bound of each family, and every twin; the first file has all rows."""
    sound, twins, _ = split_twins(ours)
    worst = worst_rows(sound, "family")
    _show_dots(
        worst["family"].tolist(),
        worst,
        name="validity-bounds",
        caption=f"Sound bounds: rates of wrong bounds with 99.9 % intervals, the worst of each family. The "
        f"file has all {len(sound)} rows, and those that claim less.",
        alt=f"Of all {len(sound)} rows {_above(sound)} lie wholly to the right of the line. {_words(worst)}.",
        data=ours,
    )
    _show_dots(
        _names_of(twins),
        twins,
        name="validity-twins",
        caption="Twins, bounds with a step of the proof left out: rates of wrong bounds with 99.9 % "
        "intervals.",
        alt=f"{_above(twins)} of {len(twins)} bars lie wholly to the right of the line. {_words(twins)}.",
        data=twins,
    )


def _above(frame: pd.DataFrame) -> int:
    """Rows whose whole interval is above the nominal rate."""
    return int((frame["verdict"] != "consistent with it").sum())


def _words(frame: pd.DataFrame) -> str:
    return "; ".join(f"{row.bound}, {row.mechanism}: {row.rate:.2f}" for row in frame.itertuples())


def _show_dots(
    names: list[str], rows: pd.DataFrame, *, name: str, caption: str, alt: str, data: pd.DataFrame
) -> None:
    """A dot with its interval for each row, and the nominal rate as a line."""
    lines = sum(one.count("\n") + 1 for one in names)
    fig, (axes,) = panels(1, height=_LINE * lines + 0.1 * len(names) + 1.2)
    dot_rows(axes, names, rows["rate"], low=rows["low"], high=rows["high"], label="rate, 99.9 % interval")
    nominal = float(rows["nominal"].iloc[0])
    axes.axvline(nominal, color=COLORS[6], linestyle="--", label=f"nominal {nominal:.2g}")
    axes.set_xlim(left=-0.02 * axes.get_xlim()[1])
    axes.set_xlabel("share of wrong bounds")
    legend_below(fig)
    alt = f"A dot with a bar for each row against a line at the nominal rate. {alt}"
    show_figure(fig, name=name, caption=caption, alt=alt, data=data)


def _names_of(twins: pd.DataFrame) -> list[str]:
    """Names of twins in short lines, with the mechanism where one has several."""
    names = twins["bound"].str.removesuffix(_TWIN).str.strip()
    several = twins["bound"].duplicated(keep=False)
    return (names + (", " + twins["mechanism"]).where(several, "")).map(wrapped).tolist()


def wrapped(text: str, width: int = 27) -> str:
    """Text in lines of at most so many letters.

    >>> print(wrapped("fixed count, blind to bursts of 50", 20))
    fixed count, blind
    to bursts of 50
    """
    whole = text.replace(" = ", "\u00a0=\u00a0").replace(" δ", "\u00a0δ")
    return "\n".join(textwrap.wrap(whole, width))


def show_families(ours: pd.DataFrame, seed: int) -> None:
    """Every family of sound bounds: its rows, and the one with the highest rate."""
    sound, *_ = split_twins(ours)
    worst = worst_rows(sound, "family").set_index("family")
    groups = sound.assign(above=sound["verdict"] != "consistent with it").groupby("family", sort=False)
    counts = groups.agg(
        rows=("rate", "size"), above=("above", "sum"), boundary=("boundary", "sum"), audits=("trials", "sum")
    )
    show_table(
        counts.join(worst[["bound", "mechanism", "rate", "low", "high"]]).reset_index(),
        name="validity-summary",
        columns={
            "family": "Family",
            "rows": "Rows",
            "above": "Above nominal",
            "rate": "Highest rate",
            "bound": "Its bound",
            "mechanism": "Its mechanism",
            "boundary": "Boundary cases",
        },
        caption=f"Every family of sound bounds; seed {seed}.",
    )


def show_rows(frame: pd.DataFrame, name: str, caption: str, *more: str) -> None:
    """Rows of `coverage` as a table."""
    ends = zip(frame["rate"], frame["low"], frame["high"], strict=True)
    slack = (frame["slack"].round(2) + 0.0).map("{:.2f}".format).where(frame["boundary"], "no boundary case")
    texts = [f"{rate:.3f} ({low:.3f} to {high:.3f})" for rate, low, high in ends]
    heads = {"seen_from": "Seen from", "slack": "Slack", "verdict": "Verdict"}
    show_table(
        frame.assign(slack=slack, text=texts),
        name=name,
        columns={"bound": "Bound", "text": "Wrong bounds", "mechanism": "Mechanism"}
        | {one: heads[one] for one in more},
        digits=3,
        caption=caption,
    )


def looking_ahead(ours: pd.DataFrame) -> pd.DataFrame:
    """Sound orders and sets of one run beside the twins that look ahead, each default with its family."""
    ahead = ours["bound"].eq("default") | ours["bound"].str.contains("looked at|chosen on", regex=True)
    same = ours["family"].isin(["one run", "output sets"])
    named = ours["mechanism"].isin(["no leakage", "randomized response, ε = 1"])
    found = ours[ahead & same & named]
    default = found["bound"].eq("default")
    return found.assign(bound=found["bound"].mask(default, "default, " + found["family"]))


def show_rules(common: pd.DataFrame) -> None:
    """Rules in common use: the mechanism on which each is wrong most often; the file has all."""
    worst = worst_rows(common, "bound")
    _show_dots(
        worst["bound"].map(wrapped).tolist(),
        worst,
        name="validity-rules",
        caption="Rates of wrong bounds of rules in common use, each on the mechanism that it fares worst on; "
        "99.9 % intervals. The file has every mechanism and the mean bounds.",
        alt=f"{_words(worst)}.",
        data=common,
    )


def show_power(power: pd.DataFrame, draws: int) -> None:
    """Mean bounds of every sound search on the same scores, a column for each delta."""
    wide = power.pivot(index="bound", columns="delta", values="mean").loc[power["bound"].unique()]
    wide.columns = [f"δ = {delta:g}" for delta in wide.columns]
    show_table(
        wide.reset_index(),
        name="validity-power",
        columns={"bound": "Bound"} | {name: name for name in wide.columns},
        caption=f"Mean bound over {draws} audits of {power['examples'].max():,} examples with μ = 1, nats; "
        f"the truth is {power['truth'].min():.2f} at δ = {power['delta'].max():g}, more at smaller δ.",
    )


def show_designs(designs: pd.DataFrame, oracle: str, draws: int, confidence: float) -> None:
    """Mean bounds of every design over the number of examples, a panel for each leak; a table of the last."""
    leaks = list(designs["leak"].unique())
    fig, axes = panels(len(leaks), height=3.0)
    for ax, leak in zip(axes, leaks, strict=True):
        _lines(ax, designs[designs["leak"] == leak], oracle)
        ax.set(title=leak, ylabel="mean bound (nats)")
    axes[-1].set_xlabel("audit examples")
    legend_below(fig, columns=1)
    last = designs[designs["examples"] == designs["examples"].max()]
    show_figure(
        fig,
        name="validity-designs",
        caption=f"Mean bound over {draws} audits of each design, confidence {confidence:g}, δ = 0.",
        alt=f"Two panels of lines over the number of examples. At {last['examples'].max():,} examples: "
        + "; ".join(f"{row.leak}, {row.design}: {row.mean:.2f}" for row in last.itertuples()),
        data=designs,
    )
    wide = last.pivot(index="design", columns="leak", values="mean").loc[last["design"].unique(), leaks]
    show_table(
        wide.reset_index(),
        name="validity-designs-largest",
        columns={"design": "Design"} | {leak: leak for leak in leaks},
        caption=f"Mean bound of each design at {last['examples'].max():,} examples, nats.",
    )


def _lines(ax: Axes, rows: pd.DataFrame, oracle: str) -> None:
    places = sorted(rows["examples"].unique())
    names = [name for name in rows["design"].unique() if name != oracle]
    looks = {
        name: {"color": COLORS[at], "marker": MARKERS[at], "linestyle": LINES[at]}
        for at, name in enumerate(names)
    } | {oracle: {"color": "#777777", "linestyle": ":", "linewidth": 3}}
    for name, look in looks.items():
        part = rows[rows["design"] == name]
        ax.plot(part["examples"].map(places.index), part["mean"], label=name, **look)
    ax.set_xticks(range(len(places)), [f"{m:,}" for m in places])


def show_shapes(shapes: pd.DataFrame, draws: int, seed: int) -> None:
    """The default beside the rules that fix the side, a table for each delta, at the largest size."""
    for delta, rows in shapes.groupby("delta"):
        won = {name: (rows["adaptive"] - rows[rule]).max() for rule, name in _RULES.items()}
        told = ", ".join(f"{value:.1f} nats over *{name}*" for name, value in won.items())
        largest = rows["examples"].max()
        show_table(
            _by_shape(rows),
            name="validity-shapes" + ("-delta" if delta else ""),
            columns={
                "shape": "Scores",
                "adaptive": "Default",
                **_RULES,
                "text": "Lost",
            },
            caption=f"Mean bound over {draws} audits of {largest:,} examples at δ = {delta:g}, nats, and "
            f"what the default loses, ± its standard error; seed {seed}. The file has every size. The "
            f"most that the default gains on one shape and size: {told}.",
        )


def _by_shape(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each shape: values at the largest size, then those at the others, named by their size."""
    rows = rows.assign(text=list(map(plus_minus, rows["lost"], rows["lost_se"])))
    last, *others = sorted(rows["examples"].unique(), reverse=True)
    table = rows[rows["examples"] == last].set_index("shape")
    for m in others:
        table = table.join(rows[rows["examples"] == m].set_index("shape").add_prefix(f"m = {m}: "))
    return table.reset_index()


def lessons(ours: pd.DataFrame, common: pd.DataFrame, designs: pd.DataFrame, oracle: str) -> str:
    """What to take from the simulation."""
    sound, twins, _ = split_twins(ours)
    parts = (sound, twins, common[~common["valid"]])
    above = [_above(one) for one in parts]
    worst = parts[2].nlargest(1, "rate").iloc[0]
    last = designs[designs["examples"] == designs["examples"].max()]
    mean = last[last["leak"] == last["leak"].iloc[0]].set_index("design")["mean"]
    return (
        f"1. {above[0]} of {len(sound)} rows of bounds that claim the nominal level lie wholly above it, and "
        f"{above[1]} of {len(twins)} twins do. A simulation can refute a bound; it cannot prove it.\n\n"
        f"2. Of {len(parts[2])} rows of rules in common use {above[2]} lie wholly above the nominal level; "
        f"the worst, *{worst['bound']}*, is wrong in {worst['rate']:.0%} of its audits. A search must be "
        "corrected for, or made on other scores than those that are judged.\n\n"
        f"3. Validity has a price: at {last['examples'].max():,} examples of the leak "
        f"*{last['leak'].iloc[0]}* the default shows {mean['randomized, default']:.2f} nats, and the best "
        f"fixed rule, chosen in hindsight and not valid, {mean[oracle]:.2f}."
    )
