"""PANORAMIA on targets trained by DP-SGD: guarantees, audits, Tables 7, 8, 10 and 11, Figures 5 and
6c.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.results import AUDITS
from paperlib.audits.panoramia.run import audit_pools
from paperlib.bounds.one_run.tails import epsilon_from_counts, refuted_log_odds
from paperlib.papers.panoramia.images.models import ImageTarget, dp_training
from paperlib.papers.panoramia.images.pools import ImageConfig, image_pools, training_accuracies
from paperlib.papers.panoramia.results import (
    PanoramiaResults,
    by_game,
    figure_six,
    null_samples,
    paired,
)
from paperlib.papers.verdict import Estimate, Evidence
from paperlib.report import paper_table
from paperlib.training import replacement_epsilon

STANDS_FOR = ("ResNet18", "WRN-16-4")
"""The paper's two families, Tables 7 and 8, in the order of ours."""
_PAPER_ONLY = "the paper, eps {:g}".format  # the name of a row that only the paper has


@dataclass(frozen=True, kw_only=True)
class DpPlan:
    """Two families of targets at several epsilons."""

    architectures: tuple[str, str] = ("mlp", "cnn")  # in the place of those of `STANDS_FOR`
    widths: tuple[int, int] = (128, 16)  # of both, see ``ImageArchitecture``
    epsilons: tuple[float, ...] = (2.0, 10.0, 20.0)  # of DP-SGD, nats, each with both families
    delta: float = 1e-5  # of DP-SGD
    dp_epochs: int = 15  # with DP-SGD
    dp_batch: int = 256  # expected images in a batch of DP-SGD
    dp_rate: float = 0.01  # of DP-SGD, by Adam
    dp_rate_again: float = (
        0.003  # of the first family's second training at the largest epsilon (Table 10)
    )
    clip_norm: float = 1.0  # of DP-SGD
    epochs: int = 40  # without DP
    epochs_again: int = 10  # of the first family's second training without DP (beside Table 10)
    batch_size: int = 64  # images in a batch without DP
    learning_rate: float = 2e-3  # without DP, by Adam
    # Attributes of `ImageTarget` to try with DP, none, or two and more: that of the highest
    # training accuracy is kept (Appendix D.9), and that of the lowest for Table 10; epsilon does
    # not count the search.
    choices: tuple[Mapping[str, Any], ...] = ()
    seed: int = 0  # of parameters and batches

    def __post_init__(self) -> None:
        if len(self.architectures) != 2 or len(set(self.architectures)) != 2:
            raise ValueError(
                "architectures: expected two different names, got "
                f"{', '.join(self.architectures) or 'none'}"
            )
        if len(self.widths) != 2:
            raise ValueError(f"widths: expected two, got {list(self.widths)}")
        if len(self.choices) == 1:
            raise ValueError("choices: expected none, or two and more, got one")
        if not self.epsilons or len(set(self.epsilons)) < len(self.epsilons):
            raise ValueError(
                f"epsilons: expected one or more, all different, got {list(self.epsilons)}"
            )
        for again, name in (("dp_rate_again", "dp_rate"), ("epochs_again", "epochs")):
            if getattr(self, again) == getattr(self, name):
                raise ValueError(
                    f"{again}: expected another value than {name}, got {getattr(self, again)}"
                )

    def tried(self) -> dict[str, list[ImageTarget]]:
        """Each target with DP, but for second trainings, in all settings to try."""
        return {
            one.name: [
                replace(one, name=f"{one.name}, {at}", **how) for at, how in enumerate(self.choices)
            ]
            for one in (*self._family(0), *self._family(1))
            if one.dp_epsilon is not None
        }

    def targets(self) -> tuple[ImageTarget, ...]:
        """All targets: by family the null, then epsilons upwards, without DP last; then those once
        more.
        """
        first, second = self._family(0), self._family(1)
        (_, private_again), (_, plain_again) = self.pairs()
        private = replace(first[-2], name=private_again, learning_rate=self.dp_rate_again)
        plain = replace(first[-1], name=plain_again, epochs=self.epochs_again)
        return (*first, *second, private, plain)

    def family(self, at: int) -> list[str]:
        """Names of a family's targets by epsilon, then without DP."""
        return [target.name for target in self._family(at)[1:]]

    def null(self, at: int) -> str:
        """Name of a family's null target."""
        return f"{self.architectures[at]} null"

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Targets of the same epsilon, the largest and none, that were trained differently: Table
        10.
        """
        return tuple((name, f"{name} again") for name in self.family(0)[-2:])

    def _family(self, at: int) -> list[ImageTarget]:
        architecture = self.architectures[at]
        shared = {
            name: getattr(self, name) for name in ("epochs", "batch_size", "learning_rate", "seed")
        }
        shared |= {"architecture": architecture, "width": self.widths[at]}
        plain = ImageTarget(name=f"{architecture} no DP", group_norm=True, **shared)
        private = replace(
            plain,
            epochs=self.dp_epochs,
            batch_size=self.dp_batch,
            learning_rate=self.dp_rate,
            dp_delta=self.delta,
            clip_norm=self.clip_norm,
        )
        names = {epsilon: f"{architecture} eps {epsilon:g}" for epsilon in sorted(self.epsilons)}
        privates = [
            replace(private, name=name, dp_epsilon=epsilon) for epsilon, name in names.items()
        ]
        return [replace(plain, name=self.null(at), null=True), *privates, plain]


@dataclass(frozen=True, eq=False, kw_only=True)
class DpResults(PanoramiaResults):
    """Audits of all targets in one form, and their DP guarantees."""

    plan: DpPlan
    guarantees: pd.DataFrame  # rows of `dp_guarantees`
    settings: pd.DataFrame = field(
        default_factory=pd.DataFrame
    )  # how each target with DP is trained
    counts: tuple[int, int]  # number of images in a target's training part, and of real non-members

    @cached_property
    def numbers(self) -> pd.DataFrame:
        """By target, its guarantee, accuracies in per cent, and their gap with its standard
        error.
        """
        table = self.pools.table.set_index("target")
        train, test = 100 * table["train_metric"], 100 * table["test_metric"]
        parts = zip((train / 100, test / 100), self.counts, strict=True)
        variance = sum(share * (1 - share) / count for share, count in parts)
        found = self.guarantees.set_index("target").assign(train=train, test=test, gap=train - test)
        return found.assign(gap_error=100 * np.sqrt(variance))


def run_dp(config: ImageConfig, plan: DpPlan, audit: AuditConfig) -> DpResults:
    """Train the plan's targets, audit them, and ask the accountant."""
    targets = _tuned(config, plan)
    whole = replace(config, targets=targets)
    pools = image_pools(whole)
    examples = sum(getattr(whole.split, part) for part in whole.split.trained_on())
    names = ("epochs", "batch_size", "optimizer", "learning_rate", "clip_norm")
    private = [one for one in targets if one.dp_epsilon is not None]
    settings = [
        {"target": one.name, **{name: getattr(one, name) for name in names}} for one in private
    ]
    return DpResults(
        pools,
        {audit.form: audit_pools(pools, audit)},
        audit.form,
        plan=plan,
        guarantees=dp_guarantees(targets, examples),
        settings=pd.DataFrame(settings),
        counts=(examples, whole.split.nonmembers),
    )


