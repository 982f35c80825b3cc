"""PANORAMIA on targets trained by DP-SGD: guarantees, audits, Tables 7, 8, 10 and 11, Figures 5 and
6c.
"""

from collections.abc import Collection, Mapping, Sequence
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
from paperlib.core import FloatArray, IntArray
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.panoramia.images.models import ImageTarget, dp_training
from paperlib.reproduction.papers.panoramia.images.pools import (
    ImageConfig,
    image_pools,
    training_accuracies,
)
from paperlib.reproduction.papers.panoramia.results import (
    PanoramiaResults,
    by_game,
    differences_by_game,
    figure_six,
    null_samples,
)
from paperlib.reproduction.papers.verdict import Estimate, Evidence
from paperlib.training.private.accounting import replacement_epsilon

STANDS_FOR = ("ResNet18", "WRN-16-4")
"""The paper's two families, Tables 7 and 8, in the order of ours."""


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
    # Of the first family's second training at the largest epsilon (Table 10).
    dp_rate_again: float = 0.003
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
        """Refuse (ValueError) plans that do not compare two different architectures, rates and
        epochs.
        """
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
        self._check_differ("dp_rate_again", "dp_rate")
        self._check_differ("epochs_again", "epochs")

    def _check_differ(self, again: str, first: str) -> None:
        """Refuse (ValueError) a second value that repeats the first."""
        if getattr(self, again) == getattr(self, first):
            raise ValueError(
                f"{again}: expected another value than {first}, got {getattr(self, again)}"
            )

    def tried(self) -> dict[str, list[ImageTarget]]:
        """By the name of each target with DP, but for second trainings, the targets that have its
        settings with each of ``choices`` in turn.
        """
        tried: dict[str, list[ImageTarget]] = {}
        for target in (*self._family(0), *self._family(1)):
            if target.dp_epsilon is not None:
                tried[target.name] = [
                    replace(target, name=f"{target.name}, {number}", **settings)
                    for number, settings in enumerate(self.choices)
                ]
        return tried

    def targets(self) -> tuple[ImageTarget, ...]:
        """All targets: by family the null, then epsilons upwards, without DP last; then the second
        trainings of `pairs`, with another learning rate and another number of epochs.
        """
        first = self._family(0)
        *_, largest, without_dp = first
        (_, private_again), (_, plain_again) = self.pairs()
        private = replace(largest, name=private_again, learning_rate=self.dp_rate_again)
        plain = replace(without_dp, name=plain_again, epochs=self.epochs_again)
        return (*first, *self._family(1), private, plain)

    def family(self, number: int) -> list[str]:
        """Names of a family's targets by epsilon, then without DP; families are 0 and 1."""
        return [target.name for target in self._family(number)[1:]]

    def null(self, number: int) -> str:
        """Name of a family's null target."""
        return f"{self.architectures[number]} null"

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Targets of the same epsilon, the largest and none, that were trained differently: Table
        10.
        """
        return tuple((name, f"{name} again") for name in self.family(0)[-2:])

    def _family(self, number: int) -> list[ImageTarget]:
        """A family's null target, those with DP by epsilon, and the one without DP."""
        architecture = self.architectures[number]
        plain = ImageTarget(
            name=f"{architecture} no DP",
            architecture=architecture,
            width=self.widths[number],
            group_norm=True,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=self.seed,
        )
        null = replace(plain, name=self.null(number), null=True)
        with_dp = replace(
            plain,
            epochs=self.dp_epochs,
            batch_size=self.dp_batch,
            learning_rate=self.dp_rate,
            dp_delta=self.delta,
            clip_norm=self.clip_norm,
        )
        private = [
            replace(with_dp, name=f"{architecture} eps {epsilon:g}", dp_epsilon=epsilon)
            for epsilon in sorted(self.epsilons)
        ]
        return [null, *private, plain]


