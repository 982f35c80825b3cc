"""What the page for a language model of one's own shows: identifiers, attacks, and ranks by corpus."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from paperlib.audits.corpus import skipped_table
from paperlib.audits.language import LanguageModelAudit
from paperlib.data.text.pieces import ReadLog
from paperlib.report import COLORS, LINES, legend_below, panels, show_figure, show_table

Audits = Mapping[str, LanguageModelAudit]
"""The audit of each corpus, by its name."""
_LETTERS = 24  # of an identifier that a table shows


def show_found(audits: Audits, log: ReadLog, *, limit: int) -> None:
    """Show how many identifiers of each kind are audited, and what of the corpus was not read."""
    found = [
        pd.DataFrame({"corpus": name, "kind": [one.kind for one in audit.found], "identifiers": 1})
        for name, audit in audits.items()
    ]
    show_table(
        pd.concat(found).groupby(["corpus", "kind"], sort=False).sum().reset_index(),
        name="own-identifiers",
        caption=f"Different identifiers audited, at most {limit} of a corpus.",
        columns={"corpus": "Corpus", "kind": "Kind", "identifiers": "Identifiers"},
    )
    if log.counts:
        show_table(
            skipped_table(log),
            name="own-skipped",
            caption="Parts of the corpus that were not read, or only in part, with the first example.",
            columns={"reason": "Reason", "number": "Number", "example": "Example"},
        )


def show_attacks(audits: Audits, *, confidence: float) -> None:
    """Show the AUC and the TPR at 1 % FPR of every score."""
    show_table(
        attacks_table(audits),
        name="own-attacks",
        caption=f"AUC, and true-positive rate (TPR) at a false-positive rate (FPR) of 1 %, with "
        f"{100 * confidence:g} % intervals; those of TPRs take the threshold as known.",
        columns={
            "corpus": "Corpus",
            "attack": "Score",
            "auc_shown": "AUC (%)",
            "tpr_shown": "TPR at 1 % FPR (%)",
        },
    )


def attacks_table(audits: Audits) -> pd.DataFrame:
    """The quality of every score, in percent, with cells of value and interval."""
    table = pd.concat([audit.quality.assign(corpus=name) for name, audit in audits.items()])
    shares = [name for name in table if name not in ("corpus", "attack")]
    table = pd.concat([table[["corpus", "attack"]], (100 * table[shares]).round(1)], axis=1)
    for metric in ("auc", "tpr"):
        ends = table[[metric, f"{metric}_low", f"{metric}_high"]].itertuples(index=False, name=None)
        table[f"{metric}_shown"] = [f"{value:.1f} ({low:.1f} to {high:.1f})" for value, low, high in ends]
    return table


def show_ranks(audits: Audits, *, count: int) -> None:
    """Show the best known identifiers of the first corpus, and how often each rank occurs."""
    name, first = next(iter(audits.items()))
    known = first.table.head(count)
    show_table(
        known.assign(shown=[_cut(value) for value in known["value"]]),
        name="own-best-known",
        caption=f"The best known identifiers of the corpus ({name}), by {first.rank_attack}, cut if long.",
        columns={
            "kind": "Kind",
            "shown": "Identifier",
            "occurrences": "Occurrences",
            "document": "Document",
            "rank": "Rank",
            "exposure": "Exposure (bits)",
        },
    )
    size = first.scores.values.shape[1]
    firsts = ", ".join(f"{(one.ranks == 1).mean():.0%} ({label})" for label, one in audits.items())
    show_figure(
        ranks_figure(audits, size),
        name="own-ranks",
        caption=f"Ranks of identifiers among {size} candidates by {first.rank_attack}.",
        alt=f"Share of identifiers over rank, with chance as a dotted line at {1 / size:.1%}. In first place "
        f"are {firsts}.",
        data=pd.concat([pd.DataFrame({"corpus": label, "rank": one.ranks}) for label, one in audits.items()]),
    )


def _cut(value: str) -> str:
    return value if len(value) <= _LETTERS else value[:_LETTERS] + "…"


def ranks_figure(audits: Audits, size: int) -> Figure:
    """The share of identifiers of each corpus at each rank, and chance."""
    fig, (panel,) = panels(height=3.0)
    for at, (label, one) in enumerate(audits.items()):
        counts = pd.Series(one.ranks).value_counts().reindex(range(1, size + 1), fill_value=0)
        style = {"color": COLORS[at % len(COLORS)], "linestyle": LINES[at % len(LINES)]}
        panel.step(counts.index, counts / len(one.ranks), where="mid", label=label, **style)
    panel.axhline(1 / size, color="black", linestyle=":", lw=1, label="chance")
    panel.set(xlabel="rank of the identifier", ylabel="share of identifiers")
    legend_below(fig, columns=3)
    return fig
