"""What the page on the census shows: Table 2 beside ours, rates, look-alikes, and other corpora."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from paperlib.generators.identifiers import PAPER_KINDS
from paperlib.papers.natural_identifiers.census import pile, tables
from paperlib.papers.natural_identifiers.census.corpus import Census
from paperlib.papers.natural_identifiers.evidence import census_evidence
from paperlib.papers.verdict import Scale, record
from paperlib.report import COLORS, dot_rows, legend_below, panels, show_figure, show_table, show_text

_HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "--")
_PAPERS = {"Pile, train": ("pile", "train"), "Pile, test": ("pile", "test"), "Dolma": ("dolma", "train")}
_READINGS = {
    "matches": "Matches",
    "different": "Different",
    "erc55": "With ERC-55",
    "outside_addresses": "Outside web addresses",
    "filtered": "After filters",
    "paper": "The paper",
}


def show_paper_table(by_subset: pd.DataFrame) -> None:
    """Show the totals of the paper's Table 2 by kind, beside those of the text of a run."""
    show_table(
        table_2(by_subset),
        name="nid-table-02-paper",
        caption="Table 2 of the paper by kind, summed over the subsets of each corpus, beside the text that "
        "this page counts: different identifiers of each subset.",
        columns={name: name for name in ("Kind", "This page", *_PAPERS, "All of the paper's")},
    )


def table_2(by_subset: pd.DataFrame) -> pd.DataFrame:
    """One row per kind: different identifiers here and in the paper's corpora, without its aggregated row."""
    printed = tables.paper_census()
    printed = printed[~printed["dataset"].str.contains("all subsets")]
    columns = ["total", *PAPER_KINDS]
    frame = pd.DataFrame(
        {"Kind": ["all kinds", *PAPER_KINDS], "This page": by_subset[columns].sum().tolist()}
    )
    for name, (corpus, split) in _PAPERS.items():
        chosen = printed[(printed["corpus"] == corpus) & (printed["split"] == split)]
        frame[name] = chosen[columns].sum().tolist()
    return frame.assign(**{"All of the paper's": printed[columns].sum().tolist()})


def show_pile(places: pd.DataFrame, read: pd.DataFrame, *, facts: str) -> None:
    """Show the kinds in the Pile's test part beside the paper's, by reading, and judge Table 2."""
    filtered, read = pile.filtered_census(places), read[read["subset"].isin(list(tables.PILE_SUBSETS))]
    shares = kind_shares(filtered, read["subset"].tolist())
    said = "; ".join(f"{row.kind} {row.here:.0f}, the paper {row.paper:.0f}" for row in shares.itertuples())
    fig, (panel,) = panels(height=2.6)
    dot_rows(panel, shares["kind"].tolist(), shares["here"], printed=shares["paper"])
    panel.set_xlabel("share of the identifiers (percent)")
    legend_below(fig)
    show_figure(
        fig,
        name="nid-table-02-places",
        caption=f"Kinds of identifiers in subsets of the Pile's test part, after the filters ({facts}), and "
        "the paper's shares on the same subsets. The CSV has every place.",
        alt=f"Shares in percent, by kind. {said}.",
        data=places,
    )
    by_kind = pile.counts_by_kind(places).groupby("kind", sort=False)[list(_READINGS)].sum().reset_index()
    show_table(
        by_kind,
        name="nid-table-02-kinds",
        caption="Identifiers by kind, summed over the subsets, under several readings: all matches, "
        "different values, those that the paper admits (Ethereum addresses with ERC-55 alone), of these "
        "those never within a web address, what the filters keep, and the paper's count for the whole test "
        "part.",
        columns={"kind": "Kind"} | _READINGS,
    )
    scale = Scale("paper's data", f"{read['documents'].sum():,} documents of the Pile's test part, {facts}")
    record(census_evidence(read["subset"], filtered), scale=scale)


def show_no_pile(by_subset: pd.DataFrame) -> None:
    """Say that no subset of the Pile is at hand, which leaves Table 2 undecided."""
    show_text("No subset of the Pile's test part is at hand.")
    facts = f"{by_subset['documents'].sum():,} documents without subsets of the Pile"
    record(census_evidence(by_subset["subset"], None), scale=Scale("substitute", facts))


