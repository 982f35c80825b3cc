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
from paperlib.reproduction.papers.output_sets.dpsgd_models import (
    Answers,
    Audited,
    Choice,
    Kind,
    Setup,
    model_answers,
)
from paperlib.reproduction.papers.output_sets.gain import (
    CHOOSE,
    HIGHEST,
    READINGS,
    RIVALS,
    paired_gain,
)

SETS = ("printed", "optimal", *RIVALS)
"""Methods that choose a set on one half of the records."""
ORDERS = ("adaptive", "learned")
"""Methods that guess on all records, one after the other."""
_TUNING = 500  # seeds of models that settings are chosen on, beyond those judged

Panel = tuple[Kind, int]
"""What is audited: the kind of records, and how many of them."""


@dataclass(frozen=True, kw_only=True)
class DpSgdConfig(Setup):
    """Settings of Figure 3."""

    natural: int = 0  #: records of the natural panel; 0 takes the whole training part
    mislabelled: tuple[int, ...] = (400, 4000)  #: canaries of the other panels, fewest first
    others: int = 0  #: further records beside the canaries, always trained on; the paper has none
    #: of DP-SGD, nats; 0 without noise
    epsilons: tuple[float, ...] = (1.0, 8.0, 16.0, 32.0, 100.0, 0.0)
    #: fields of `Choice` to choose among
    choices: tuple[Mapping[str, Any], ...] = ({"epochs": 20},)
    tuning_seeds: int = 1  #: models of each setting that a choice is made on; not judged
    seeds: int = 5  #: models judged of each panel and epsilon
    confidence: float = 0.95  #: of each bound
    seed: int = 0  #: of records, coins, parameters, batches and noise; other seeds share nothing

    def __post_init__(self) -> None:
        """Refuse (ValueError) epsilons that are negative or equal, no choices, and too many
        seeds.
        """
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

    def panels(self) -> list[Panel]:
        """The natural panel, then one for each number of canaries."""
        panels: list[Panel] = [("natural", self.natural)]
        for count in self.mislabelled:
            panels.append(("mislabelled", count))
        return panels

    def model(self, panel: Panel, epsilon: float, choice: Mapping[str, Any], seed: int) -> Audited:
        """A model of a panel, trained with the settings ``choice`` to ``epsilon``, nats, where 0
        stands for training without noise; ``seed`` counts the models of this config.
        """
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
    tried: pd.DataFrame  #: one row per model that settings were chosen on; empty without a choice
    readings: pd.DataFrame  #: bounds by the other readings of Algorithm 1, as ``bounds``


def run_dpsgd(config: DpSgdConfig, *, folder: Path | None = None) -> DpSgdResults:
    """Choose settings, train every model and audit it, with bounds in nats.

    ``folder`` keeps what was trained, and is read where it has a model; None takes the user's
    cache.
    """
    sweep = folder or user_cache_folder() / "sweeps" / "output_set_dpsgd"
    tuning = _tuning_answers(config, sweep)
    aucs = {model: _scores(answers).auc() for model, answers in tuning.items()}
    choices = {
        (panel, epsilon): _best_choice(config, panel, epsilon, aucs)
        for panel in config.panels()
        for epsilon in config.epsilons
    }
    models = [
        config.model(panel, epsilon, choices[panel, epsilon], seed)
        for panel in config.panels()
        for seed in range(config.seeds)
        for epsilon in config.epsilons
    ]
    answers = model_answers(models, folder=sweep)
    bounds = [row for model in models for row in _audits(config, model, answers[model])]
    others = [method for method in READINGS if method not in SETS]
    readings = [
        row for model in models for row in _set_audits(config, model, answers[model], others)
    ]
    tried = [_description(model, kept) for model, kept in tuning.items()]
    return DpSgdResults(pd.DataFrame(bounds), pd.DataFrame(tried), pd.DataFrame(readings))


def _tuning_seeds(config: DpSgdConfig) -> range:
    """Seeds of the models that settings are chosen on, none of which is judged."""
    return range(_TUNING, _TUNING + config.tuning_seeds)


def _tuning_answers(config: DpSgdConfig, folder: Path) -> dict[Audited, Answers]:
    """Answers of the models that settings are chosen on; none where there is no choice."""
    if len(config.choices) == 1:
        return {}
    models = [
        config.model(panel, epsilon, choice, seed)
        for panel in config.panels()
        for seed in _tuning_seeds(config)
        for epsilon in config.epsilons
        for choice in config.choices
    ]
    return model_answers(models, folder=folder)


def _best_choice(
    config: DpSgdConfig, panel: Panel, epsilon: float, aucs: Mapping[Audited, float]
) -> Mapping[str, Any]:
    """The first of the settings with the largest mean AUC of the loss, on models with other seeds.

    What an output set gains is never looked at.
    """
    if not aucs:
        return config.choices[0]
    means: list[float] = []
    for choice in config.choices:
        models = [config.model(panel, epsilon, choice, seed) for seed in _tuning_seeds(config)]
        means.append(float(np.mean([aucs[model] for model in models])))
    return config.choices[int(np.argmax(means))]


def _scores(answers: Answers) -> MembershipScores:
    """The negative losses of members and of non-members."""
    return MembershipScores.from_labels(-answers["loss"], answers["member"])


