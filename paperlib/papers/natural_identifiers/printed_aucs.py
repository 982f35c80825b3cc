"""The paper's tables of AUC: beside which models they stand, their means, and what folding alone explains."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from paperlib.report import paper_table

DIFFERENCE = "large less small"
"""Name of the rows with the difference in AUC of two models on the same identifiers."""
PAPER_MODELS = {"large": "Pythia-12b", "medium": "Pythia-6.9b", "small": "Pythia-2.8b", "one pass": "OLMo-7B"}
"""Our small models and the models of the paper whose tables they stand beside."""

PAPER_TABLES: Mapping[str, Mapping[str, int]] = {
    "auc": {"large": 1, "medium": 4, "small": 5, "one pass": 3},
    "tpr": {"large": 6, "medium": 7, "small": 8, "one pass": 9},
}
"""The paper's table that each of our models stands beside, by metric."""


def paper_averages(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over subsets of a paper's table, such as ``nid_table01``, per attack and split; percent."""
    own = table[~table["subset"].isin(["average", "unlabelled"])]
    return own.groupby(["mia", "split"], sort=False)["value_pct"].mean().reset_index()


def folded_cells(aucs: pd.DataFrame, *, draws: int = 2_000) -> pd.DataFrame:
    """Printed AUCs of Pythia beside what folding alone gives with as many identifiers (Table 2), percent."""
    counts = paper_table("nid_table02")
    pile = counts[(counts["corpus"] == "pile") & (counts["is_aggregate"] == 0)]
    known = {
        name.lower().replace(" ", ""): int(n) for name, n in zip(pile["dataset"], pile["total"], strict=True)
    }
    known |= {f"pile{split}pile": int(rows["total"].sum()) for split, rows in pile.groupby("split")}
    cells = aucs[aucs["subset"] != "average"].rename(columns={"value_pct": "printed"}).reset_index(drop=True)
    keys = "pile" + cells["split"] + cells["subset"].str.replace("_", "")
    null = 100 * folded_null(keys.map(known).tolist(), draws=draws)
    table = cells[["subset", "split"]].assign(identifiers=keys.map(known), printed=cells["printed"])
    return table.assign(noise_mean=null["mean_folded"], noise_95=null["folded_95"])


def folded_null(
    identifiers: Sequence[int], *, generated: int = 127, draws: int = 2_000, seed: int = 0
) -> pd.DataFrame:
    """What max(AUC, 1 - AUC) looks like, by number of identifiers, where nothing was trained on: shares."""
    rng = np.random.default_rng(seed)
    rows = []
    for n in identifiers:
        # Where all scores are alike in distribution, the ranks of n among n (1 + c) values are the game.
        total = n * (1 + generated)
        spread = np.sqrt(n * (n * generated) * (total + 1) / 12) / (n * n * generated)
        auc = 0.5 + spread * rng.standard_normal(draws)
        folded = np.maximum(auc, 1 - auc)
        means = {"mean_auc": float(auc.mean()), "mean_folded": float(folded.mean())}
        rows.append({"identifiers": n, **means, "folded_95": float(np.quantile(folded, 0.95))})
    return pd.DataFrame(rows)
