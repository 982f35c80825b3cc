"""Figure 3: audits of models trained by DP-SGD, with every way to choose an output set, and whole orders."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.features import audit_features
from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.audit import one_run_epsilon
from paperlib.bounds.output_sets.output_set import count_guesses
from paperlib.bounds.output_sets.selection import selection_of
from paperlib.core import MembershipScores
from paperlib.io import user_cache_folder
from paperlib.papers.output_sets.dpsgd_models import Answers, Audited, Choice, Kind, trained
from paperlib.papers.output_sets.gain import CHOOSE, HIGHEST, RIVALS, interval

SETS = ("printed", "optimal", *RIVALS)
"""Methods that choose a set on one half of the records."""
ORDERS = ("adaptive", "learned")
"""Methods that guess on all records, one after the other."""
_TUNING = 500  # seeds of models that settings are chosen on, beyond those judged


@dataclass(frozen=True, kw_only=True)
class DpSgdConfig:
    """Settings of Figure 3."""

    dataset: str = "mnist5k"  #: a name of `load_images`
    network: str = "features"  #: an MLP on fixed features, or a name of ``ARCHITECTURES``
    filters: int = 32  #: of the fixed features
    width: int = 128  #: hidden units of the MLP, or width of the network
    natural: int = 0  #: records of the natural panel; 0 takes the whole training part
    mislabelled: tuple[int, ...] = (400, 4000)  #: canaries of the other panels, fewest first
    others: int = 0  #: further records beside the canaries, always trained on; the paper has none
    epsilons: tuple[float, ...] = (1.0, 8.0, 16.0, 32.0, 100.0, 0.0)  #: of DP-SGD, nats; 0 without noise
    delta: float = 1e-5  #: of DP-SGD and of the audits
    choices: tuple[Mapping[str, Any], ...] = ({"epochs": 20},)  #: fields of `Choice` to choose among
    tested: int = 10_000  #: images of the test part that the accuracy is measured on
    tuning_seeds: int = 1  #: models of each setting that a choice is made on; not judged
    seeds: int = 5  #: models judged of each panel and epsilon
    confidence: float = 0.95  #: of each bound
    seed: int = 0  #: of records, coins, parameters, batches and noise; other seeds share nothing

    def __post_init__(self) -> None:
        if len(set(self.epsilons)) < len(self.epsilons) or min(self.epsilons, default=-1) < 0:
            raise ValueError(f"epsilons: expected different numbers, 0 or more, got {list(self.epsilons)}")
        if not self.choices:
            raise ValueError("choices: expected one or more")
        if max(self.seeds, self.tuning_seeds) > _TUNING:
            raise ValueError(f"seeds: expected at most {_TUNING}, got {self.seeds}, {self.tuning_seeds}")

    def panels(self) -> list[tuple[Kind, int]]:
        """Kind and number of the audit records of each panel."""
        return [("natural", self.natural), *(("mislabelled", count) for count in self.mislabelled)]

    def model(
        self, kind: Kind, records: int, epsilon: float, choice: Mapping[str, Any], seed: int
    ) -> Audited:
        """A model of a panel; ``seed`` counts the models of this config."""
        return Audited(
            dataset=self.dataset,
            network=self.network,
            filters=self.filters,
            width=self.width,
            kind=kind,
            records=records,
            others=self.others if kind == "mislabelled" else 0,
            epsilon=epsilon or math.inf,
            delta=self.delta,
            tested=self.tested,
            choice=Choice(**choice),
            seed=2 * _TUNING * self.seed + seed,
        )

    def tried(self) -> list[Audited]:
        """Models that the settings are chosen on: none where there is no choice."""
        if len(self.choices) == 1:
            return []
        return [
            self.model(kind, records, epsilon, choice, _TUNING + at)
            for kind, records in self.panels()
            for at in range(self.tuning_seeds)
            for epsilon in self.epsilons
            for choice in self.choices
        ]


@dataclass(frozen=True, eq=False)
class DpSgdResults:
    """Bounds of all models, and the settings that were tried."""

    bounds: pd.DataFrame  #: rows of `audits`
    tried: pd.DataFrame  #: rows of `tried_settings`; empty where there was no choice


def run_dpsgd(config: DpSgdConfig, *, folder: Path | None = None, progress: bool = True) -> DpSgdResults:
    """Choose settings, train every model and audit it.

    Settings are chosen for each panel and epsilon by the mean AUC of the loss on models with other seeds,
    which are not judged: never by what any method gains.
    """
    place = folder or user_cache_folder() / "sweeps" / "output_set_dpsgd"
    first = trained(config.tried(), folder=place, progress=progress) if config.tried() else {}
    settings = tried_settings(first)
    chosen = _chosen(config, settings)
    models = [
        replace(chosen[kind, records, epsilon], seed=2 * _TUNING * config.seed + at)
        for kind, records in config.panels()
        for at in range(config.seeds)
        for epsilon in config.epsilons
    ]
    answers = trained(models, folder=place, progress=progress)
    pairs = [(model, answers[model]) for model in models]
    rows = [list(_audits(config, *pair)) for pair in pairs]
    return DpSgdResults(pd.DataFrame([row for some in rows for row in some]), settings)


def panel_name(kind: Kind, records: int) -> str:
    """Name of a panel: its kind, and the number of canaries.

    >>> panel_name("natural", 50_000), panel_name("mislabelled", 1_000)
    ('natural', '1,000 mislabelled')
    """
    return kind if kind == "natural" else f"{records:,} {kind}"


def _about(model: Audited, answers: Answers) -> dict[str, Any]:
    scores = MembershipScores.from_labels(-answers["loss"], answers["member"])
    return {
        "panel": panel_name(model.kind, answers["member"].size),
        "records": answers["member"].size,
        "epsilon": model.epsilon,
        "seed": model.seed,
        "auc": scores.auc(),
        **{name: answers[name] for name in ("accuracy", "member_accuracy", "guarantee", "seconds")},
        **{name: getattr(model.choice, name) for name in Choice.__dataclass_fields__},
    }


def tried_settings(found: Mapping[Audited, Answers]) -> pd.DataFrame:
    """One row per model that settings are chosen on, with its AUC."""
    rows = [
        {"kind": model.kind, "asked": model.records, **_about(model, one)} for model, one in found.items()
    ]
    return pd.DataFrame(rows)


def _chosen(config: DpSgdConfig, tried: pd.DataFrame) -> dict[tuple[Kind, int, float], Audited]:
    """A model with the chosen settings for each panel and epsilon; ties go to the first choice."""
    found = {}
    for kind, records in config.panels():
        for epsilon in config.epsilons:
            models = [config.model(kind, records, epsilon, choice, 0) for choice in config.choices]
            if len(models) == 1:
                found[kind, records, epsilon] = models[0]
                continue
            part = tried[
                (tried["kind"] == kind)
                & (tried["asked"] == records)
                & (tried["epsilon"] == models[0].epsilon)
            ]
            names = list(Choice.__dataclass_fields__)
            mean = part.groupby(names)["auc"].mean().to_dict()
            aucs = [mean[tuple(getattr(model.choice, name) for name in names)] for model in models]
            found[kind, records, epsilon] = models[int(np.argmax(aucs))]
    return found


def _audits(config: DpSgdConfig, model: Audited, answers: Answers) -> Iterator[dict[str, Any]]:
    """Every method on one model: sets on halves, orders on all records."""
    about = _about(model, answers)
    scores = MembershipScores.from_labels(-answers["loss"], answers["member"])
    options: dict[str, Any] = {"delta": config.delta, "confidence": config.confidence}
    first, second = scores.split(0.5, seed=model.seed)
    selection = selection_of(first, HIGHEST, total=len(second), **options)
    for method in SETS:
        correct, guesses = count_guesses(CHOOSE[method](selection), second)
        bound = one_run_epsilon(correct, guesses, total=len(second), **options)
        yield {**about, "method": method, "correct": correct, "guesses": guesses, "bound": float(bound)}
    signals = np.column_stack([-answers["loss"], answers["runner_up"]])
    found = {
        "adaptive": audit_one_run(scores, **options),
        "learned": audit_features(signals, answers["member"], seed=model.seed, **options),
    }
    for method, one in found.items():
        counts = {"correct": one.correct, "guesses": one.guesses}
        yield {**about, "method": method, **counts, "bound": one.epsilon}


def mean_bounds(bounds: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over seeds: panel, epsilon, method, mean, std, seeds."""
    grouped = bounds.groupby(["panel", "epsilon", "method"], sort=False)["bound"]
    return grouped.agg(["mean", "std", "count"]).reset_index().rename(columns={"count": "seeds"})


