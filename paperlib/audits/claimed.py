"""What a claimed trade-off curve may be: a mechanism in words, a file, an accountant, a profile."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paperlib.bounds.claims.curves import (
    ClaimedCurve,
    Profile,
    gaussian_profile,
    profile_of_points,
)
from paperlib.core.checks import check_at_least, check_in
from paperlib.reading.frames import read_frames

if TYPE_CHECKING:
    from paperlib.audits.planned.sealed_plan import SealedPlan

_CALL = re.compile(r"\s*gaussian\s*\((?P<arguments>[^()]*)\)\s*")
_FORM = "gaussian(sigma=1.0, q=0.01, steps=1000) or gaussian(mu=0.5)"


def claimed_curve(claimed: object) -> ClaimedCurve:
    """The curve that is claimed.

    Args:
        claimed: A `ClaimedCurve`; "gaussian(sigma=..., q=..., steps=...)" for DP-SGD with noise
            multiplier sigma, Poisson sampling at rate q (default 1) and so many steps (default 1);
            "gaussian(mu=...)"; or an accountant of ``dp_accounting`` that has composed the
            training, for adding or removing a record.

    Raises:
        ValueError: A claim of another form, or numbers out of range.

    >>> claimed_curve("gaussian(sigma=2, steps=4)").profile(np.array([1.0])).round(4)
    array([0.1269])
    """
    if isinstance(claimed, ClaimedCurve):
        return claimed
    if isinstance(claimed, str):
        return _gaussian(claimed)
    if hasattr(claimed, "get_delta") and hasattr(claimed, "get_epsilon"):
        return _of_accountant(claimed)
    raise ValueError(f"claimed: expected {_FORM}, an accountant or a ClaimedCurve, got {claimed!r}")


def tested_curve(claimed: object, plan: "SealedPlan | None") -> ClaimedCurve | None:
    """The curve that an audit tests, None for none.

    Args:
        claimed: As for `claimed_curve`, or None.
        plan: The sealed plan that is followed, which may name a curve; None without one.

    Raises:
        ValueError: As for `claimed_curve`, or another claim than planned.
    """
    if plan is None:
        return None if claimed is None else claimed_curve(claimed)
    if claimed is not None and claimed != plan.claimed:
        raise ValueError(
            f"claimed: planned {plan.claimed or 'none'}; leave it out, as the plan names the curve"
        )
    return claimed_curve(plan.claimed) if plan.claimed else None


def read_claimed_curve(path: str | Path) -> ClaimedCurve:
    """The curve of a table with the columns epsilon (nats) and delta, pairs that hold together.

    Raises:
        ValueError: Columns that are missing, or numbers out of range.
        FileNotFoundError: There is no such file.
    """
    (frame,) = read_frames([str(path)])
    missing = [name for name in ("epsilon", "delta") if name not in frame.columns]
    if missing:
        raise ValueError(f"{path}: expected the columns epsilon and delta, got no {missing[0]}")
    try:
        columns = frame[["epsilon", "delta"]].to_numpy(float)
    except ValueError:
        raise ValueError(f"{path}: epsilon and delta must be numbers") from None
    return ClaimedCurve(Path(path).name, profile_of_points(columns[:, 0], columns[:, 1]))


def _gaussian(text: str) -> ClaimedCurve:
    """The curve of a claim in words, such as "gaussian(sigma=2, steps=4)".

    Raises:
        ValueError: Words of another form, or numbers out of range.
    """
    numbers = _arguments(text)
    if set(numbers) == {"mu"}:
        mu = check_in("(0, inf)", "mu", numbers["mu"])
        return ClaimedCurve(text, gaussian_profile(mu), lambda share: gaussian_profile(mu / share))
    if "sigma" not in numbers or not set(numbers) <= {"sigma", "q", "steps"}:
        raise ValueError(f"claimed: expected {_FORM}, got {text!r}")
    sigma = check_in("(0, inf)", "sigma", numbers["sigma"])
    rate = check_in("(0, 1]", "q", numbers.get("q", 1.0))
    steps = numbers.get("steps", 1)
    check_at_least(1, steps=steps)
    if steps != int(steps):
        raise ValueError(f"steps: expected a whole number, got {steps!r}")

    def profile(share: float) -> Profile:
        """The curve if the noise had this share of its claimed size, above 0."""
        if rate == 1:
            return gaussian_profile(float(np.sqrt(steps)) / (sigma * share))
        # Imported here, since it takes longer to load than the audit takes.
        from paperlib.training.private.profile import dp_sgd_points

        return profile_of_points(*dp_sgd_points(sigma * share, rate, int(steps)))

    return ClaimedCurve(text, profile(1.0), profile, is_add_remove=True)


def _arguments(text: str) -> dict[str, float]:
    """The numbers of a claim in words, by their names."""
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(f"claimed: expected {_FORM}, got {text!r}")
    numbers: dict[str, float] = {}
    for piece in call["arguments"].split(","):
        name, equals, value = (word.strip() for word in piece.partition("="))
        number = _number(value)
        if not equals or number is None or name in numbers:
            raise ValueError(f"claimed: expected {_FORM}, got {text!r}")
        numbers[name] = number
    return numbers


def _number(text: str) -> float | None:
    """The number that a text is, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def _of_accountant(accountant: Any) -> ClaimedCurve:
    """The curve of an accountant that has composed a training."""
    from paperlib.training.private.profile import accountant_points

    profile = profile_of_points(*accountant_points(accountant))
    return ClaimedCurve(f"the {type(accountant).__name__}", profile, is_add_remove=True)
