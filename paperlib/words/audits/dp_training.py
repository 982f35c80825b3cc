"""What the checks of a training loop of DP-SGD found, and what their outcome supports."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from paperlib.audits.dp_training.checks import DpCheck
    from paperlib.audits.dp_training.nulls import NullUse

_MOST_CHARACTERS = 200  # of a headline

FindingKind = Literal[
    "steps",
    "steps differ",
    "no interplay",
    "statistics of all data",
    "interplay",
    "no spread",
    "adding",
    "adding, norm not reached",
    "replacing",
    "replacing, norm not reached",
    "noise",
    "difference of neighbours",
    "difference of parameters",
    "difference of seeds",
    "difference of steps",
    "sum of steps",
    "noise repeats",
    "noise not tried",
    "too few numbers",
    "rate",
    "epochs",
    "too few epochs",
    "told apart",
]
"""What a check found, as its name."""

_NOT_REACHED = (
    "; no canary reached the clipping norm, so clipping was not tried: give larger canaries="
)
_ADDING = "adding one record changes a step by up to {norms:.3g} clipping norms, at step {step:.0f}"
_REPLACING = (
    "replacing one record changes a step by up to twice {norms:.3g} clipping norms, at step "
    "{step:.0f}"
)
_DEVIATION = " has {ratio:.3g} times the stated standard deviation"
_FINDINGS: dict[FindingKind, str] = {
    "steps": "{most:.0f} steps, {stated:.0f} stated",
    "steps differ": "from {least:.0f} to {most:.0f} steps, as one record decides",
    "no interplay": "what a record adds to a step does not depend on the other records",
    "statistics of all data": (
        "a record changes the steps without it too, as do statistics of all data that scale "
        "inputs or weigh classes"
    ),
    "interplay": (
        "what a record adds depends on its batch, by up to {norms:.3g} clipping norms, as by "
        "batch statistics, a weighted mean or joint clipping"
    ),
    "no spread": ("gradients are not finite where all records are alike: divided by a spread of 0"),
    "adding": _ADDING,
    "adding, norm not reached": _ADDING + _NOT_REACHED,
    "replacing": _REPLACING,
    "replacing, norm not reached": _REPLACING + _NOT_REACHED,
    "noise": "the noise of parameter {parameter:.0f}" + _DEVIATION,
    "difference of neighbours": "the difference of neighbouring numbers" + _DEVIATION,
    "difference of parameters": (
        "the difference of parameters {first:.0f} and {second:.0f}" + _DEVIATION
    ),
    "difference of seeds": (
        "the difference between seeds in parameter {parameter:.0f}" + _DEVIATION
    ),
    "difference of steps": (
        "the difference of steps {apart:.0f} apart in parameter {parameter:.0f}" + _DEVIATION
    ),
    "sum of steps": (
        "the sum of steps {apart:.0f} apart in parameter {parameter:.0f}" + _DEVIATION
    ),
    "noise repeats": "the noise of a step has its size",
    "noise not tried": "not tried, as gradients are not finite where all records are alike",
    "too few numbers": "too few numbers for this check",
    "rate": "a record is in {count:.0f} of {total:.0f} batches, at a stated rate of {rate:g}",
    "epochs": (
        "a record is in exactly one batch in {once:.0f} of {total:.0f} epochs; {chance:.2g} "
        "of them expected"
    ),
    "too few epochs": "too few steps for this check",
    "told apart": (
        "{trainings:.0f} trainings with a canary and {trainings:.0f} without are told apart with "
        "error rates of at most {false_positive:.2g} and {false_negative:.2g}"
    ),
}


def finding(kind: FindingKind, numbers: Mapping[str, float]) -> str:
    """What a check found, in one sentence without a full stop.

    ``numbers`` are those that the sentence of this kind names.

    >>> finding("rate", {"count": 25, "total": 100, "rate": 0.25})
    'a record is in 25 of 100 batches, at a stated rate of 0.25'
    """
    return _FINDINGS[kind].format(**numbers)


def headline(checks: "Sequence[DpCheck]") -> str:
    """The first fault on one line, with the names of further checks that fail if there is room."""
    wrong = [check for check in checks if not check.passed]
    if not wrong:
        return f"DP-SGD: no fault found by {len(checks)} checks"
    cause, *consequences = wrong
    line = f"DP-SGD: not as stated; {cause.name}: {cause.finding}"
    if not consequences:
        return line
    names = f"{line} (then also {', '.join(check.name for check in consequences)})"
    if len(names) <= _MOST_CHARACTERS:
        return names
    return f"{line} (then also {len(consequences)} of the later checks)"


def claim(checks: "Sequence[DpCheck]", error: float, *, replaced: bool) -> str:
    """How many checks found a fault, and how sure that is.

    Args:
        checks: All of them, causes before what follows from them.
        error: Chance of a false accusation at most.
        replaced: Whether clipping was checked by replacing a record, not by adding one.
    """
    wrong = sum(not check.passed for check in checks)
    return (
        f"{wrong} of {len(checks)} checks found a fault; if training is as stated, one is "
        f"found with probability at most {error:.3g}. Clipping was checked for "
        f"{'replacing' if replaced else 'adding or removing'} a record."
    )


ASSUMPTIONS = (
    "one record of the data is one unit of privacy, and the number of records is public",
    "the gradients that the optimizer is given are all that training takes from the data",
    "the loop is the same with other data, parameters and seeds as with those that were tried",
    "the noise is of an unpredictable seed when it counts, and floating point is not attacked",
)
"""What the checks take for granted."""

PLAIN_NULL = (
    "give a record of gradient 0 that the loss counts, such as label -100 with "
    "reduction='none' and .mean()"
)
"""Which null is of use."""

_UNUSED_NULLS: "dict[NullUse, str]" = {
    "changes others": "it changes the gradients of other records",
    "has a gradient": "it has a gradient of its own",
}


def null_warnings(use: "NullUse") -> tuple[str, ...]:
    """Why a null could not be used, and what can; empty where it was."""
    if use not in _UNUSED_NULLS:
        return ()
    reason = _UNUSED_NULLS[use]
    return (f"null: {reason}, so only replacing a record was checked; {PLAIN_NULL}",)


NULL_AMONG_CLIPPED = (
    "null: it changes the gradients of other records, as a mean that leaves it out does; "
    "so what a record adds was measured among clipped records, where this changes nothing."
)
"""The note on a null that is compared among records that are clipped."""


def divided_by(divisor: float) -> str:
    """The note that the noisy sum is not divided by the expected batch size."""
    return f"The noisy sum is divided by {divisor:.6g}, as the loop shows."


def unused_parameters(unused: Sequence[int], parameters: int) -> str:
    """The note on parameters without a gradient, by their numbers from 1, one or more."""
    return (
        f"Of {parameters} parameters of the optimizer, no step has a gradient of "
        f"{_shortened(unused)}: nothing of them is released, and no check looks at them."
    )


def _shortened(numbers: Sequence[int]) -> str:
    """Up to five numbers of parameters as text, and how many follow."""
    first = ", ".join(map(str, numbers[:5]))
    rest = len(numbers) - 5
    return f"number {first}" if rest <= 0 else f"number {first} and {rest} others"


def spends_more(
    *, noise: float, rate: float, steps: int, spent: float, delta: float, epsilon: float
) -> str:
    """The message that the steps stated give a larger epsilon than the one that is claimed.

    Args:
        noise, rate, steps: Noise multiplier, sampling rate and number of steps, as stated.
        spent, epsilon: The epsilon that they give at ``delta``, and the claimed one, nats.
    """
    return (
        f"epsilon: noise multiplier {noise:g}, sampling rate {rate:g} and {steps} "
        f"steps give epsilon {spent:.3g} at delta {delta:g}, not {epsilon:g}"
    )
