"""Figures and tables of the notebook on tables (Table 6, Figures 10 and 12), and what to take from them."""

import re
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from paperlib.audits.panoramia.results import TargetAudits
from paperlib.core import round_down
from paperlib.papers.panoramia.null.control import CONTRAST, NOTABLE
from paperlib.papers.panoramia.tables.pools import TabularRows
from paperlib.papers.panoramia.tables.tables import TabularResults
from paperlib.papers.panoramia.tables.wide import counted, widened
from paperlib.report import (
    bounds_figure,
    dot_rows,
    guesses_figure,
    panels,
    plus_minus,
    precision_figure,
    show_figure,
    show_table,
)

_AUDITS = ("panoramia", "rm_rn", "o1")
_PRINTED = ("MLP_E10", "MLP_E100")
"""The paper's targets, trained shortest and longest."""
_WORLDS = {
    "table": "tables",
    f"table, columns drawn apart {CONTRAST}": "weak generator",
    f"toy, helper knows nothing {CONTRAST}": "weak helper",
}


def show_parts(rows: TabularRows) -> None:
    """Show the sizes of the parts, and whether generated rows repeat what the generator learned from."""
    parts, copies = {name: len(part) for name, part in rows.parts.items()}, rows.copies
    found: dict[str, float] = {
        "rows of D_G": parts["generator"],
        "members": parts["members"],
        "other rows for the null target": parts["null"],
        "real non-members": parts["nonmembers"],
        "generated, equal to an earlier one": copies.repeated,
        "generated, equal to a row of D_G": copies.copied,
        "generated, equal to a held-out row": copies.copied_others,
        "generated, nearer to D_G than to held-out rows": copies.nearer,
    }
    cells = [str(value) if isinstance(value, int) else f"{value:.1%}" for value in found.values()]
    show_table(
        pd.DataFrame({"what": list(found), "number or share": cells}),
        name="tabular-generator",
        caption="The parts of the table (disjoint), and whether generated rows repeat what the generator "
        "learned from. Half of them should lie nearer to $D_G$ than to as many held-out rows.",
    )


def short(target: str) -> str:
    """The name of a target without that of its network.

    >>> short("MLP, 50 epochs"), short("null")
    ('50 epochs', 'null')
    """
    return target.removeprefix("MLP, ")


def beside_the_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `table_six` of this run, with the paper's beside those trained shortest and longest."""
    ours = table[table["source"] == "ours"].reset_index(drop=True)
    printed = table[table["source"] == "paper"].set_index("target")
    first, labels = ours["label"].iloc[0], ours["label"].nunique()
    trained = [name for name in ours.loc[ours["label"] == first, "target"] if name.endswith(" epochs")]
    pairs = dict(zip((trained[-1], trained[0]), reversed(_PRINTED), strict=True))
    rows = []
    for row in ours.to_dict("records"):
        theirs = pairs.get(row["target"]) if row["label"] == first else None
        paper = None if theirs is None else printed.loc[theirs]
        shown = short(row["target"]) + (f" (paper: {re.sub('[^0-9]', '', theirs)})" if theirs else "")
        cells = {
            "shown": shown if labels == 1 else f"{row['label']}, {shown}",
            "accuracy": f"{row['train_accuracy']:.2f} / {row['test_accuracy']:.2f}",
        }
        for name in _AUDITS:
            cells[f"{name}, here"] = _cell(row, name)
            cells[f"{name}, paper"] = _as_printed(paper, name)
        rows.append(cells)
    return pd.concat([ours, pd.DataFrame(rows)], axis=1)


def _cell(row: Any, name: str) -> str:
    value = float(row[name])
    if name != "panoramia" and not pd.isna(value):
        value = round_down(value, 2)
    return plus_minus(value, float(row[f"{name}_sd"]))


def _as_printed(row: Any, name: str) -> str:
    return "–" if row is None or pd.isna(row[name]) else f"{row[name]:g} ± {row[f'{name}_sd']:g}"


def show_table_six(table: pd.DataFrame, *, name: str, caption: str) -> None:
    """Show `table_six` with the paper's values beside ours."""
    show_table(
        beside_the_paper(table),
        name=name,
        caption=caption,
        columns={
            "shown": "target",
            "accuracy": "accuracy, train / test",
            "panoramia, here": "ε~ here",
            "panoramia, paper": "ε~ in the paper",
            "rm_rn, here": "RM;RN here",
            "o1, here": "O(1) here",
            "o1, paper": "O(1) in the paper",
        },
    )


def caption_six(form: str, games: int) -> str:
    """Caption of Table 6: what the columns are, in the form shown, over so many games."""
    return (
        f"$\\tilde\\varepsilon$ of PANORAMIA (form {form}, union over recall), and lower bounds on "
        "$\\varepsilon$ with real non-members (RM;RN: the same attack; O(1): loss thresholds), nats: means ± "
        f"deviations over {counted(games)}. The paper's, on Adult, stand beside the targets trained shortest "
        "and longest."
    )


