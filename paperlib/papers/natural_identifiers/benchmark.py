"""How well attacks tell identifiers from generated ones: AUC and TPR with intervals (Tables 1 and 3 to 9)."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from paperlib.audits.candidates import CandidateScores, attack_quality
from paperlib.papers.natural_identifiers.natural_truth import auc_differences
from paperlib.papers.natural_identifiers.planted import (
    PAPER_ATTACKS,
    TOKENS,
    PlantedConfig,
    planted_model,
    planted_scores,
)

PAPER_MODELS = {"large": "Pythia-12b", "medium": "Pythia-6.9b", "small": "Pythia-2.8b", "one pass": "OLMo-7B"}
"""Our small models and the models of the paper whose tables they stand beside."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkConfig:
    """Models and scoring of the benchmark."""

    #: corpus, training and shape of the large model
    planted: PlantedConfig = field(default_factory=PlantedConfig)
    widths: tuple[int, int, int] = (128, 64, 32)  #: widths of the large, the medium and the small model
    #: documents without identifiers for each one with an identifier, in the corpus of the model that sees
    #: everything once
    one_pass_filler: float = 16.0
    generated: int = 31  #: alternatives per identifier, 1 or more
    draws: int = 200  #: bootstrap draws, 1 or more
    confidence: float = 0.99  #: confidence level of the intervals, in (0, 1)

    def models(self) -> Mapping[str, PlantedConfig]:
        """Configuration of each model: three sizes on one corpus, and one pass over a corpus of more text."""
        sizes = dict(zip(("large", "medium", "small"), self.widths, strict=True))
        found = {name: replace(self.planted, width=width) for name, width in sizes.items()}
        found["one pass"] = replace(
            self.planted,
            width=self.widths[1],
            repetitions=(1,),
            identifiers=self.planted.held_out,
            epochs=1,
            filler=self.one_pass_filler,
        )
        return found


def benchmark(config: BenchmarkConfig) -> pd.DataFrame:
    """AUC and TPR at 1 % FPR of each attack, for each model and each group of identifiers.

    One row per model, group ("held out", "trained" for all that were, and one per number of repetitions) and
    attack, or the number of tokens, with the columns of `attack_quality` and the number of identifiers; the
    rows of `auc_differences` follow.
    """
    rows: list[dict[str, object]] = []
    options = {"draws": config.draws, "confidence": config.confidence}
    attacks = (*PAPER_ATTACKS, TOKENS)
    found = {
        name: planted_scores(planted, generated=config.generated, attacks=attacks)
        for name, planted in config.models().items()
    }
    for name, scores in found.items():
        for (group, chosen), attack in itertools.product(subsets(scores).items(), scores.attacks):
            about = {"model": name, "group": group, "identifiers": int(chosen.sum()), "attack": attack}
            rows.append({**about, **attack_quality(scores.of(attack)[chosen], **options)})
    pair = {name: found[name].values for name in ("large", "small")}
    less = auc_differences(pair, subsets(found["large"]), **options)
    return pd.concat([pd.DataFrame(rows), less], ignore_index=True)


def subsets(scores: CandidateScores) -> dict[str, np.ndarray]:
    """Which identifiers belong to each group."""
    found = {"held out": scores.groups == 0, "trained": scores.groups > 0}
    times = sorted(set(scores.groups[scores.groups > 0].tolist()))
    return found | {f"{n} time{'s' if n > 1 else ''}": scores.groups == n for n in times if len(times) > 1}


def folded_null(
    identifiers: Sequence[int], *, generated: int = 127, draws: int = 2_000, seed: int = 0
) -> pd.DataFrame:
    """What max(AUC, 1 - AUC) looks like for each number of identifiers where nothing was trained on.

    Columns identifiers, mean_auc, mean_folded, folded_95 (the 95 % quantile), as shares.

    >>> table = folded_null([100], draws=500)
    >>> bool(abs(table["mean_auc"][0] - 0.5) < 0.01), bool(0.515 < table["mean_folded"][0] < 0.535)
    (True, True)
    """
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


def paper_averages(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over subsets of a paper's table, such as ``nid_table01``, per attack and split; percent."""
    own = table[~table["subset"].isin(["average", "unlabelled"])]
    return own.groupby(["mia", "split"], sort=False)["value_pct"].mean().reset_index()


def folded_cells(aucs: pd.DataFrame, counts: pd.DataFrame, *, attack: str = "loss") -> pd.DataFrame:
    """Each printed AUC of Pythia beside what folding alone would give with that many identifiers, percent.

    ``aucs`` is a table such as ``paper_table("nid_table01")``, ``counts`` is ``paper_table("nid_table02")``.
    """
    pile = counts[(counts["corpus"] == "pile") & (counts["is_aggregate"] == 0)]
    known = {
        name.lower().replace(" ", ""): int(n) for name, n in zip(pile["dataset"], pile["total"], strict=True)
    }
    known |= {f"pile{split}pile": int(rows["total"].sum()) for split, rows in pile.groupby("split")}
    cells = aucs[(aucs["mia"] == attack) & (aucs["subset"] != "average")]
    keys = [
        f"pile{split}{subset.replace('_', '')}"
        for subset, split in zip(cells["subset"], cells["split"], strict=True)
    ]
    identifiers = [known[key] for key in keys]
    table = cells[["subset", "split"]].assign(identifiers=identifiers, printed=cells["value_pct"])
    null = 100 * folded_null(identifiers).set_index(table.index)
    means, ends = null["mean_folded"].round(1), null["folded_95"]
    shown = {"mean if untrained": means, "95 % quantile": ends.round(1), "beyond it": table["printed"] > ends}
    return table.assign(**shown).reset_index(drop=True)


def size_ratio(config: BenchmarkConfig) -> float:
    """Parameters of the large model over those of the small one."""
    models = config.models()
    large, small = (planted_model(models[name])[0].num_parameters() for name in ("large", "small"))
    return large / small
