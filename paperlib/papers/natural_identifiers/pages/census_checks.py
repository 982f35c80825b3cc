"""What the page on the census shows of its own checks: kinds, plain expressions, speed, blind classifiers."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paperlib.data.text.corpora import CorpusFile
from paperlib.data.text.pieces import Reading
from paperlib.generators.identifiers import Identifier, kinds_table
from paperlib.generators.identifiers.filter import FilteredIdentifiers, filter_identifiers
from paperlib.papers.natural_identifiers.census import tables
from paperlib.report import COLORS, dot_rows, legend_below, panels, show_figure, show_table, show_text

_FEWEST = 20  # identifiers from which blind classifiers are worth fitting


def show_kinds() -> None:
    """Show the kinds of identifiers with their entropy and an example."""
    kinds = kinds_table()
    show_table(
        kinds.assign(example=kinds["example"].str.slice(0, 40))[["kind", "bits", "example"]],
        name="nid-kinds",
        caption="Kinds of identifiers: entropy in bits, and an example, cut at 40 characters.",
        columns={"kind": "Kind", "bits": "Bits", "example": "Example"},
    )


def show_checks(
    files: Sequence[CorpusFile], *, characters: int, megabytes: float, reading: Reading | None = None
) -> None:
    """Show the same counts by plain expressions, and the speed of the census."""
    ours, plain = tables.plain_counts(files, characters=characters, reading=reading)
    show_table(
        pd.DataFrame({"kind": list(ours), "this_package": ours.values(), "plain_expression": plain.values()}),
        name="nid-engines",
        caption=f"Matches in the first {characters / 1e6:.0f} million characters, look-alikes included.",
        columns={"kind": "Kind", "this_package": "This package", "plain_expression": "Plain expression"},
    )
    show_table(
        tables.census_speed(files, megabytes=megabytes, reading=reading),
        name="nid-speed",
        caption="Speed on one core, by processor time.",
        columns={
            "step": "Step",
            "megabytes": "Text (MB)",
            "cpu_seconds": "Seconds",
            "mb_per_second": "MB per second",
        },
    )


def show_blind(sample: Sequence[Identifier], *, count: int, extreme: float, seed: int) -> None:
    """Show whether blind classifiers tell identifiers from generated ones, before and after the filter."""
    if len(sample) < _FEWEST:
        show_text(f"Fewer than {_FEWEST} identifiers: too few to judge.")
        return
    blind = filter_identifiers(sample, count=count, extreme=extreme, seed=seed)
    both = before_and_after(blind)
    dropped = ", ".join(f"{number} by {reason}" for reason, number in blind.dropped.items())
    said = "; ".join(
        f"{row.kind}, {row.baseline} {row.auc:.2f}, then {row.auc_after:.2f}" for row in both.itertuples()
    )
    show_figure(
        blind_figure(both),
        name="nid-blind",
        caption="Blind AUC before and after dropping extreme ranks, with 95 % intervals. Dropped: "
        f"{dropped or 'none'}; too few to judge: {', '.join(blind.unjudged) or 'none'}.",
        alt=f"A row for each kind and classifier, with chance at one half. {said or 'None is judged'}.",
        data=both,
    )


def before_and_after(blind: FilteredIdentifiers) -> pd.DataFrame:
    """The blind AUC of each kind and classifier before the filter, and with its interval after."""
    after = blind.after.rename(columns={"auc": "auc_after", "low": "low_after", "high": "high_after"})
    keys = ["kind", "baseline"]
    return blind.before[[*keys, "identifiers", "auc"]].merge(
        after[[*keys, "auc_after", "low_after", "high_after", "near_chance"]], on=keys
    )


def blind_figure(both: pd.DataFrame) -> Figure:
    """A row for each kind and classifier of `before_and_after`, with chance at one half."""
    fig, (panel,) = panels(height=1.2 + 0.4 * len(both))
    labels = [f"{row.kind},\n{row.baseline}" for row in both.itertuples()]
    dot_rows(
        panel,
        labels,
        both["auc_after"],
        low=both["low_after"],
        high=both["high_after"],
        label="after the filter",
    )
    rows = np.arange(len(both))[::-1]
    panel.plot(both["auc"], rows, "s", color=COLORS[1], mfc="none", label="before")
    panel.axvline(0.5, color="black", ls=":", lw=1)
    panel.set_xlabel("blind AUC")
    legend_below(fig)
    return fig