@dataclass(frozen=True, eq=False, kw_only=True)
class DpResults(PanoramiaResults):
    """Audits of all targets in one form, and their DP guarantees."""

    plan: DpPlan
    guarantees: pd.DataFrame  # rows of `dp_guarantees`
    # How each target with DP is trained.
    settings: pd.DataFrame = field(default_factory=pd.DataFrame)
    counts: tuple[int, int]  # number of images in a target's training part, and of real non-members

    @cached_property
    def numbers(self) -> pd.DataFrame:
        """By target, the columns of `dp_guarantees`; train and test, accuracies in per cent; and
        gap, their difference, with its standard error, gap_error.
        """
        table = self.pools.table.set_index("target")
        train = 100 * table["train_metric"]
        test = 100 * table["test_metric"]
        trained_on, held_out = self.counts
        variance = _share_variance(train / 100, trained_on) + _share_variance(test / 100, held_out)
        guarantees = self.guarantees.set_index("target")
        return guarantees.assign(
            train=train, test=test, gap=train - test, gap_error=100 * np.sqrt(variance)
        )


def _share_variance(share: pd.Series, count: int) -> pd.Series:
    """Variance of a share that was counted on so many images."""
    return share * (1 - share) / count


def run_dp(config: ImageConfig, plan: DpPlan, audit: AuditConfig) -> DpResults:
    """Train the plan's targets, audit them in the form of ``audit``, and ask the accountant.

    ``config`` has the images and helpers; the plan's targets stand in the place of its own.
    """
    targets = _tuned(config, plan)
    pools = image_pools(replace(config, targets=targets))
    split = config.split
    examples = sum(getattr(split, name) for name in split.trained_on())
    return DpResults(
        pools,
        {audit.form: audit_pools(pools, audit)},
        audit.form,
        plan=plan,
        guarantees=dp_guarantees(targets, examples),
        settings=_private_settings(targets),
        counts=(examples, split.nonmembers),
    )


def _private_settings(targets: Sequence[ImageTarget]) -> pd.DataFrame:
    """How each target with DP is trained, one row per target."""
    rows = []
    for target in targets:
        if target.dp_epsilon is not None:
            row: dict[str, Any] = {"target": target.name}
            for name in ("epochs", "batch_size", "optimizer", "learning_rate", "clip_norm"):
                row[name] = getattr(target, name)
            rows.append(row)
    return pd.DataFrame(rows)


def _tuned(config: ImageConfig, plan: DpPlan) -> tuple[ImageTarget, ...]:
    """The plan's targets, those with DP in the settings of `DpPlan.choices` with the highest
    training accuracy, and the second training of Table 10 in those with the lowest.
    """
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
    """DP guarantee of each target, trained on so many images; infinite without DP.

    ``epsilon`` is for adding or removing an image, ``epsilon_replacement`` for replacing one by
    another (nats); ``noise`` is the multiplier of the clipping norm.
    """
    rows = []
    for target in targets:
        noise, delta, replacement = 0.0, 0.0, np.inf
        process = dp_training(target, examples)
        if process is not None:
            noise, delta = process.noise_multiplier, target.dp_delta
            replacement = replacement_epsilon(
                noise, process.sampling_rate(examples), process.steps(examples), delta
            )
        rows.append((target.name, noise, delta, target.dp_epsilon or np.inf, replacement))
    return pd.DataFrame(
        rows, columns=["target", "noise", "delta", "epsilon", "epsilon_replacement"]
    )


def table_by_epsilon(results: DpResults, number: int) -> pd.DataFrame:
    """Tables 7 (family ``number`` 0) and 8 (1): the null, ours by epsilon beside the paper's, the
    paper's others.

    Columns of `_row`, nats and per cent; then the paper's, whose names begin with "paper_".
    """
    printed = _printed_by_epsilon(number)
    null = pd.DataFrame([_row(results, results.plan.null(number))])
    rows = [_row(results, name) for name in results.plan.family(number)]
    ours = pd.DataFrame(rows).join(printed, on="epsilon")
    others = printed[~printed.index.isin(ours["epsilon"])].reset_index()
    others = others.assign(target=others["epsilon"].map(_paper_only).tolist())
    return pd.concat([null, ours, others], ignore_index=True)