def _description(model: Audited, answers: Answers) -> dict[str, Any]:
    """What a row says of its model: panel, settings, the epsilon that it was to have and the
    guarantee by the accountant (nats), AUC of the loss, accuracies (shares), and seconds.
    """
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


def _set_audits(
    config: DpSgdConfig, model: Audited, answers: Answers, methods: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """A row for each method that chooses a set on one half of the scores: what `_description` says
    of the model, right and all guesses on the other half, and the bound that they show, nats.
    """
    description = _description(model, answers)
    options: dict[str, Any] = {"delta": config.delta, "confidence": config.confidence}
    first, second = _scores(answers).split(0.5, seed=model.seed)
    selection = selection_of(first, HIGHEST, total=len(second), **options)
    for method in methods:
        correct, guesses = count_guesses(CHOOSE[method](selection), second)
        bound = one_run_epsilon(correct, guesses, total=len(second), **options)
        counts = {"correct": correct, "guesses": guesses}
        yield {**description, "method": method, **counts, "bound": float(bound)}


def _audits(config: DpSgdConfig, model: Audited, answers: Answers) -> Iterator[dict[str, Any]]:
    """Every method on one model, a row each as in `_set_audits`: output sets on halves of the
    records, orders of guesses on all.
    """
    yield from _set_audits(config, model, answers, SETS)
    description = _description(model, answers)
    scores = _scores(answers)
    options: dict[str, Any] = {"delta": config.delta, "confidence": config.confidence}
    signals = np.column_stack([-answers["loss"], answers["runner_up"]])
    orders = {
        "adaptive": audit_one_run(scores, **options),
        "learned": audit_features(signals, answers["member"], seed=model.seed, **options),
    }
    for method, audit in orders.items():
        counts = {"correct": audit.correct, "guesses": audit.guesses}
        yield {**description, "method": method, **counts, "bound": audit.epsilon}


def bounds_over_seeds(bounds: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over seeds: panel, epsilon, method, mean, std, seeds."""
    grouped = bounds.groupby(["panel", "epsilon", "method"], sort=False)["bound"]
    return grouped.agg(["mean", "std", "count"]).reset_index().rename(columns={"count": "seeds"})


def gains(
    bounds: pd.DataFrame, method: str = "printed", *, confidence: float = 0.95
) -> pd.DataFrame:
    """Gain of a method over each other one, nats: panel, epsilon, rival, and the columns of
    `interval`, which is over seeds at this confidence.
    """
    rivals = [rival for rival in dict.fromkeys(bounds["method"]) if rival != method]
    options: dict[str, Any] = {"setting": ("panel", "epsilon"), "repeat": "seed", "value": "bound"}
    return paired_gain(bounds, method, confidence=confidence, rivals=rivals, **options)


def ahead_and_behind(
    bounds: pd.DataFrame, methods: Iterable[str], *, error: float = 0.05
) -> pd.DataFrame:
    """In how many settings each method's interval of `gains` lies above 0, and below it, by rival.

    Args:
        bounds: A row for each model and method.
        methods: Each of which is compared with all others.
        error: Of all comparisons of a method together.

    Returns:
        Columns method, rival, settings (panels and epsilons), ahead and behind, all numbers.
    """
    settings = len(bounds.drop_duplicates(["panel", "epsilon"]))
    comparisons = (bounds["method"].nunique() - 1) * settings
    tables: list[pd.DataFrame] = []
    for method in methods:
        # Ahead and behind are intervals on one side of 0; all comparisons of a method share its
        # error.
        ends = gains(bounds, method, confidence=1 - error / comparisons)
        sides = ends.assign(ahead=ends["low"] > 0, behind=ends["high"] < 0)
        counts = sides.groupby("rival", sort=False).agg(
            settings=("gain", "size"), ahead=("ahead", "sum"), behind=("behind", "sum")
        )
        tables.append(counts.reset_index().assign(method=method))
    table = pd.concat(tables, ignore_index=True)
    return table[["method", "rival", "settings", "ahead", "behind"]]


def model_rows(bounds: pd.DataFrame) -> pd.DataFrame:
    """Settings, and means over seeds of the guarantee (nats), the AUC of the loss and accuracies
    (shares): a row per panel and epsilon.
    """
    models = bounds.drop_duplicates(["panel", "epsilon", "seed"])
    keys = ["panel", "records", "epsilon", *Choice.__dataclass_fields__]
    columns = ["guarantee", "auc", "accuracy", "member_accuracy"]
    return models.groupby(keys, sort=False)[columns].mean().reset_index()


def above_guarantee(bounds: pd.DataFrame) -> pd.DataFrame:
    """How many bounds lie above the guarantee of their model, which a valid one at 95 % confidence
    does in at most 1 of 20.

    A row for each method: bounds (their number), above_guarantee, and least_room, the smallest
    guarantee less bound, nats.
    """
    private = bounds[np.isfinite(bounds["guarantee"])]
    room = (private["guarantee"] - private["bound"]).groupby(private["method"], sort=False)
    table = pd.DataFrame(
        {"bounds": room.size(), "above_guarantee": room.agg(lambda r: int((r < 0).sum()))}
    )
    return table.assign(least_room=room.min()).reset_index()