def _tuned(config: ImageConfig, plan: DpPlan) -> tuple[ImageTarget, ...]:
    """The plan's targets, with DP in the settings that `DpPlan.choices` says."""
    if not plan.choices:
        return plan.targets()
    best: dict[str, ImageTarget] = {}
    (largest, again), _ = plan.pairs()
    for name, tried in plan.tried().items():
        accuracies = training_accuracies(replace(config, targets=tuple(tried)))
        order = np.argsort(-np.array(accuracies), kind="stable")
        best[name] = replace(tried[order[0]], name=name)
        if name == largest:
            best[again] = replace(tried[order[-1]], name=again)
    return tuple(best.get(target.name, target) for target in plan.targets())


def dp_guarantees(targets: Sequence[ImageTarget], examples: int) -> pd.DataFrame:
    """DP guarantee of each target, trained on so many images; infinite without DP."""
    rows = []
    for target in targets:
        process, noise, delta, replacing = dp_training(target, examples), 0.0, 0.0, np.inf
        if process is not None:
            noise, delta = process.noise_multiplier, target.dp_delta
            rate, steps = process.sampling_rate(examples), process.steps(examples)
            replacing = replacement_epsilon(noise, rate, steps, delta)
        rows.append((target.name, noise, delta, target.dp_epsilon or np.inf, replacing))
    return pd.DataFrame(
        rows, columns=["target", "noise", "delta", "epsilon", "epsilon_replacement"]
    )


