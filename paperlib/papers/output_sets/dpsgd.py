"""Figure 3: audits of models trained by DP-SGD, with every way to choose an output set, and whole
orders.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.features import audit_features
from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.audit import one_run_epsilon
from paperlib.bounds.output_sets.choices import selection_of
from paperlib.bounds.output_sets.level_sets import count_guesses
from paperlib.core import MembershipScores
from paperlib.io import user_cache_folder
from paperlib.papers.output_sets.dpsgd_models import (
    Answers,
    Audited,
    Choice,
    Kind,
    Setup,
    answers_of,
)
from paperlib.papers.output_sets.gain import CHOOSE, HIGHEST, RIVALS, paired_gain

SETS = ("printed", "optimal", *RIVALS)
"""Methods that choose a set on one half of the records."""
ORDERS = ("adaptive", "learned")
"""Methods that guess on all records, one after the other."""
_TUNING = 500  # seeds of models that settings are chosen on, beyond those judged


@dataclass(frozen=True, kw_only=True)
class DpSgdConfig(Setup):
    """Settings of Figure 3."""

    natural: int = 0  #: records of the natural panel; 0 takes the whole training part
    mislabelled: tuple[int, ...] = (400, 4000)  #: canaries of the other panels, fewest first
    others: int = 0  #: further records beside the canaries, always trained on; the paper has none
    epsilons: tuple[float, ...] = (
        1.0,
        8.0,
        16.0,
        32.0,
        100.0,
        0.0,
    )  #: of DP-SGD, nats; 0 without noise
    choices: tuple[Mapping[str, Any], ...] = (
        {"epochs": 20},
    )  #: fields of `Choice` to choose among
    tuning_seeds: int = 1  #: models of each setting that a choice is made on; not judged
    seeds: int = 5  #: models judged of each panel and epsilon
    confidence: float = 0.95  #: of each bound
    seed: int = 0  #: of records, coins, parameters, batches and noise; other seeds share nothing

    def __post_init__(self) -> None:
        if len(set(self.epsilons)) < len(self.epsilons) or min(self.epsilons, default=-1) < 0:
            raise ValueError(
                f"epsilons: expected different numbers, 0 or more, got {list(self.epsilons)}"
            )
        if not self.choices:
            raise ValueError("choices: expected one or more")
        if min(self.seeds, self.tuning_seeds) < 1 or max(self.seeds, self.tuning_seeds) > _TUNING:
            raise ValueError(
                f"seeds: expected 1 to {_TUNING}, got {self.seeds}, {self.tuning_seeds}"
            )

    def panels(self) -> list[tuple[Kind, int]]:
        return [("natural", self.natural), *(("mislabelled", count) for count in self.mislabelled)]

    def model(
        self, panel: tuple[Kind, int], epsilon: float, choice: Mapping[str, Any], seed: int
    ) -> Audited:
        """A model of a panel; ``seed`` counts the models of this config."""
        kind, records = panel
        return Audited(
            **{field.name: getattr(self, field.name) for field in fields(Setup)},
            kind=kind,
            records=records,
            others=self.others if kind == "mislabelled" else 0,
            epsilon=epsilon or math.inf,
            choice=Choice(**choice),
            seed=2 * _TUNING * self.seed + seed,
        )


@dataclass(frozen=True, eq=False)
class DpSgdResults:
    """Bounds of all models, and the settings that were tried."""

    bounds: pd.DataFrame  #: one row per model and method
    tried: (
        pd.DataFrame
    )  #: one row per model that settings were chosen on; empty where there was no choice


def run_dpsgd(config: DpSgdConfig, *, folder: Path | None = None) -> DpSgdResults:
    """Choose settings, train every model and audit it."""
    place = folder or user_cache_folder() / "sweeps" / "output_set_dpsgd"
    tuning: dict[Audited, Answers] = {}
    seeds = range(_TUNING, _TUNING + config.tuning_seeds)
    if len(config.choices) > 1:
        asked = [
            config.model(panel, epsilon, choice, seed)
            for panel in config.panels()
            for seed in seeds
            for epsilon in config.epsilons
            for choice in config.choices
        ]
        tuning = answers_of(asked, folder=place)
    # By the mean AUC of the loss on models with other seeds, never by what a method gains; ties:
    # the first.
    aucs = {model: _scores(answers).auc() for model, answers in tuning.items()}

    def best_choice(panel: tuple[Kind, int], epsilon: float) -> Mapping[str, Any]:
        if not aucs:
            return config.choices[0]
        tried = [
            [config.model(panel, epsilon, choice, seed) for seed in seeds]
            for choice in config.choices
        ]
        means = [np.mean([aucs[model] for model in models]) for models in tried]
        return config.choices[int(np.argmax(means))]

    models = [
        config.model(panel, epsilon, best_choice(panel, epsilon), seed)
        for panel in config.panels()
        for seed in range(config.seeds)
        for epsilon in config.epsilons
    ]
    answers = answers_of(models, folder=place)
    bounds = [row for model in models for row in _audits(config, model, answers[model])]
    return DpSgdResults(
        pd.DataFrame(bounds), pd.DataFrame([_about(*pair) for pair in tuning.items()])
    )


def _scores(answers: Answers) -> MembershipScores:
    return MembershipScores.from_labels(-answers["loss"], answers["member"])


def _about(model: Audited, answers: Answers) -> dict[str, Any]:
    records = answers["member"].size
    return {
        "panel": model.kind if model.kind == "natural" else f"{records:,} {model.kind}",
        "records": records,
        "epsilon": model.epsilon,
        "seed": model.seed,
        "auc": _scores(answers).auc(),
        **{name: answers[name] for name in ("accuracy", "member_accuracy", "guarantee", "seconds")},
        **{name: getattr(model.choice, name) for name in Choice.__dataclass_fields__},
    }


def _audits(config: DpSgdConfig, model: Audited, answers: Answers) -> Iterator[dict[str, Any]]:
    """Every method on one model: sets on halves, orders on all records."""
    about = _about(model, answers)
    scores = _scores(answers)
    options: dict[str, Any] = {"delta": config.delta, "confidence": config.confidence}
    first, second = scores.split(0.5, seed=model.seed)
    selection = selection_of(first, HIGHEST, total=len(second), **options)
    for method in SETS:
        correct, guesses = count_guesses(CHOOSE[method](selection), second)
        bound = one_run_epsilon(correct, guesses, total=len(second), **options)
        yield {
            **about,
            "method": method,
            "correct": correct,
            "guesses": guesses,
            "bound": float(bound),
        }
    signals = np.column_stack([-answers["loss"], answers["runner_up"]])
    orders = {
        "adaptive": audit_one_run(scores, **options),
        "learned": audit_features(signals, answers["member"], seed=model.seed, **options),
    }
    for method, one in orders.items():
        counts = {"correct": one.correct, "guesses": one.guesses}
        yield {**about, "method": method, **counts, "bound": one.epsilon}


def mean_bounds(bounds: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over seeds: panel, epsilon, method, mean, std, seeds."""
    grouped = bounds.groupby(["panel", "epsilon", "method"], sort=False)["bound"]
    return grouped.agg(["mean", "std", "count"]).reset_index().rename(columns={"count": "seeds"})