def forms_figure(panoramia: pd.DataFrame) -> tuple[Figure, str]:
    """The difference of the bounds of each target by search, a panel for each form, with 95 % t-intervals."""
    rows = panoramia.assign(difference=panoramia["c_plus_eps_lb"] - panoramia["c_lb"])
    forms = list(dict.fromkeys(rows["form"]))
    count = max((rows["form"] == form).sum() for form in forms)
    fig, all_axes = panels(len(forms), height=0.8 + 0.2 * count, share_x=True)
    several, words = rows["label"].nunique() > 1, []
    for axes, form in zip(all_axes, forms, strict=True):
        part = rows[rows["form"] == form]
        names = [
            f"{f'{row.label}, ' if several else ''}{short(str(row.target))}, {row.search}"
            for row in part.itertuples()
        ]
        half = part["value_t"]
        dot_rows(
            axes, names, part["difference"], low=part["difference"] - half, high=part["difference"] + half
        )
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_title(f"form {form}", loc="left")
        means = part["difference"].round(2) + 0.0  # no minus before a zero
        told = ", ".join(f"{name} {value:.2f}" for name, value in zip(names, means, strict=True))
        words.append(f"Form {form}: {told}")
    all_axes[-1].set_xlabel("difference of the bounds (nats)")
    return fig, f"{'. '.join(words)}."


def show_forms(results: TabularResults) -> None:
    """Show PANORAMIA on each target in both forms, with both corrections for testing many recall levels."""
    rows = results.summary[results.summary["audit"] == "panoramia"]
    fig, words = forms_figure(rows)
    show_figure(
        fig,
        name="tabular-forms",
        caption="PANORAMIA on each target in both forms, with both corrections for testing many recall "
        "levels: difference of the bounds, not clipped at 0, means over games and 95 % t-intervals (games on "
        "one split share their models).",
        alt=words,
        data=rows.rename(columns={"value": "eps_tilde", "value_sd": "sd", "value_t": "t"}),
    )


def show_recall(curves: pd.DataFrame) -> None:
    """Show precision and bounds over recall (Figure 12)."""
    fig, words = precision_figure(curves)
    show_figure(
        fig,
        name="tabular-precision",
        caption="Precision of the guesses over recall, a line for each game on the first split (Figure 12a).",
        alt=words,
        data=curves,
    )
    fig, words = bounds_figure(curves)
    show_figure(
        fig,
        name="tabular-bounds",
        caption="Lower bounds on $c$ (baseline) and $c + \\varepsilon$ (attack) over recall (Figure 12b), "
        "with the ceiling of a perfect attack at this size.",
        alt=words,
        data=curves,
    )


def show_extremes(extremes: pd.DataFrame) -> None:
    """Show how many of the rows that a baseline is surest of hold a rare value (`extreme_values`).

    Columns without a rare value are left out; the last row, of all columns, is always shown.
    """
    held = (extremes[["top", "members", "generated"]] > 0).any(axis=1)
    show_table(
        extremes[held | (extremes["column"] == extremes["column"].iloc[-1])],
        name="tabular-extremes",
        caption="Share of rows with a rare value, for each column that has some: among the 5 % that a "
        f"baseline without helper is surest of ({extremes['top_rows'].iloc[0]} rows), among all members, "
        "among generated rows; and the first over the second.",
        columns={
            "column": "column",
            "top": "surest rows",
            "members": "members",
            "generated": "generated",
            "ratio": "surest / members",
        },
    )


def show_guesses(curves: pd.DataFrame) -> None:
    """Show members among the first guesses (Figure 10)."""
    fig, words = guesses_figure(curves)
    show_figure(
        fig,
        name="tabular-guesses",
        caption="Members among the first guesses, a line for each game on the first split (Figure 10d).",
        alt=words,
        data=curves,
    )


def correlation_in_words(correlation: float, target: str) -> str:
    """How well the estimated ratio of densities agrees with the attack's score on a target."""
    return (
        f"{short(target)}: rank correlation of the estimated ratio with the attack's score {correlation:.2f}."
    )


def show_simulated_sets(simulated: pd.DataFrame, *, examples: int) -> None:
    """Show output sets where the densities of the scores are known (`simulated_bounds`)."""
    means = simulated.groupby(["way", "target"], sort=False)["c_plus_eps_lb"].mean().unstack()
    show_table(
        means.reset_index(),
        name="tabular-output-sets-simulated",
        caption="Lower bound on $c + \\varepsilon$ where $c = 0$, nats, by where members score: means over "
        f"simulated games of {examples} examples.",
        lower_bounds=["higher scores", "inner region"],
    )


def show_sets(sets: pd.DataFrame, first: TargetAudits, names: list[str]) -> None:
    """Show output sets beside the searches over recall, a column for each of some targets."""
    values = ["eps_tilde", "c_lb", "c_plus_eps_lb"]
    means = sets.groupby(["target", "way", "examples"], sort=False)[values].mean().reset_index()
    means["eps_tilde"] = means["eps_tilde"].clip(lower=0)
    show_table(
        widened(means, rows=["way", "examples"], by="target", values=values),
        name="tabular-output-sets",
        caption="Output sets beside the searches over recall: $\\tilde\\varepsilon$ of each target, nats, "
        f"means over {first.config.repetitions} games of the first split. The CSV has both bounds.",
        columns={"way": "way", "examples": "judged"} | {f"{one}: eps_tilde": short(one) for one in names},
    )


