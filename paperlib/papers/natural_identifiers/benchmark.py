"""How well attacks tell identifiers from generated ones: AUC and TPR with intervals (Tables 1 and 3
to 9).
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from paperlib.audits.candidates import CandidateScores, attack_quality, auc_difference
from paperlib.core import FloatArray
from paperlib.papers.natural_identifiers.labels import (
    DIFFERENCE,
    PAPER_MODELS,
    PAPER_TABLES,
    TOKENS,
)
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS, PlantedConfig, planted_scores
from paperlib.report import paper_table

SCORES = (*PAPER_ATTACKS, TOKENS)
"""What is judged: the paper's attacks, and the number of tokens."""
_SPLITS = {"trained": "train", "trained, occurs once": "train", "held out": "test"}


def benchmark(
    planted: PlantedConfig,
    *,
    widths: tuple[int, int, int] = (128, 64, 32),
    one_pass_filler: float = 16.0,
    generated: int = 31,
    draws: int = 200,
    confidence: float = 0.99,
) -> pd.DataFrame:
    """`judged` of each model and its `subsets`, with its parameters, then `auc_differences`."""
    # Three sizes on one corpus, and one pass over a corpus with more text beside the identifiers.
    sizes = dict(zip(("large", "medium", "small"), widths, strict=True))
    configs = {name: replace(planted, width=width) for name, width in sizes.items()}
    once = {
        "repetitions": (1,),
        "identifiers": planted.held_out,
        "epochs": 1,
        "filler": one_pass_filler,
    }
    configs["one pass"] = replace(planted, width=widths[1], **once)
    options = {"draws": draws, "confidence": confidence}
    scores = {
        name: planted_scores(one, generated=generated, attacks=SCORES)
        for name, one in configs.items()
    }
    tables = [
        judged(name, one.values, subsets(one), **options).assign(
            parameters=configs[name].parameters()
        )
        for name, one in scores.items()
    ]
    pair = {name: scores[name].values for name in ("large", "small")}
    return pd.concat(
        [*tables, auc_differences(pair, subsets(scores["large"]), **options)], ignore_index=True
    )


def judged(
    model: str,
    values: FloatArray,
    groups: Mapping[str, np.ndarray],
    *,
    attacks: Sequence[str] = SCORES,
    draws: int = 200,
    confidence: float = 0.99,
    seed: int = 0,
) -> pd.DataFrame:
    """`attack_quality` of all ``attacks``, a row per group and score; values of shape (n, 1 + c,
    scores).
    """
    options = {"draws": draws, "confidence": confidence, "seed": seed}
    return pd.DataFrame(
        {"model": model, **about} | attack_quality(values[here][..., at], **options)
        for about, here, at in _cells(values, groups, attacks)
    )


def _cells(
    values: FloatArray, groups: Mapping[str, np.ndarray], attacks: Sequence[str]
) -> Iterator[tuple[dict[str, Any], np.ndarray, int]]:
    """Each group and score: what a row says of it, who of the group has the score, and its
    place.
    """
    has = np.asarray(np.isfinite(values).all(axis=1))
    for (group, members), (at, attack) in itertools.product(groups.items(), enumerate(attacks)):
        if (here := members & has[:, at]).any():
            yield {"group": group, "identifiers": int(here.sum()), "attack": attack}, here, at


def auc_differences(
    values: Mapping[str, FloatArray],
    groups: Mapping[str, np.ndarray],
    *,
    draws: int = 200,
    confidence: float = 0.99,
) -> pd.DataFrame:
    """AUC of the "large" model less that of the "small" one on the same identifiers, as
    `judged`.
    """
    rows, z = [], float(ndtri((1 + confidence) / 2))
    for about, here, at in _cells(values["large"], groups, SCORES):
        large, small = (values[name][here][..., at] for name in ("large", "small"))
        auc, error = auc_difference(large, small, draws=draws)
        ends = {"auc": auc, "auc_low": auc - z * error, "auc_high": auc + z * error}
        rows.append({"model": DIFFERENCE, **about, **ends})
    return pd.DataFrame(rows)


def subsets(scores: CandidateScores) -> dict[str, np.ndarray]:
    """Which identifiers belong to each group."""
    groups = {"held out": scores.groups == 0, "trained": scores.groups > 0}
    times = sorted(set(scores.groups[scores.groups > 0].tolist()))
    return groups | {
        f"{n} time{'s' if n > 1 else ''}": scores.groups == n for n in times if len(times) > 1
    }


def beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the four models and the attacks of the paper, percent, beside its means over its
    subsets.
    """
    rows = table[table["model"].isin(list(PAPER_MODELS)) & table["attack"].isin(PAPER_ATTACKS)]
    rows = rows.assign(
        paper_model=rows["model"].map(PAPER_MODELS), split=rows["group"].map(_SPLITS)
    )
    for metric, numbers in PAPER_TABLES.items():
        tables = [
            (model, paper_table(f"nid_table{number:02d}")) for model, number in numbers.items()
        ]
        means = pd.concat(
            [paper_averages(printed).assign(model=model) for model, printed in tables]
        )
        means = means.rename(columns={"mia": "attack", "value_pct": f"paper_{metric}"})
        rows = rows.merge(means, how="left", on=["model", "attack", "split"])
    return rows.drop(columns="split")


def paper_averages(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over subsets of a paper's table, such as ``nid_table01``, per attack and split;
    percent.
    """
    own = table[~table["subset"].isin(["average", "unlabelled"])]
    return own.groupby(["mia", "split"], sort=False)["value_pct"].mean().reset_index()


def folded_cells(aucs: pd.DataFrame, *, draws: int = 2_000) -> pd.DataFrame:
    """Printed AUCs of Pythia beside what folding alone gives with as many identifiers (Table 2),
    percent.
    """
    counts = paper_table("nid_table02")
    pile = counts[(counts["corpus"] == "pile") & (counts["is_aggregate"] == 0)]
    names = pile["dataset"].str.lower().str.replace(" ", "")
    known = dict(zip(names, pile["total"].astype(int).tolist(), strict=True))
    known |= {f"pile{split}pile": int(rows["total"].sum()) for split, rows in pile.groupby("split")}
    cells = (
        aucs[aucs["subset"] != "average"]
        .rename(columns={"value_pct": "printed"})
        .reset_index(drop=True)
    )
    keys = "pile" + cells["split"] + cells["subset"].str.replace("_", "")
    null = 100 * folded_null(keys.map(known).tolist(), draws=draws)
    table = cells[["subset", "split"]].assign(identifiers=keys.map(known), printed=cells["printed"])
    return table.assign(noise_mean=null["mean_folded"], noise_95=null["folded_95"])


def folded_null(
    identifiers: Sequence[int], *, generated: int = 127, draws: int = 2_000
) -> pd.DataFrame:
    """What max(AUC, 1 - AUC) looks like, by number of identifiers, where nothing was trained on:
    shares.
    """
    rng, rows = np.random.default_rng(0), []
    for n in identifiers:
        # Where all scores are alike in distribution, the ranks of n among n (1 + c) values are the
        # game.
        spread = np.sqrt(n * (n * generated) * (n * (1 + generated) + 1) / 12) / (n * n * generated)
        auc = 0.5 + spread * rng.standard_normal(draws)
        folded = np.maximum(auc, 1 - auc)
        means = {"mean_auc": float(auc.mean()), "mean_folded": float(folded.mean())}
        rows.append({"identifiers": n, **means, "folded_95": float(np.quantile(folded, 0.95))})
    return pd.DataFrame(rows)