def by_method(bounds: pd.DataFrame) -> pd.DataFrame:
    """Bounds with a column for each method, indexed by panel, epsilon and seed."""
    return bounds.pivot(index=["panel", "epsilon", "seed"], columns="method", values="bound")


def gains(bounds: pd.DataFrame, method: str = "printed", *, confidence: float = 0.95) -> pd.DataFrame:
    """Gain of a method over each other one: panel, epsilon, rival, columns of `interval`."""
    wide = by_method(bounds)
    rows = [
        {
            "panel": panel,
            "epsilon": epsilon,
            "rival": rival,
            **interval((part[method] - part[rival]).to_numpy(), confidence),
        }
        for (panel, epsilon), part in wide.groupby(level=["panel", "epsilon"], sort=False)
        for rival in dict.fromkeys(bounds["method"])
        if rival != method
    ]
    return pd.DataFrame(rows)


def ahead_and_behind(bounds: pd.DataFrame, methods: Iterable[str], *, error: float = 0.05) -> pd.DataFrame:
    """How often each method is ahead of each other one: method, rival, settings, ahead, behind.

    A setting is a panel and an epsilon; ahead and behind are intervals of `gains` on one side of 0.
    ``error`` is shared out among all comparisons of a method.
    """
    rows = []
    comparisons = (bounds["method"].nunique() - 1) * len(bounds.drop_duplicates(["panel", "epsilon"]))
    for method in methods:
        found = gains(bounds, method, confidence=1 - error / comparisons)
        counts = found.assign(ahead=found["low"] > 0, behind=found["high"] < 0).groupby("rival", sort=False)
        table = counts.agg(settings=("gain", "size"), ahead=("ahead", "sum"), behind=("behind", "sum"))
        rows.append(table.reset_index().assign(method=method))
    table = pd.concat(rows, ignore_index=True)
    return table[["method", "rival", "settings", "ahead", "behind"]]


def model_rows(bounds: pd.DataFrame) -> pd.DataFrame:
    """Settings, and means over seeds of what models and accountant say: one row per panel and epsilon."""
    models = bounds.drop_duplicates(["panel", "epsilon", "seed"])
    keys = ["panel", "records", "epsilon", *Choice.__dataclass_fields__]
    columns = ["guarantee", "auc", "accuracy", "member_accuracy"]
    return models.groupby(keys, sort=False)[columns].mean().reset_index()


def above_guarantee(bounds: pd.DataFrame) -> pd.DataFrame:
    """How many bounds lie above the guarantee of their model, which a valid one does in at most 1 of 20."""
    private = bounds[np.isfinite(bounds["guarantee"])]
    room = (private["guarantee"] - private["bound"]).groupby(private["method"], sort=False)
    table = pd.DataFrame({"bounds": room.size(), "above": room.agg(lambda r: int((r < 0).sum()))})
    return table.assign(least_room=room.min()).reset_index()
