"""What Natural Identifiers does not say: folded AUCs, and a bound that reaches epsilon for every rank."""

import pandas as pd

from paperlib.papers.findings.finding import Finding
from paperlib.papers.natural_identifiers.benchmark import folded_null
from paperlib.papers.natural_identifiers.randomized_response import RandomizedResponseConfig, bounds_by_sets
from paperlib.report import dot_rows, legend_below, panels, paper_table

MODEL, ATTACK, TABLE = "Pythia-12b", "loss", "nid_table01"


def folded(draws: int) -> Finding:
    """Printed AUCs on training subsets beside those of noise that is folded to above one half."""
    table = training_subsets(draws)
    within = table[table["printed"] <= table["noise, 95 %"]]
    figure, (axis,) = panels(height=0.7 + 0.36 * len(table))
    names = [f"{name} ({count})" for name, count in zip(table["subset"], table["identifiers"], strict=True)]
    dot_rows(axis, names, table["noise, mean"], low=[50.0] * len(table), high=table["noise, 95 %"],
             printed=table["printed"], label="noise, folded")  # fmt: skip
    axis.set_xlabel("AUC (%)")
    legend_below(figure)
    listed = "; ".join(
        f"{row['subset']} {row['printed']:.1f} against {row['noise, 95 %']:.1f}"
        for row in table.to_dict("records")
    )
    return Finding(
        slug="folded",
        paper="natural_identifiers",
        title="A folded AUC of noise is above one half",
        sentence="Where max(AUC, 1 - AUC) is printed, noise alone gives more than 50 %, and the more the "
        "fewer "
        f"identifiers there are. Of the {len(table)} training subsets that the paper prints for {MODEL} "
        "and the loss "
        f"attack, {len(within)} lie within what noise gives in 95 % of cases.",
        figure=figure,
        caption=f"AUCs of {MODEL} on training subsets (Table 1 of the paper), beside folded AUCs of "
        "noise: mean, "
        f"from 50 to the 95 % quantile, {draws:,} draws. In brackets: the number of identifiers.",
        alt=f"A row for each subset with the range of noise and a cross for the printed value. Printed "
        "against the "
        f"95 % quantile: {listed}.",
        data=table,
    )


def training_subsets(draws: int) -> pd.DataFrame:
    """Printed training AUCs of one model and attack, and what folded noise gives, percent."""
    cells = paper_table(TABLE).query("model == @MODEL and mia == @ATTACK and split == 'train'")
    cells = cells[~cells["subset"].isin(["average"])]
    counts = paper_table("nid_table02").query("corpus == 'pile' and split == 'train'")
    known = {_plain(name.removeprefix("pile train")): int(n) for name, n in
             zip(counts["dataset"], counts["total"], strict=True)}  # fmt: skip
    known["pile"] = sum(known.values())
    rows = [(name, known[_plain(name)], value) for name, value in zip(cells["subset"], cells["value_pct"],
            strict=True) if _plain(name) in known]  # fmt: skip
    table = pd.DataFrame(rows, columns=["subset", "identifiers", "printed"])
    noise = 100 * folded_null(table["identifiers"].tolist(), draws=draws)[["mean_folded", "folded_95"]]
    return table.assign(
        **{"noise, mean": noise["mean_folded"].to_numpy(), "noise, 95 %": noise["folded_95"].to_numpy()}
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def tight_ranks(epsilon: float, cardinality: int, top: int, *, confidence: float) -> Finding:
    """The paper's rank bound and the tight one, over the number of sets."""
    config = RandomizedResponseConfig(
        epsilons=(epsilon,), curves=((cardinality, top),), confidence=confidence
    )
    every = bounds_by_sets(config)
    table = every[every["mechanism"] == "subset selection"]
    figure, (axis,) = panels()
    for (name, rows), marker in zip(table.groupby("bound", sort=False), "os", strict=True):
        label = {"paper": "the paper's Theorem 1", "tight": "tight, ours"}[str(name)]
        axis.plot(rows["sets"], rows["mean"], marker=marker, label=label)
    axis.axhline(epsilon, color="black", linestyle="--", label="true epsilon")
    axis.set(xscale="log", xlabel="number of sets", ylabel="lower bound (nats)")
    legend_below(figure)
    last = table[table["sets"] == table["sets"].max()].set_index("bound")["mean"]
    return Finding(
        slug="ranks",
        paper="natural_identifiers",
        title="A tight rank bound reaches epsilon where the paper's stops",
        sentence=f"Where a hit is a rank among the first {top} of {cardinality}, the paper's Theorem 1 "
        "can show no "
        f"more than {last['paper']:.2f} nats of a mechanism whose epsilon is {epsilon:g}, with any "
        "number of sets. "
        f"The bound that follows from the likelihood ratios of two candidates shows {last['tight']:.2f}. "
        "A mechanism of this epsilon reaches the success rate that it allows, so that no smaller rate is "
        "valid.",
        figure=figure,
        caption=f"Mean bound of both theorems on subset selection (epsilon {epsilon:g}, {cardinality} "
        "candidates, "
        f"hits among the first {top}, confidence {confidence:g}); exact, nothing is sampled.",
        alt=f"Two curves over the number of sets, and the true epsilon as a line. At "
        f"{table['sets'].max():,} sets the "
        f"paper's bound is {last['paper']:.2f}, the tight one {last['tight']:.2f}.",
        data=table,
    )