def table_by_epsilon(results: DpResults, at: int) -> pd.DataFrame:
    """Tables 7 (``at`` 0) and 8 (1): the null, ours by epsilon beside the paper's, the paper's
    others.
    """
    table = paper_table(f"panoramia_table0{7 + at}").query(f"target_model == '{STANDS_FOR[at]}'")
    table = (
        table.assign(epsilon=table["target_dp_eps"].astype(float)).set_index("epsilon").sort_index()
    )
    printed = table.loc[table["audit"] == "panoramia", ["c_lb", "c_plus_eps_lb", "eps_tilde"]]
    printed = printed.assign(o1=table.loc[table["audit"] == "o1_rm_rn", "eps"]).add_prefix("paper_")
    null, *ours = (
        _row(results, name) for name in (results.plan.null(at), *results.plan.family(at))
    )
    ours = pd.DataFrame(ours).join(printed, on="epsilon")
    left = printed[~printed.index.isin(ours["epsilon"])].reset_index()
    left = left.assign(target=[_PAPER_ONLY(epsilon) for epsilon in left["epsilon"]])
    return pd.concat([pd.DataFrame([null]), ours, left], ignore_index=True)


def _row(results: DpResults, name: str) -> dict[str, Any]:
    """Ours for one target."""
    own, columns = results.one(name), ("epsilon", "epsilon_replacement", "train", "test", "gap")
    return {
        "target": name,
        **{column: results.numbers[column][name] for column in columns},
        "c_lb": own["c_lb"],
        "c_plus_eps_lb": own["c_plus_eps_lb"],
        "eps_tilde": own["value"],
        "eps_tilde_sd": own["value_sd"],
        **{
            audit: results.value(name, audit)
            for audit in AUDITS[1:]
            if results.decisive.select(audit)
        },
    }