def gains(
    bounds: pd.DataFrame, method: str = "printed", *, confidence: float = 0.95
) -> pd.DataFrame:
    """Gain of a method over each other one: panel, epsilon, rival, columns of `interval`."""
    rivals = [rival for rival in dict.fromkeys(bounds["method"]) if rival != method]
    options: dict[str, Any] = {"setting": ("panel", "epsilon"), "repeat": "seed", "value": "bound"}
    return paired_gain(bounds, method, confidence=confidence, rivals=rivals, **options)


def ahead_and_behind(
    bounds: pd.DataFrame, methods: Iterable[str], *, error: float = 0.05
) -> pd.DataFrame:
    """In how many settings each method's interval of `gains` lies above 0, and below it, by
    rival.
    """
    rows = []
    comparisons = (bounds["method"].nunique() - 1) * len(
        bounds.drop_duplicates(["panel", "epsilon"])
    )
    for method in methods:
        # Ahead and behind are intervals on one side of 0; all comparisons of a method share its
        # error.
        ends = gains(bounds, method, confidence=1 - error / comparisons)
        counts = ends.assign(ahead=ends["low"] > 0, behind=ends["high"] < 0).groupby(
            "rival", sort=False
        )
        table = counts.agg(
            settings=("gain", "size"), ahead=("ahead", "sum"), behind=("behind", "sum")
        )
        rows.append(table.reset_index().assign(method=method))
    table = pd.concat(rows, ignore_index=True)
    return table[["method", "rival", "settings", "ahead", "behind"]]


def model_rows(bounds: pd.DataFrame) -> pd.DataFrame:
    """Settings, and means over seeds of what models and accountant say: one row per panel and
    epsilon.
    """
    models = bounds.drop_duplicates(["panel", "epsilon", "seed"])
    keys = ["panel", "records", "epsilon", *Choice.__dataclass_fields__]
    columns = ["guarantee", "auc", "accuracy", "member_accuracy"]
    return models.groupby(keys, sort=False)[columns].mean().reset_index()


def above_guarantee(bounds: pd.DataFrame) -> pd.DataFrame:
    """How many bounds lie above the guarantee of their model, which a valid one does in at most 1
    of 20.
    """
    private = bounds[np.isfinite(bounds["guarantee"])]
    room = (private["guarantee"] - private["bound"]).groupby(private["method"], sort=False)
    table = pd.DataFrame(
        {"bounds": room.size(), "above_guarantee": room.agg(lambda r: int((r < 0).sum()))}
    )
    return table.assign(least_room=room.min()).reset_index()
