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
from paperlib.training import TrainingConfig, epsilon_of, noise_for
from paperlib.training.private.accounting import replacement_epsilon


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditTarget:
    """One target with all that the audits take."""

    family: str  #: "known mechanism", "classifier" or "language model"
    name: str  #: within its family
    #: signals of each record, the strongest score first and higher for members, shape (n, d)
    signals: FloatArray
    #: who was trained on, by a fair coin tossed before training, shape (n,)
    member: NDArray[np.bool_]
    #: scores of values that were drawn at random, and of the other candidates of each, the true one
    #: first, shape (m, k)
    sets: FloatArray
    #: members against rows of a fitted generator, whose c is not known: "features", what anyone
    #: sees of each, (n, d); "signals" of the target as above, (n, k); "member", (n,); and "seconds"
    #: of the fit
    generated: Mapping[str, Any] | None = None
    #: scores of one record in runs with it and without it, where training can be repeated
    runs: MembershipScores | None = None
    #: epsilon that training guarantees for adding or removing one record, nats
    add_remove: float = np.inf
    replacement: float = np.inf  #: the same for replacing one record by another
    #: family of trade-off curves for the f-DP audit
    curve: Literal["gaussian", "laplace"] = "gaussian"
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
        """Settings of every model by its name: without DP by epochs, then with DP-SGD by budget.

        Args:
            plain: Training without DP, whose epochs are replaced.
            private: DP-SGD, whose epochs, batch and noise are replaced.
            examples: Number of records that are trained on.
        """
        trainings = {f"{epochs} epochs": replace(plain, epochs=epochs) for epochs in self.epochs}
        steps = replace(private, epochs=self.private_epochs)
        for budget in self.budgets:
            trainings[f"DP-SGD, ε = {budget:g}"] = with_budget(steps, examples, budget, self.delta)
        return trainings

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
        """Every model with its part of the arrays of all, and what its training guarantees.

        ``arrays`` holds "signals" and "sets" by model and, for a family with a generator,
        "generated_signals" by model and "features", "member" and "seconds" of all.
        """
        targets: list[AuditTarget] = []
        for index, (name, training) in enumerate(trainings.items()):
            add_remove, replacement = guarantees(training, examples, self.delta)
            targets.append(
                AuditTarget(
                    family=family,
                    name=name,
                    signals=arrays["signals"][index],
                    member=member,
                    sets=arrays["sets"][index],
                    generated=_generated_part(arrays, index),
                    add_remove=add_remove,
                    replacement=replacement,
                    labels=labels,
                )
            )
        return targets


def _generated_part(arrays: Mapping[str, Any], index: int) -> dict[str, Any] | None:
    """What `AuditTarget.generated` holds for a model; None for a family without a generator."""
    if "generated_signals" not in arrays:
        return None
    return {
        "features": arrays["features"],
        "member": arrays["member"],
        "seconds": arrays["seconds"],
        "signals": arrays["generated_signals"][index],
    }


def with_budget(
    config: TrainingConfig, examples: int, budget: float, delta: float
) -> TrainingConfig:
    """The same DP-SGD on so many ``examples`` with all of them in every step, and the noise for
    epsilon ``budget``, nats, of adding or removing a record at ``delta``.
    """
    # Without sampling every step is one Gaussian mechanism: the f-DP audit assumes nothing that is
    # not so.
    whole = replace(config, batch_size=examples)
    noise = noise_for(budget, 1.0, whole.steps(examples), delta, "pld")
    return replace(whole, noise_multiplier=noise)


@lru_cache(maxsize=256)
def guarantees(config: TrainingConfig, examples: int, delta: float) -> tuple[float, float]:
    """Epsilon, nats, for adding or removing one of so many ``examples``, and for replacing one, at
    ``delta`` in (0, 1); both infinite without noise.
    """
    if not config.noise_multiplier:
        return np.inf, np.inf
    noise = config.noise_multiplier
    rate, steps = config.sampling_rate(examples), config.steps(examples)
    add_remove = epsilon_of(noise, rate, steps, delta, accountant="pld")
    # Replacing a record moves the sum of clipped gradients by up to twice the clipping norm. At
    # delta above 0 this epsilon is not twice the other: it is composed from privacy losses of its
    # own.
    return add_remove, replacement_epsilon(noise, rate, steps, delta)
