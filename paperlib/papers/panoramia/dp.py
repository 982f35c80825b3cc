"""PANORAMIA on images, with targets trained by DP-SGD: targets, DP guarantees and audits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.run import audit_pools
from paperlib.papers.panoramia.images.models import ImageTarget, dp_training
from paperlib.papers.panoramia.images.pools import ImageConfig, image_pools, training_accuracies
from paperlib.papers.panoramia.results import PanoramiaResults
from paperlib.training import replacement_epsilon

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
    dp_rate_again: float = 0.003  # of the first family's second training at the largest epsilon (Table 10)
    clip_norm: float = 1.0  # of DP-SGD
    epochs: int = 40  # without DP
    epochs_again: int = 10  # of the first family's second training without DP (beside Table 10)
    batch_size: int = 64  # images in a batch without DP
    learning_rate: float = 2e-3  # without DP, by Adam
    # Attributes of `ImageTarget` to try with DP, none, or two and more: that of the highest training accuracy
    # is kept (Appendix D.9), and that of the lowest for Table 10; epsilon does not count the search.
    choices: tuple[Mapping[str, Any], ...] = ()
    seed: int = 0  # of parameters and batches

    def __post_init__(self) -> None:
        if len(self.architectures) != 2 or len(set(self.architectures)) != 2:
            raise ValueError(
                f"architectures: expected two different names, got {', '.join(self.architectures) or 'none'}"
            )
        if len(self.widths) != 2:
            raise ValueError(f"widths: expected two, got {list(self.widths)}")
        if len(self.choices) == 1:
            raise ValueError("choices: expected none, or two and more, got one")
        if not self.epsilons or len(set(self.epsilons)) < len(self.epsilons):
            raise ValueError(f"epsilons: expected one or more, all different, got {list(self.epsilons)}")
        for again, name in (("dp_rate_again", "dp_rate"), ("epochs_again", "epochs")):
            if getattr(self, again) == getattr(self, name):
                raise ValueError(f"{again}: expected another value than {name}, got {getattr(self, again)}")

    def tried(self) -> dict[str, list[ImageTarget]]:
        """Each target with DP, but for second trainings, in all settings to try."""
        return {
            one.name: [replace(one, name=f"{one.name}, {at}", **how) for at, how in enumerate(self.choices)]
            for one in (*self._family(0), *self._family(1))
            if one.dp_epsilon is not None
        }

    def targets(self) -> tuple[ImageTarget, ...]:
        """All targets: by family the null, then epsilons upwards, without DP last; then those once more."""
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
        """Targets of the same epsilon, the largest and none, that were trained differently: Table 10."""
        return tuple((name, f"{name} again") for name in self.family(0)[-2:])

    def _family(self, at: int) -> list[ImageTarget]:
        architecture = self.architectures[at]
        plain = ImageTarget(
            name=f"{architecture} no DP",
            architecture=architecture,
            width=self.widths[at],
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            group_norm=True,
            seed=self.seed,
        )
        private = replace(
            plain,
            epochs=self.dp_epochs,
            batch_size=self.dp_batch,
            learning_rate=self.dp_rate,
            dp_delta=self.delta,
            clip_norm=self.clip_norm,
        )
        return [
            replace(plain, name=self.null(at), null=True),
            *(
                replace(private, name=f"{architecture} eps {epsilon:g}", dp_epsilon=epsilon)
                for epsilon in sorted(self.epsilons)
            ),
            plain,
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class DpResults(PanoramiaResults):
    """Audits of all targets in one form, and their DP guarantees."""

    plan: DpPlan
    guarantees: pd.DataFrame  # rows of `dp_guarantees`
    settings: pd.DataFrame = field(default_factory=pd.DataFrame)  # how each target with DP is trained
    counts: tuple[int, int]  # number of images in a target's training part, and of real non-members

    @cached_property
    def numbers(self) -> pd.DataFrame:
        """By target, its guarantee, accuracies in per cent, and their gap with its standard error."""
        table = self.pools.table.set_index("target")
        train, test = 100 * table["train_metric"], 100 * table["test_metric"]
        drawn = [
            part / 100 * (1 - part / 100) / count
            for part, count in zip((train, test), self.counts, strict=True)
        ]
        found = self.guarantees.set_index("target").assign(train=train, test=test, gap=train - test)
        return found.assign(gap_error=100 * np.sqrt(drawn[0] + drawn[1]))


def run_dp(config: ImageConfig, plan: DpPlan, audit: AuditConfig) -> DpResults:
    """Train the plan's targets, audit them, and ask the accountant."""
    targets = _tuned(config, plan)
    whole = replace(config, targets=targets)
    pools = image_pools(whole)
    examples = sum(getattr(whole.split, part) for part in whole.split.trained_on())
    names = ("epochs", "batch_size", "optimizer", "learning_rate", "clip_norm")
    private = [one for one in targets if one.dp_epsilon is not None]
    settings = [{"target": one.name, **{name: getattr(one, name) for name in names}} for one in private]
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
    return pd.DataFrame(rows, columns=["target", "noise", "delta", "epsilon", "epsilon_replacement"])
