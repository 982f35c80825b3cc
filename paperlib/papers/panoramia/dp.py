"""PANORAMIA on images, with targets trained by DP-SGD: targets, DP guarantees and audits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.results import TargetAudits
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

    # two names of ``paperlib.models.images.ARCHITECTURES``; the first stands for the paper's ResNet-18, the
    # second for its WRN-16-4
    architectures: tuple[str, str] = ("mlp", "cnn")
    widths: tuple[int, int] = (128, 16)  # of both, see ``ImageArchitecture``
    # of DP-SGD, nats, above 0, each with both families, beside training without DP
    epsilons: tuple[float, ...] = (2.0, 10.0, 20.0)
    delta: float = 1e-5  # of DP-SGD, in (0, 1)
    dp_epochs: int = 15  # with DP-SGD, 1 or more
    dp_batch: int = 256  # expected images in a batch of DP-SGD
    dp_rate: float = 0.01  # of DP-SGD, by Adam
    # of a second training of the first family at the largest epsilon (Table 10)
    dp_rate_again: float = 0.003
    clip_norm: float = 1.0  # of DP-SGD, above 0
    epochs: int = 40  # without DP, 1 or more
    epochs_again: int = 10  # of a second training of the first family without DP (beside Table 10)
    batch_size: int = 64  # images in a batch without DP
    learning_rate: float = 2e-3  # without DP, by Adam
    # what is tried for each target with DP, if anything: attributes of `ImageTarget` in the place of those
    # above. The setting of the highest training accuracy is kept, as in the paper's Appendix D.9, and that of
    # the lowest for Table 10; epsilon does not count the search. None, or two and more
    choices: tuple[Mapping[str, Any], ...] = ()
    seed: int = 0  # of parameters and batches, 0 or more

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
        """Name of each target with DP, but for second trainings, to that target in all settings to try."""
        private = [one for at in (0, 1) for one in self._family(at) if one.dp_epsilon is not None]
        return {
            one.name: [replace(one, name=f"{one.name}, {at}", **how) for at, how in enumerate(self.choices)]
            for one in private
        }

    def targets(self) -> tuple[ImageTarget, ...]:
        """All targets: by family the null, then epsilons upwards, without DP last; then those once more."""
        first, second = self._family(0), self._family(1)
        (_, private_again), (_, plain_again) = self.pairs()
        private = replace(first[-2], name=private_again, learning_rate=self.dp_rate_again)
        plain = replace(first[-1], name=plain_again, epochs=self.epochs_again)
        return (*first, *second, private, plain)

    def family(self, at: int) -> list[str]:
        """Names of a family's targets by epsilon, then without DP; no null, no second trainings."""
        return [target.name for target in self._family(at)[1:]]

    def null(self, at: int) -> str:
        """Name of a family's null target."""
        return self._family(at)[0].name

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Targets of the same epsilon, the largest and none, that were trained differently: Table 10."""
        return tuple((name, f"{name} again") for name in self.family(0)[-2:])

    def _family(self, at: int) -> list[ImageTarget]:
        """The null, then epsilons upwards, then without DP."""
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
            replace(plain, name=f"{architecture} null", null=True),
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
    settings: pd.DataFrame = field(default_factory=pd.DataFrame)  # rows of `chosen_settings`
    counts: tuple[int, int]  # number of images in a target's training part, and of real non-members

    @property
    def audits(self) -> TargetAudits:
        """The audits."""
        return self.forms[self.form]

    def accuracy(self, target: str, part: str) -> float:
        """Accuracy of a target on its training part ("train") or on real non-members ("test"), per cent."""
        return 100 * float(self.pools.table.set_index("target")[f"{part}_metric"].to_dict()[target])

    def guarantee(self, target: str, column: str = "epsilon") -> float:
        """Epsilon of a target's DP guarantee, nats, or another column of `dp_guarantees`."""
        return float(self.guarantees.set_index("target")[column].to_dict()[target])

    def gap(self, target: str) -> float:
        """Accuracy on the training part less accuracy on real non-members, in points."""
        return self.accuracy(target, "train") - self.accuracy(target, "test")

    def gap_error(self, target: str) -> float:
        """Standard error of the gap in points, over images drawn at random."""
        shares = [self.accuracy(target, part) / 100 for part in ("train", "test")]
        variances = [share * (1 - share) / count for share, count in zip(shares, self.counts, strict=True)]
        return 100 * float(np.sqrt(sum(variances)))


def run_dp(config: ImageConfig, plan: DpPlan, audit: AuditConfig) -> DpResults:
    """Train the plan's targets, audit them, and ask the accountant."""
    targets = _tuned(config, plan)
    whole = replace(config, targets=targets)
    pools = image_pools(whole)
    examples = sum(getattr(whole.split, part) for part in whole.split.trained_on())
    return DpResults(
        pools,
        {audit.form: audit_pools(pools, audit)},
        audit.form,
        plan=plan,
        guarantees=dp_guarantees(targets, examples),
        settings=chosen_settings(targets),
        counts=(examples, whole.split.nonmembers),
    )


def _tuned(config: ImageConfig, plan: DpPlan) -> tuple[ImageTarget, ...]:
    """The plan's targets, those with DP in the settings of the highest training accuracy.

    The second training of the largest epsilon has the setting of the lowest one: the first two hardly differ.
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


def chosen_settings(targets: Sequence[ImageTarget]) -> pd.DataFrame:
    """How each target with DP is trained: target, epochs, batch_size, optimizer, learning_rate, clip_norm."""
    names = ("epochs", "batch_size", "optimizer", "learning_rate", "clip_norm")
    private = [one for one in targets if one.dp_epsilon is not None]
    return pd.DataFrame(
        [{"target": one.name, **{name: getattr(one, name) for name in names}} for one in private]
    )


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
