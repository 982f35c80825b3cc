"""What the comparison audits: scores of one target, and the epsilon that its training
guarantees.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paperlib.core import FloatArray, MembershipScores
from paperlib.training import TrainingConfig, epsilon_of, noise_for, replacement_epsilon


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditTarget:
    """One target with all that the audits take."""

    family: str  #: "known mechanism", "classifier" or "language model"
    name: str  #: within its family
    #: signals of each record, the strongest score first and higher for members, shape (n, d)
    signals: FloatArray
    member: NDArray[
        np.bool_
    ]  #: who was trained on, by a fair coin tossed before training, shape (n,)
    #: scores of values that were drawn at random, and of the other candidates of each, the true one
    #: first, shape (m, k)
    sets: FloatArray
    #: members against rows of a fitted generator, whose c is not known: "features", what anyone
    #: sees of each, (n, d); "signals" of the target as above, (n, k); "member", (n,); and "seconds"
    #: of the fit
    generated: Mapping[str, Any] | None = None
    #: scores of one record in runs with it and without it, where training can be repeated
    runs: MembershipScores | None = None
    add_remove: float = (
        np.inf
    )  #: epsilon that training guarantees for adding or removing one record, nats
    replacement: float = np.inf  #: the same for replacing one record by another
    curve: Literal["gaussian", "laplace"] = (
        "gaussian"  #: family of trade-off curves for the f-DP audit
    )
    labels: bool = False  #: whether the scores need the records' labels

    @property
    def scores(self) -> MembershipScores:
        """The first signal, as the score audits take it; as a loss, lower for members."""
        return MembershipScores.from_labels(
            -self.signals[:, 0], self.member, higher_means_member=False
        )


@dataclass(frozen=True, kw_only=True)
class TrainedConfig:
    """What the trained targets of a family share: over-training to several degrees, and DP-SGD."""

    epochs: tuple[int, ...]  #: passes over the members, one model each
    budgets: tuple[float, ...] = (2.0, 10.0)  #: epsilon of DP-SGD (add/remove), one model each
    private_epochs: int = 40  #: steps of DP-SGD, each on all records, 1 or more
    delta: float = 1e-5  #: of DP-SGD, in (0, 1)
    seed: int = 0  #: of records, coins and training, 0 or more

    def trainings(
        self, plain: TrainingConfig, private: TrainingConfig, examples: int
    ) -> dict[str, TrainingConfig]:
        """Settings of every model by its name."""
        named = {f"{epochs} epochs": replace(plain, epochs=epochs) for epochs in self.epochs}
        whole = replace(private, epochs=self.private_epochs)
        for budget in self.budgets:
            named[f"DP-SGD, ε = {budget:g}"] = with_budget(whole, examples, budget, self.delta)
        return named

    def targets(
        self,
        family: str,
        trainings: Mapping[str, TrainingConfig],
        arrays: Mapping[str, Any],
        *,
        member: NDArray[np.bool_],
        examples: int,
        labels: bool = False,
    ) -> list[AuditTarget]:
        """Every model with its part of the arrays of all, and what its training guarantees."""
        targets = list[AuditTarget]()
        for at, (name, training) in enumerate(trainings.items()):
            add_remove, replacement = guarantees(training, examples, self.delta)
            generated = None
            if "generated_signals" in arrays:
                generated = {name: arrays[name] for name in ("features", "member", "seconds")}
                generated["signals"] = arrays["generated_signals"][at]
            targets.append(
                AuditTarget(
                    family=family,
                    name=name,
                    signals=arrays["signals"][at],
                    member=member,
                    sets=arrays["sets"][at],
                    generated=generated,
                    add_remove=add_remove,
                    replacement=replacement,
                    labels=labels,
                )
            )
        return targets


def with_budget(
    config: TrainingConfig, examples: int, budget: float, delta: float
) -> TrainingConfig:
    """The same DP-SGD with all records in every step, and the noise for an epsilon (add/remove)."""
    # Without sampling every step is one Gaussian mechanism: the f-DP audit assumes nothing that is
    # not so.
    whole = replace(config, batch_size=examples)
    return replace(
        whole, noise_multiplier=noise_for(budget, 1.0, whole.steps(examples), delta, "pld")
    )


@lru_cache(maxsize=256)
def guarantees(config: TrainingConfig, examples: int, delta: float) -> tuple[float, float]:
    """Epsilon for adding or removing one record, and for replacing one; infinite without noise."""
    if not config.noise_multiplier:
        return np.inf, np.inf
    # Replacing a record moves the sum of clipped gradients by up to twice the clipping norm. At
    # delta above 0 the second epsilon is not twice the first: it is composed from privacy losses of
    # its own.
    process = (
        config.noise_multiplier,
        config.sampling_rate(examples),
        config.steps(examples),
        delta,
    )
    return epsilon_of(*process, accountant="pld"), replacement_epsilon(*process)