def table_ten(results: DpResults) -> pd.DataFrame:
    """Pairs of one epsilon that were trained differently, the wider gap first, beside the
    paper's.
    """
    pairs = [results.numbers.loc[list(pair)] for pair in results.plan.pairs()]
    wider_first = [pair.sort_values("gap", ascending=False, kind="stable") for pair in pairs]
    names = [str(name) for pair in wider_first for name in pair.index]
    ours = pd.DataFrame([_row(results, name) for name in names])
    for auc in ("mia_auc", "baseline_auc"):
        ours[auc] = [results.one(name)[auc] for name in names]
    ours["place"] = [0, 1] * (len(names) // 2)
    printed = paper_table("panoramia_table10")
    own = printed[printed["audit"] == "panoramia"].reset_index(drop=True)
    theirs = pd.DataFrame(
        {
            "epsilon": own["target_dp_eps"].astype(float),
            "paper_target": own["target_model"] + ", variant " + own["variant"].astype(str),
            "paper_gap": own["train_minus_test_acc_pct"],
            "paper_eps_tilde": own["eps_tilde"],
            "paper_o1": printed.loc[printed["audit"] == "o1_rm_rn", "eps"].to_numpy(),
        }
    )
    theirs["place"] = theirs.groupby("epsilon")["paper_gap"].rank(ascending=False).astype(int) - 1
    both = ours.merge(theirs, on=["epsilon", "place"], how="outer", sort=False)
    order = {name: at for at, name in enumerate(names)}
    both = both.sort_values("target", key=lambda one: one.map(order), kind="stable")
    alone = both["epsilon"].map(_PAPER_ONLY)
    return (
        both.assign(target=both["target"].fillna(alone))
        .drop(columns="place")
        .reset_index(drop=True)
    )


def table_eleven(
    results: DpResults, names: Sequence[str], *, gammas: Sequence[float], deltas: Sequence[float]
) -> pd.DataFrame:
    """Bounds on the scores already judged, by how far closeness (gamma) and DP (delta) may fail."""
    config, setting = results.decisive.config, ["target", "search", "delta", "gamma"]
    rows = []
    for name, search, delta, gamma in product(names, config.searches, deltas, gammas):
        for one in results.decisive.select(target=name):
            found = one.panoramia(search, config.confidence, gamma=gamma, delta=delta)
            rows.append((name, search, delta, gamma, found.c_lb, found.c_plus_epsilon_lb))
    games = pd.DataFrame(rows, columns=[*setting, "c_lb", "c_plus_eps_lb"])
    table = games.groupby(setting, sort=False).mean().reset_index()
    failures = config.test * table["gamma"] * np.where(table["search"] == "union", 2.0, 0.25)
    table.insert(4, "failures", failures)
    return table.assign(eps_tilde=(table["c_plus_eps_lb"] - table["c_lb"]).clip(lower=0))


SMALL, LARGE = 2.0, 15.0
"""The paper's most private models have an epsilon up to the first, the least private from the
second on.
"""
PRINTED_M, LEVEL, ROUNDING = 10_000, 0.025, 0.0005
"""Of Table 11: examples, error of each test, and half of the last digit."""


def evidence(results: DpResults) -> list[Evidence]:
    """Samples for all rules on DP targets but that of Table 11, which needs no run."""
    names, audits, numbers = results.plan.family(0), results.decisive, results.numbers
    pair = numbers.loc[list(results.plan.pairs()[0])].sort_values("gap", kind="stable")
    eps = [by_game(audits, name) for name in pair.index]
    ten = {
        "wider gap leaks more": paired(eps[1], eps[0]),
        "gaps apart": Estimate(float(np.ptp(pair["gap"])), float(np.hypot(*pair["gap_error"]))),
        "something leaks": max(eps, key=lambda one: one.mean()).tolist(),
    }
    bounds = [by_game(audits, name, column="c_plus_eps_lb") for name in names]
    five = {
        "c+eps grows with epsilon": paired(bounds[-2], bounds[0]) if len(names) > 2 else [],
        "most without DP": paired(bounds[-1], bounds[-2]),
        **_needed(results, 0),
    }
    return [
        _by_epsilon(results, 0),
        _by_epsilon(results, 1),
        Evidence("panoramia-table-10", "game", ten),
        Evidence("panoramia-figure-05", "game", five),
        figure_six(results, names[-2], nulls=[results.plan.null(0)]),
    ]


def _by_epsilon(results: DpResults, at: int) -> Evidence:
    *private, plain = results.plan.family(at)
    eps = {name: by_game(results.decisive, name) for name in (*private, plain)}
    guaranteed, last = results.numbers["epsilon"], private[-1]
    small = [name for name in private if guaranteed[name] <= SMALL]
    spans = small and guaranteed[last] >= LARGE
    values = {
        "0 at small epsilon": {name: eps[name].tolist() for name in small},
        "grows with epsilon": paired(eps[last], eps[small[-1]]) if spans else [],
        "most without DP": paired(eps[plain], eps[last]),
        **_needed(results, at),
    }
    return Evidence(f"panoramia-table-0{7 + at}", "game", values)


def _needed(results: DpResults, at: int) -> dict[str, Estimate | dict[str, list[float]]]:
    last = results.plan.family(at)[-2]
    gap, error = (float(results.numbers[column][last]) for column in ("gap", "gap_error"))
    return {
        "null": null_samples(results.decisive, [results.plan.null(at)]),
        "something to find": Estimate(gap, error),
    }


def table_eleven_ranges() -> pd.DataFrame:
    """Of Table 11's bounds, what Propositions 3 and 4 leave (section E.3: no union bound over
    recall).
    """
    names = {"target_dp_eps": "epsilon", "target_dp_delta": "delta", "generator_gamma": "gamma"}
    table = paper_table("panoramia_table11").rename(columns=names).drop(columns="target_model")
    printed = table.astype(float).to_dict("records")
    free = {row["epsilon"]: row for row in printed if row["gamma"] == 0}
    # Every pair of right and all guesses, up to recall 0.5, that shows the bound printed at gamma 0
    # has one at the printed gamma and delta.
    right, wrong = np.indices((PRINTED_M // 4, 361))
    right += 1
    guesses = right + wrong
    bounds = epsilon_from_counts(right, guesses, LEVEL)
    rows = []
    for row in (row for row in printed if row["gamma"] > 0):
        gamma, delta = row["gamma"], row["delta"]
        # Proposition 4 prints delta as the baseline's probability of a failure; gamma is tried too.
        rates = {"c_lb": {gamma, delta or gamma}, "c_plus_eps_lb": {gamma + delta - gamma * delta}}
        found = {"epsilon": row["epsilon"], "delta": delta, "gamma": gamma}
        for name, failing in rates.items():
            at = np.abs(bounds - free[row["epsilon"]][name]) <= ROUNDING
            counts = right[at], guesses[at], LEVEL
            left = np.array([refuted_log_odds(*counts, PRINTED_M * rate) for rate in failing])
            found |= {name: row[name], f"{name} low": left.min(), f"{name} high": left.max()}
        rows.append(found)
    return pd.DataFrame(rows)


def table_eleven_evidence(ranges: pd.DataFrame) -> Evidence:
    """Samples for the rule on Table 11: of each printed row the larger distance of its two
    bounds.
    """
    far = {
        name: np.maximum(
            ranges[f"{name} low"] - ranges[name], ranges[name] - ranges[f"{name} high"]
        )
        for name in ("c_lb", "c_plus_eps_lb")
    }
    worst = np.maximum(0.0, pd.DataFrame(far).max(axis=1))
    labels = "eps {epsilon:g}, delta {delta:g}, gamma {gamma:g}"
    values = {
        labels.format_map(row): Estimate(distance)
        for row, distance in zip(ranges.to_dict("records"), worst.tolist(), strict=True)
    }
    return Evidence("panoramia-table-11", "exact", {"printed values follow": values})