def kind_shares(filtered: pd.DataFrame, subsets: Sequence[str]) -> pd.DataFrame:
    """Percent of the identifiers that are of each of the paper's kinds: columns kind, here, paper."""
    kinds, printed = list(PAPER_KINDS), tables.paper_census()
    ours = filtered[kinds].sum()
    theirs = printed[printed["dataset"].isin([tables.PILE_SUBSETS[name] for name in subsets])][kinds].sum()
    share = {"here": 100 * ours / max(1, ours.sum()), "paper": 100 * theirs / max(1, theirs.sum())}
    return pd.DataFrame(share).rename_axis("kind").reset_index()


def show_rates(places: pd.DataFrame, read: pd.DataFrame) -> None:
    """Show totals before and after the filters and rates beside the paper's, and the sites of Hacker News."""
    filtered, rates = pile.filtered_census(places), pile.rates(places, read)
    show_table(
        filtered,
        name="nid-table-02-filtered",
        caption="Different identifiers in the sample before and after the filters, and the paper's number "
        "for the whole test part.",
        columns={"subset": "Subset", "before": "Before", "total": "After", "paper": "The paper"},
    )
    above = filtered[filtered["total"] > filtered["paper"]]
    more = [f"{row.subset} ({row.total} against {row.paper})" for row in above.itertuples()]
    show_text(
        "Subsets of which the sample alone has more identifiers than the paper counts in the whole test "
        f"part: {', '.join(more) or 'none'}."
    )
    said = "; ".join(
        f"{row.subset} {row.per_million:.0f}, the paper {row.paper_per_million:.0f}"
        for row in rates.itertuples()
    )
    show_figure(
        rates_figure(rates),
        name="nid-rates",
        caption="Identifiers that the paper admits per million documents, before the filters, with exact "
        "95 % Poisson intervals; a rate of 0 stands at the left edge.",
        alt=f"Rates by subset on a logarithmic axis. {said}.",
        data=rates,
    )
    cells = [f"{row.per_million:.0f} ({row.low:.0f} to {row.high:.0f})" for row in rates.itertuples()]
    show_table(
        rates.assign(shown=cells, paper_shown=rates["paper_per_million"].round().astype(int)),
        name="nid-table-02-rates",
        caption="The same in numbers. The intervals take identifiers of one document as independent; the "
        "number of documents behind the paper's counts is computed from the Pile's stated sizes.",
        columns={
            "subset": "Subset",
            "documents": "Documents",
            "identifiers": "Identifiers",
            "shown": "Per million (95 %)",
            "paper_shown": "The paper, per million",
            "ratio": "Ratio",
        },
    )
    _show_sites(places)


def rates_figure(rates: pd.DataFrame) -> Figure:
    """A row for each subset: our rate with its interval, and the paper's."""
    edge = rates[["per_million", "low", "paper_per_million"]].to_numpy(float)
    least = 10 ** np.floor(np.log10(edge[edge > 0].min())) / 10
    ours = {name: rates[name].clip(least) for name in ("per_million", "low", "high")}
    fig, (panel,) = panels(height=1.0 + 0.35 * len(rates))
    labels = rates["subset"].tolist()
    dot_rows(
        panel,
        labels,
        ours["per_million"],
        low=ours["low"],
        high=ours["high"],
        printed=rates["paper_per_million"],
    )
    panel.set(xscale="log", xlabel="identifiers per million documents")
    legend_below(fig)
    return fig


def _show_sites(places: pd.DataFrame) -> None:
    for subset in sorted({"hackernews", "HackerNews"} & set(places["subset"])):
        by_kind, found = pile.counts_by_kind(places), pile.sites(places, subset)
        sums = by_kind[by_kind["subset"] == subset].sum(numeric_only=True)
        show_table(
            found.assign(site=found["site"].replace("", "(in no web address)")),
            name="nid-hackernews",
            caption=f"{subset}: {sums['matches']} matches of {sums['different']} values by site and kind; "
            f"{sums['outside_addresses']} values are in no web address; the filters keep {sums['filtered']}; "
            f"the paper counts {sums['paper']}.",
            columns={"site": "Site", "kind": "Kind", "different": "Different", "documents": "Documents"},
        )