def show_orders(orders: pd.DataFrame) -> None:
    """Show learned orders beside the trained attacks (`learned_orders`)."""
    show_table(
        orders,
        name="tabular-learned-orders",
        caption="Attacks trained on a part of the pools, and learned orders, nats: means over the games of "
        "the first split; seconds of one game with this target alone.",
        columns={
            "target": "target",
            "audit": "attack",
            "m": "judged",
            "c_lb": "c at least",
            "c_plus_eps_lb": "c + ε at least",
            "eps_tilde": "ε~",
            "seconds": "seconds",
        },
        lower_bounds=["c_lb", "c_plus_eps_lb", "eps_tilde"],
    )


def gain_in_words(orders: pd.DataFrame, target: str) -> str:
    """How much higher the attack's bound is with learned orders than with each trained attack."""
    bounds = orders[orders["target"] == target].set_index("audit")["c_plus_eps_lb"]
    gains = [
        f"{bounds['learned orders'] - bounds[way]:+.2f} nats against the {way}"
        for way in bounds.index.drop("learned orders")
    ]
    return f"The attack's bound on {short(target)} with learned orders: {'; '.join(gains)}."


def show_strong(strong: pd.DataFrame, *, shadows: int) -> None:
    """Show the stronger attacks (`strong_attacks`)."""
    show_table(
        strong,
        name="tabular-strong",
        caption="AUC of each number alone, for members against real non-members and against generated rows; "
        f"then PANORAMIA with it, nats (form helpers; all: all of them together). {shadows} shadow models; "
        "those of LiRA (online) learn no real non-member. The CSV has the AUC of the helper's number.",
        columns={
            "target": "target",
            "attack": "attack",
            "auc_real": "AUC, real",
            "auc_generated": "AUC, generated",
            "c_lb": "c at least",
            "c_plus_eps_lb": "c + ε at least",
            "eps_tilde": "ε~",
        },
        lower_bounds=["c_lb", "c_plus_eps_lb", "eps_tilde"],
    )


def alarms_figure(found: pd.DataFrame) -> tuple[Figure, str]:
    """Share of null targets with a notable eps-tilde, a panel for each search, with its intervals."""
    searches, column = list(dict.fromkeys(found["search"])), f"above {NOTABLE:g}"
    fig, all_axes = panels(len(searches), height=2.6, share_x=True)
    words = []
    for axes, search in zip(all_axes, searches, strict=True):
        rows = found[found["search"] == search]
        names = [f"{_WORLDS.get(row.world, row.world)}, {row.form}" for row in rows.itertuples()]
        low, high = (rows[f"{column}, {end}"] for end in ("low", "high"))
        dot_rows(axes, names, rows[column], low=low, high=high)
        axes.set_title(f"search: {search}", loc="left")
        shares = ", ".join(f"{name} {value:.0%}" for name, value in zip(names, rows[column], strict=True))
        words.append(f"Search {search}: {shares}")
    all_axes[-1].set_xlabel(f"share with ε~ above {NOTABLE:g} nats")
    return fig, f"{'. '.join(words)}."


def show_control(found: pd.DataFrame) -> None:
    """Show how often a null target is given a notable eps-tilde (`false_positives`)."""
    fig, words = alarms_figure(found)
    show_figure(
        fig,
        name="tabular-null",
        caption=f"Share of null targets with $\\tilde\\varepsilon$ above {NOTABLE:g} nats, with "
        "Clopper-Pearson 95 % intervals. The CSV has also the share above 0, the mean $c_{lb}$ and the "
        "largest $\\tilde\\varepsilon$.",
        alt=words,
        data=found,
    )


def in_words(table: pd.DataFrame, alarms: pd.DataFrame) -> str:
    """The three things to take, with the numbers of the run, as Markdown."""
    ours = table[table["source"] == "ours"]
    ours = ours[ours["label"] == ours["label"].iloc[0]].set_index("target")
    trained = [str(name) for name in ours.index if str(name).endswith(" epochs")]
    early, late = trained[0], trained[-1]
    own = ours["panoramia"]
    column, weak = f"above {NOTABLE:g}", alarms["world"].str.endswith(CONTRAST)
    shares = [f"{alarms.loc[chosen, column].max():.0%}" for chosen in (~weak, weak)]
    return (
        rf"1. $\tilde\varepsilon$ is {own[early]:.2f} nats for {short(early)} and {own[late]:.2f} for "
        f"{short(late)}. "
        f"The null target, which never saw the members, shows {own['null']:.2f}.\n"
        "2. Real non-members make the stronger test where they are at hand: O(1) shows at least "
        f"{round_down(float(ours.loc[late, 'o1']), 2):.2f} nats for {short(late)}.\n"
        f"3. The baseline decides what counts as leakage. In the last figure at most {shares[0]} of the null "
        f"targets with a fair helper get more than {NOTABLE:g} nats in any row; with a weak helper or "
        f"generator up to {shares[1]}."
    )
