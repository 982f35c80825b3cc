"""How well attacks tell identifiers from generated ones: AUC and TPR with intervals (Tables 1 and 3
to 9).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from paperlib.audits.candidates import CandidateScores, attack_quality, auc_difference
from paperlib.core import FloatArray
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.natural_identifiers.labels import (
    DIFFERENCE,
    PAPER_MODELS,
    PAPER_TABLES,
    TOKENS,
)
from paperlib.reproduction.papers.natural_identifiers.planted import (
    PAPER_ATTACKS,
    PlantedConfig,
    planted_scores,
)

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
    """Train four models on planted identifiers, and judge how well attacks tell these.

    Args:
        planted: Corpus and training of the models "large", "medium" and "small".
        widths: Of these three models; "one pass" has that of "medium".
        one_pass_filler: Documents without identifiers that "one pass" reads once, as a multiple of
            those with one.
        generated: Alternatives of each identifier.
        draws: Of the bootstraps behind intervals and errors.
        confidence: Of each interval, in (0, 1).

    Returns:
        A row for each model, group of identifiers and score: columns of `judged`, and the number of
            the model's parameters; then the rows of `auc_differences`. Qualities are shares.
    """
    # Three sizes on one corpus, and one pass over a corpus with more text beside the identifiers.
    sizes = dict(zip(("large", "medium", "small"), widths, strict=True))
    configs = {name: replace(planted, width=width) for name, width in sizes.items()}
    configs["one pass"] = replace(
        planted,
        width=widths[1],
        repetitions=(1,),
        identifiers=planted.held_out,
        epochs=1,
        filler=one_pass_filler,
    )
    scores = {
        name: planted_scores(config, generated=generated, attacks=SCORES)
        for name, config in configs.items()
    }
    options = {"draws": draws, "confidence": confidence}
    tables: list[pd.DataFrame] = []
    for name, of_model in scores.items():
        table = judged(name, of_model.values, subsets(of_model), **options)
        tables.append(table.assign(parameters=configs[name].parameters()))
    pair = {name: scores[name].values for name in ("large", "small")}
    tables.append(auc_differences(pair, subsets(scores["large"]), **options))
    return pd.concat(tables, ignore_index=True)


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
    """How well each score tells identifiers from their alternatives, a row per group and score.

    Args:
        model: Its name, for a column.
        values: Higher for members, shape (n, 1 + c, scores), the identifier first; NaN where an
            identifier has no such score.
        groups: Name to a mask of identifiers, shape (n,).
        attacks: Names of the scores, in their order.
        draws: Bootstrap draws behind the interval of the AUC.
        confidence: Of each interval, in (0, 1).
        seed: Of the draws.

    Returns:
        Columns model, group, identifiers (their number), attack, and those of `attack_quality`,
            shares.
    """
    rows: list[dict[str, Any]] = []
    for cell in _cells(values, groups, attacks):
        scores = values[cell.members][..., cell.column]
        quality = attack_quality(scores, draws=draws, confidence=confidence, seed=seed)
        rows.append({"model": model, **cell.keys} | quality)
    return pd.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class _Cell:
    """A group of identifiers and a score that members of it have."""

    group: str
    attack: str
    members: np.ndarray  # who of the group has the score, shape (n,)
    column: int  # of the score

    @property
    def keys(self) -> dict[str, Any]:
        """The columns of a table that name the cell, with the number of its identifiers."""
        count = int(self.members.sum())
        return {"group": self.group, "identifiers": count, "attack": self.attack}


def _cells(
    values: FloatArray, groups: Mapping[str, np.ndarray], attacks: Sequence[str]
) -> Iterator[_Cell]:
    """Each group of identifiers and score, but those scores that no identifier of the group has.

    Args:
        values: Shape (n, 1 + c, scores); NaN where an identifier has no such score.
        groups: Name to a mask of identifiers, shape (n,).
        attacks: Names of the scores, in their order.
    """
    has_score = np.asarray(np.isfinite(values).all(axis=1))
    for group, of_group in groups.items():
        for column, attack in enumerate(attacks):
            members = of_group & has_score[:, column]
            if members.any():
                yield _Cell(group, attack, members, column)


def auc_differences(
    values: Mapping[str, FloatArray],
    groups: Mapping[str, np.ndarray],
    *,
    draws: int = 200,
    confidence: float = 0.99,
) -> pd.DataFrame:
    """AUC of the "large" model less that of the "small" one on the same identifiers, shares.

    Args:
        values: Scores of both models by these names, shape (n, 1 + c, scores), as `judged` takes
            them.
        groups: Name to a mask of identifiers, shape (n,).
        draws: Bootstrap draws behind the standard errors.
        confidence: Of the normal intervals, in (0, 1).

    Returns:
        A row for each group and score: columns of `judged` with the model `DIFFERENCE`, of which
            auc, auc_low and auc_high alone.
    """
    z = float(ndtri((1 + confidence) / 2))
    rows: list[dict[str, Any]] = []
    for cell in _cells(values["large"], groups, SCORES):
        large = values["large"][cell.members][..., cell.column]
        small = values["small"][cell.members][..., cell.column]
        auc, error = auc_difference(large, small, draws=draws)
        ends = {"auc": auc, "auc_low": auc - z * error, "auc_high": auc + z * error}
        rows.append({"model": DIFFERENCE, **cell.keys, **ends})
    return pd.DataFrame(rows)


def subsets(scores: CandidateScores) -> dict[str, np.ndarray]:
    """By the name of each group a mask of its identifiers, shape (identifiers,): held out, trained,
    and, where numbers of occurrences differ, those of each number.
    """
    groups = {"held out": scores.groups == 0, "trained": scores.groups > 0}
    times = sorted(set(scores.groups[scores.groups > 0].tolist()))
    if len(times) > 1:
        for count in times:
            groups[f"{count} time{'s' if count > 1 else ''}"] = scores.groups == count
    return groups


def beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the four models and the attacks of the paper, beside its means over its subsets.

    ``table`` has rows of `benchmark`. Columns paper_model, paper_auc and paper_tpr (percent) are
    added, NaN beside groups that the paper does not show.
    """
    rows = table[table["model"].isin(list(PAPER_MODELS)) & table["attack"].isin(PAPER_ATTACKS)]
    rows = rows.assign(
        paper_model=rows["model"].map(PAPER_MODELS), split=rows["group"].map(_SPLITS)
    )
    for metric, numbers in PAPER_TABLES.items():
        tables: list[pd.DataFrame] = []
        for model, number in numbers.items():
            printed = paper_table(f"nid_table{number:02d}")
            tables.append(paper_averages(printed).assign(model=model))
        means = pd.concat(tables)
        means = means.rename(columns={"mia": "attack", "value_pct": f"paper_{metric}"})
        rows = rows.merge(means, how="left", on=["model", "attack", "split"])
    return rows.drop(columns="split")