def show_text_at_hand(census: Census, by_subset: pd.DataFrame) -> None:
    """Show what the text of a run holds: by subset, densities, look-alikes, and what was not read."""
    show_table(
        by_subset,
        name="nid-table-02",
        caption="The text of this page: documents, all matches, and different identifiers of the paper's six "
        "kinds and of all others.",
        columns={
            "subset": "Subset",
            "documents": "Documents",
            "matches": "Matches",
            "total": "The paper's kinds",
            "other_kinds": "Other kinds",
        },
    )
    dense = densities(by_subset)
    if len(dense):
        top = dense.set_index("subset").sum(axis=1).idxmax()
        show_figure(
            density_figure(dense),
            name="nid-density",
            caption="Different identifiers per million characters, by subset and kind.",
            alt=f"Stacked bars, one for each of {len(dense)} subsets that hold identifiers; the densest is "
            f"{top}.",
            data=dense,
        )
    show_look_alikes(census.totals)
    if len(census.skipped):
        show_table(
            census.skipped,
            name="nid-skipped",
            caption="What was not read, or with a loss, and the first example.",
            columns={"reason": "Reason", "number": "Number", "example": "Example"},
        )


def densities(by_subset: pd.DataFrame) -> pd.DataFrame:
    """Different identifiers per million characters: subset, the paper's kinds and other_kinds."""
    shown, kinds = by_subset[by_subset["matches"] > 0], [*PAPER_KINDS, "other_kinds"]
    rates = shown[kinds].mul(1e6 / shown["characters"].clip(lower=1), axis=0)
    return pd.concat([shown["subset"], rates], axis=1).reset_index(drop=True)


def density_figure(dense: pd.DataFrame) -> Figure:
    """Stacked bars of `densities`, told apart by colour and hatching."""
    fig, (panel,) = panels(height=2.3 + 0.28 * len(dense))
    rows, left = np.arange(len(dense))[::-1], np.zeros(len(dense))
    for kind, color, hatch in zip(dense.columns[1:], COLORS, _HATCHES, strict=True):
        style = {"color": color, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5}
        panel.barh(rows, dense[kind], left=left, label=kind.replace("other_", "other "), **style)
        left = left + dense[kind].to_numpy()
    panel.set_yticks(rows, dense["subset"].tolist())
    panel.set_xlabel("different identifiers per million characters")
    legend_below(fig)
    return fig


def show_look_alikes(totals: pd.DataFrame) -> None:
    """Show identifiers and look-alikes by kind, with the reasons why these fail."""
    if totals.empty:
        show_text("No identifier and no look-alike in this text.")
        return
    show_table(
        look_alikes(totals),
        name="nid-forms",
        caption="Different identifiers and look-alikes over all subsets, and why the look-alikes fail.",
        columns={
            "kind": "Kind",
            "identifiers": "Identifiers",
            "look_alikes": "Look-alikes",
            "why": "Why they fail",
        },
    )


def look_alikes(totals: pd.DataFrame) -> pd.DataFrame:
    """One row per kind: kind, identifiers and look_alikes (different values), why."""
    rows = []
    for kind, here in totals.groupby("kind", sort=False):
        valid = here["valid"].astype(bool)
        failed = here[~valid]
        why = [f"{form} ({number})" for form, number in zip(failed["form"], failed["different"], strict=True)]
        row = {"kind": kind, "identifiers": int(here.loc[valid, "different"].sum())}
        rows.append(row | {"look_alikes": int(failed["different"].sum()), "why": ", ".join(why) or "–"})
    return pd.DataFrame(rows)


def show_other_corpora(real: pd.DataFrame, origin: str) -> None:
    """Show counts of other corpora than the Pile."""
    show_table(
        real[~real["subset"].isin(list(tables.PILE_SUBSETS))],
        name="nid-table-02-real",
        caption=f"Other corpora ({origin}): all matches, and different identifiers of the paper's six kinds "
        "and of all others.",
        columns={
            "subset": "Subset",
            "documents": "Documents",
            "matches": "Matches",
            "total": "The paper's kinds",
            "other_kinds": "Other kinds",
        },
    )