def _printed_by_epsilon(number: int) -> pd.DataFrame:
    """The paper's Table 7 (``number`` 0) or 8 (1), of the model that a family stands for: bounds in
    nats by epsilon, in columns that begin with "paper_".
    """
    table = paper_table(f"panoramia_table0{7 + number}")
    table = table[table["target_model"] == STANDS_FOR[number]]
    table = table.assign(epsilon=table["target_dp_eps"].astype(float))
    table = table.set_index("epsilon").sort_index()
    printed = table.loc[table["audit"] == "panoramia", ["c_lb", "c_plus_eps_lb", "eps_tilde"]]
    with_real_data = table.loc[table["audit"] == "o1_rm_rn", "eps"]
    return printed.assign(o1=with_real_data).add_prefix("paper_")


def _paper_only(epsilon: float) -> str:
    """The name of a row that only the paper has."""
    return f"the paper, eps {epsilon:g}"


def _row(results: DpResults, name: str) -> dict[str, Any]:
    """Our columns for one target: its guarantee and bounds, nats, and accuracies in per cent; of
    audits with real non-members those that were run.
    """
    row: dict[str, Any] = {"target": name}
    for column in ("epsilon", "epsilon_replacement", "train", "test", "gap"):
        row[column] = results.numbers[column][name]
    means = results.means_of(name)
    row["c_lb"] = means["c_lb"]
    row["c_plus_eps_lb"] = means["c_plus_eps_lb"]
    row["eps_tilde"] = means["value"]
    row["eps_tilde_sd"] = means["value_sd"]
    for audit in AUDITS[1:]:
        if results.decisive.select(audit):
            row[audit] = results.value(name, audit)
    return row