def paper_averages(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over subsets of a paper's table, such as ``nid_table01``, per attack and split;
    percent.
    """
    subsets = table[~table["subset"].isin(["average", "unlabelled"])]
    return subsets.groupby(["mia", "split"], sort=False)["value_pct"].mean().reset_index()


def folded_cells(aucs: pd.DataFrame, *, draws: int = 2_000) -> pd.DataFrame:
    """Printed AUCs of Pythia beside what folding alone, max(AUC, 1 - AUC), gives with as many
    identifiers (Table 2), percent.

    Args:
        aucs: Rows of a printed table: subset, split and value_pct.
        draws: Of each null distribution.

    Returns:
        A row for each subset and split: identifiers (their number), printed, and mean and 95 %
            quantile of the folded AUC of noise.
    """
    counts = paper_table("nid_table02")
    pile = counts[(counts["corpus"] == "pile") & (counts["is_aggregate"] == 0)]
    # The number of identifiers by the name of the data set, in small letters without spaces; all
    # of a split together are its subset "pile".
    names = pile["dataset"].str.lower().str.replace(" ", "")
    totals = dict(zip(names, pile["total"].astype(int).tolist(), strict=True))
    for split, rows in pile.groupby("split"):
        totals[f"pile{split}pile"] = int(rows["total"].sum())
    cells = aucs[aucs["subset"] != "average"].reset_index(drop=True)
    names_of_cells = "pile" + cells["split"] + cells["subset"].str.replace("_", "")
    identifiers = names_of_cells.map(totals)
    null = 100 * folded_null(identifiers.tolist(), draws=draws)
    table = cells[["subset", "split"]].assign(identifiers=identifiers, printed=cells["value_pct"])
    return table.assign(noise_mean=null["mean_folded"], noise_95=null["folded_95"])


def folded_null(
    identifiers: Sequence[int], *, generated: int = 127, draws: int = 2_000
) -> pd.DataFrame:
    """How large AUC and max(AUC, 1 - AUC) are by chance, where nothing was trained on.

    Args:
        identifiers: Numbers of identifiers.
        generated: Alternatives of each.
        draws: Of the AUC's normal distribution.

    Returns:
        A row for each number: both means, and the 95 % quantile of the latter, shares.
    """
    rng = np.random.default_rng(0)
    rows: list[dict[str, float]] = []
    for n in identifiers:
        # Where all scores are alike in distribution, the ranks of n among n (1 + c) values are
        # random: the deviation of Mann and Whitney's U, over its largest value.
        spread = np.sqrt(n * (n * generated) * (n * (1 + generated) + 1) / 12) / (n * n * generated)
        auc = 0.5 + spread * rng.standard_normal(draws)
        folded = np.maximum(auc, 1 - auc)
        means = {"mean_auc": float(auc.mean()), "mean_folded": float(folded.mean())}
        rows.append({"identifiers": n, **means, "folded_95": float(np.quantile(folded, 0.95))})
    return pd.DataFrame(rows)
