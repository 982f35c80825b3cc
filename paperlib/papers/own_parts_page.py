"""Tables and the figure of the notebook with an attack, a generator and a bound of one's own."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from paperlib.audits import PanoramiaAudit
from paperlib.report import dot_rows, legend_below, panels, show_figure, show_table, show_text


def mean_games(audit: PanoramiaAudit) -> list[dict[str, Any]]:
    """Means over the games of an audit, a row for each target, and epsilon~ of the mean bounds."""
    numbers = ["c_lb", "c_plus_eps_lb", "baseline_auc", "mia_auc"]
    means = audit.games.groupby("target", sort=False)[numbers].mean().reset_index()
    means["eps_tilde"] = (means["c_plus_eps_lb"] - means["c_lb"]).clip(lower=0)
    return [{str(name): value for name, value in row.items()} for row in means.to_dict("records")]


def show_games(found: Mapping[str, Sequence[Mapping[str, Any]]], *, part: str, games: int) -> None:
    """Show the same audit with several attacks or generators."""
    show_table(
        pd.DataFrame([{part: name, **row} for name, rows in found.items() for row in rows]),
        name=f"own-{part}",
        caption=f"The same audit with several {part}s, {_mean_of(games)} (bounds and ε~ in nats).",
        columns={
            part: part.capitalize(),
            "target": "Target",
            "c_lb": "Bound on c",
            "c_plus_eps_lb": "Bound on c + ε",
            "eps_tilde": "ε~",
            "baseline_auc": "Baseline AUC",
            "mia_auc": "Attack AUC",
        },
        lower_bounds=["c_lb", "c_plus_eps_lb"],
    )


def _mean_of(games: int) -> str:
    return "one game" if games == 1 else f"means over {games} games"


def show_rates(rates: pd.DataFrame, *, nominal: float, interval: float) -> None:
    """Show how often each rule reports more than the truth, and which of them the simulation refutes."""
    rules = list(rates.groupby("bound", sort=False))
    fig, axes = panels(len(rules), height=2.1, share_x=True)
    for axis, (name, rows) in zip(axes, rules, strict=True):
        names = [str(mechanism).replace(", ", ",\n") for mechanism in rows["mechanism"]]
        dot_rows(axis, names, rows["rate"], low=rows["low"], high=rows["high"], label="rate and interval")
        axis.axvline(nominal, color="k", linestyle=":", label=f"allowed: {nominal:.2g}")
        axis.set_title(str(name))
    axes[-1].set_xlabel("share of bounds above the truth")
    legend_below(fig)
    show_figure(
        fig,
        name="own-rates",
        caption=f"How often each rule reports more than the truth, with {interval:.1%} intervals.",
        alt="; ".join(f"{name}: {_rates_in_words(rows)}" for name, rows in rules) + ".",
        data=rates,
    )
    show_text(refuted(rates))


def _rates_in_words(rows: pd.DataFrame) -> str:
    return ", ".join(f"{row['rate']:.3f} on {row['mechanism']}" for row in rows.to_dict("records"))


def refuted(rates: pd.DataFrame) -> str:
    """Rules whose rate lies above the nominal level with its whole interval (`simulate`), in words."""
    above = rates[rates["verdict"] == "above the nominal level"]
    if above.empty:
        return "No rule is refuted."
    return (
        "Refuted: "
        + "; ".join(
            f"“{row['bound']}” on {row['mechanism']} ({row['wrong']} of {row['trials']} bounds are wrong)"
            for row in above.to_dict("records")
        )
        + "."
    )