def table_ten(results: DpResults) -> pd.DataFrame:
    """Table 10: pairs of targets of one epsilon that were trained differently, the one with the
    wider gap of accuracies first, beside the paper's; columns of `_row`, AUCs, and the paper's.
    """
    names: list[str] = []
    for pair in results.plan.pairs():
        gaps = results.numbers.loc[list(pair), "gap"]
        names += gaps.sort_values(ascending=False, kind="stable").index.tolist()
    ours = pd.DataFrame([_row(results, name) for name in names])
    for auc in ("mia_auc", "baseline_auc"):
        ours[auc] = [results.means_of(name)[auc] for name in names]
    # Of an epsilon's two trainings ours with the wider gap stands beside theirs with the wider one.
    ours["rank"] = [0, 1] * (len(names) // 2)
    both = ours.merge(_printed_ten(), on=["epsilon", "rank"], how="outer", sort=False)
    order = {name: index for index, name in enumerate(names)}
    both = both.sort_values("target", key=lambda targets: targets.map(order), kind="stable")
    target = both["target"].fillna(both["epsilon"].map(_paper_only))
    return both.assign(target=target).drop(columns="rank").reset_index(drop=True)


def _printed_ten() -> pd.DataFrame:
    """The paper's Table 10; "rank" is 0 for the wider gap of an epsilon's two models, 1 for the
    other.
    """
    table = paper_table("panoramia_table10")
    rows = table[table["audit"] == "panoramia"].reset_index(drop=True)
    printed = pd.DataFrame(
        {
            "epsilon": rows["target_dp_eps"].astype(float),
            "paper_target": rows["target_model"] + ", variant " + rows["variant"].astype(str),
            "paper_gap": rows["train_minus_test_acc_pct"],
            "paper_eps_tilde": rows["eps_tilde"],
            "paper_o1": table.loc[table["audit"] == "o1_rm_rn", "eps"].to_numpy(),
        }
    )
    ranks = printed.groupby("epsilon")["paper_gap"].rank(ascending=False)
    return printed.assign(rank=ranks.astype(int) - 1)


def table_eleven(
    results: DpResults, names: Sequence[str], *, gammas: Sequence[float], deltas: Sequence[float]
) -> pd.DataFrame:
    """Table 11: bounds on the scores already judged, by how far closeness (gamma) and DP (delta)
    may fail.

    Args:
        results: Audits of all targets.
        names: Targets.
        gammas: Probabilities of the set on which closeness may fail, in [0, 1).
        deltas: Of the targets' DP.

    Returns:
        Means over games, a row for each target, search, delta and gamma: c_lb, c_plus_eps_lb and
            eps_tilde, nats, and failures, the mean number of right guesses that the baseline's test
            discounts where it tests a c of 0.
    """
    config = results.decisive.config
    setting = ["target", "search", "delta", "gamma"]
    rows = []
    for name, search, delta, gamma in product(names, config.searches, deltas, gammas):
        for game in results.decisive.select(target=name):
            bounds = game.panoramia(search, config.confidence, gamma=gamma, delta=delta)
            rows.append((name, search, delta, gamma, bounds.c_lb, bounds.c_plus_epsilon_lb))
    games = pd.DataFrame(rows, columns=[*setting, "c_lb", "c_plus_eps_lb"])
    table = games.groupby(setting, sort=False).mean().reset_index()
    # The union bound counts 2 m gamma (Proposition 4), the other searches a quarter of m gamma.
    failures = config.test * table["gamma"] * np.where(table["search"] == "union", 2.0, 0.25)
    table.insert(4, "failures", failures)
    return table.assign(eps_tilde=(table["c_plus_eps_lb"] - table["c_lb"]).clip(lower=0))


SMALL = 2.0
"""The paper's most private models have an epsilon up to this."""
LARGE = 15.0
"""The paper's least private models have an epsilon from this on."""
PRINTED_M = 10_000
"""Examples of Table 11."""
LEVEL = 0.025
"""Error of each test of Table 11."""
ROUNDING = 0.0005
"""Half of the last digit of Table 11."""
_MOST_WRONG = 360  # wrong guesses that are tried; the bounds of Table 11 leave fewer


def evidence(results: DpResults) -> list[Evidence]:
    """Samples for all rules on DP targets but that of Table 11, which needs no run."""
    *_, largest, _ = results.plan.family(0)
    return [
        _by_epsilon_evidence(results, 0),
        _by_epsilon_evidence(results, 1),
        _table_ten_evidence(results),
        _figure_five_evidence(results),
        figure_six(results, largest, nulls=[results.plan.null(0)]),
    ]


def _table_ten_evidence(results: DpResults) -> Evidence:
    """Table 10: two trainings of one epsilon, whose gaps of accuracy should differ."""
    with_dp, _ = results.plan.pairs()
    pair = results.numbers.loc[list(with_dp)].sort_values("gap", kind="stable")
    narrower, wider = (by_game(results.decisive, name) for name in pair.index)
    larger = max(narrower, wider, key=lambda eps: eps.mean())
    gap_difference = float(np.ptp(pair["gap"]))
    values = {
        "wider gap leaks more": differences_by_game(wider, narrower),
        "gaps apart": Estimate(gap_difference, float(np.hypot(*pair["gap_error"]))),
        "something leaks": larger.tolist(),
    }
    return Evidence(target="panoramia-table-10", unit="game", values=values)


def _figure_five_evidence(results: DpResults) -> Evidence:
    """Figure 5: the bound on c + epsilon of the first family, by epsilon."""
    *private, plain = [
        by_game(results.decisive, name, column="c_plus_eps_lb") for name in results.plan.family(0)
    ]
    growth: list[float] = []
    if len(private) > 1:
        growth = differences_by_game(private[-1], private[0])
    values = {
        "c+eps grows with epsilon": growth,
        "most without DP": differences_by_game(plain, private[-1]),
        **_needed(results, 0),
    }
    return Evidence(target="panoramia-figure-05", unit="game", values=values)


def _by_epsilon_evidence(results: DpResults, number: int) -> Evidence:
    """Table 7 or 8: eps-tilde of a family's targets by epsilon."""
    *private, plain = results.plan.family(number)
    largest = private[-1]
    eps = {name: by_game(results.decisive, name) for name in (*private, plain)}
    guarantee = results.numbers["epsilon"]
    small = [name for name in private if guarantee[name] <= SMALL]
    growth: list[float] = []
    if small and guarantee[largest] >= LARGE:
        growth = differences_by_game(eps[largest], eps[small[-1]])
    values = {
        "0 at small epsilon": {name: eps[name].tolist() for name in small},
        "grows with epsilon": growth,
        "most without DP": differences_by_game(eps[plain], eps[largest]),
        **_needed(results, number),
    }
    return Evidence(target=f"panoramia-table-0{7 + number}", unit="game", values=values)


def _needed(results: DpResults, number: int) -> dict[str, Estimate | dict[str, list[float]]]:
    """The conditions of a family's rules: a null target that shows nothing, and a gap between
    training and test accuracy, per cent, of the target with DP of the largest epsilon.
    """
    *_, largest, _ = results.plan.family(number)  # by epsilon, and last the one without DP
    gap = float(results.numbers["gap"][largest])
    error = float(results.numbers["gap_error"][largest])
    return {
        "null": null_samples(results.decisive, [results.plan.null(number)]),
        "something to find": Estimate(gap, error),
    }


def table_eleven_ranges() -> pd.DataFrame:
    """Of Table 11's bounds, what Propositions 3 and 4 leave (section E.3: no union bound over
    recall).

    A row for each printed one with gamma above 0: its bounds, and from where ("low") to where
    ("high") each can be, given the bound printed at gamma 0.
    """
    names = {"target_dp_eps": "epsilon", "target_dp_delta": "delta", "generator_gamma": "gamma"}
    table = paper_table("panoramia_table11").rename(columns=names).drop(columns="target_model")
    printed = table.astype(float).to_dict("records")
    at_gamma_zero = {row["epsilon"]: row for row in printed if row["gamma"] == 0}
    tries = _GuessCounts.up_to_half_recall()
    rows = []
    for row in printed:
        gamma, delta = row["gamma"], row["delta"]
        if gamma == 0:
            continue
        unrelaxed = at_gamma_zero[row["epsilon"]]
        # Proposition 4 prints delta as the baseline's probability of a failure; gamma is tried too.
        baseline = tries.range_of(unrelaxed["c_lb"], {gamma, delta or gamma})
        attack = tries.range_of(unrelaxed["c_plus_eps_lb"], {gamma + delta - gamma * delta})
        ranges = {"epsilon": row["epsilon"], "delta": delta, "gamma": gamma}
        for name, (low, high) in (("c_lb", baseline), ("c_plus_eps_lb", attack)):
            ranges |= {name: row[name], f"{name} low": low, f"{name} high": high}
        rows.append(ranges)
    return pd.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class _GuessCounts:
    """Pairs of right and all guesses, and the bound that each shows without failures (nats)."""

    right: IntArray
    guesses: IntArray
    bounds: FloatArray

    @classmethod
    def up_to_half_recall(cls) -> "_GuessCounts":
        """All pairs up to recall 0.5, where half of the examples are members."""
        right, wrong = np.indices((PRINTED_M // 4, _MOST_WRONG + 1))
        right += 1
        guesses = right + wrong
        return cls(right, guesses, epsilon_from_counts(right, guesses, LEVEL))

    def range_of(self, bound: float, rates: Collection[float]) -> tuple[float, float]:
        """Smallest and largest bound with failures at one of these rates, over all pairs that
        show ``bound``, as rounded, without.
        """
        fits = np.abs(self.bounds - bound) <= ROUNDING
        right, guesses = self.right[fits], self.guesses[fits]
        relaxed = np.array(
            [refuted_log_odds(right, guesses, LEVEL, PRINTED_M * rate) for rate in rates]
        )
        return relaxed.min(), relaxed.max()


def table_eleven_evidence(ranges: pd.DataFrame) -> Evidence:
    """Samples for the rule on Table 11: of each printed row the larger distance of its two bounds
    from their `table_eleven_ranges`, nats.
    """
    distances = {}
    for name in ("c_lb", "c_plus_eps_lb"):
        below = ranges[f"{name} low"] - ranges[name]
        above = ranges[name] - ranges[f"{name} high"]
        distances[name] = np.maximum(below, above)
    worst = np.maximum(0.0, pd.DataFrame(distances).max(axis=1))
    label = "eps {epsilon:g}, delta {delta:g}, gamma {gamma:g}"
    values = {
        label.format_map(row): Estimate(distance)
        for row, distance in zip(ranges.to_dict("records"), worst.tolist(), strict=True)
    }
    return Evidence(
        target="panoramia-table-11", unit="exact", values={"printed values follow": values}
    )
