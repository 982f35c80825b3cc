"""What a claimed trade-off curve may be: a mechanism in words, a file, an accountant, a profile."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paperlib.bounds.claims.curves import (
    ClaimedCurve,
    Profile,
    gaussian_profile,
    profile_of_points,
)
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least, check_in
from paperlib.reading.frames import read_frames

if TYPE_CHECKING:
    from paperlib.audits.planned.sealed_plan import SealedPlan

_CALL = re.compile(r"\s*(?P<kind>gaussian|points)\s*\((?P<arguments>[^()]*)\)\s*")
_FORM = "gaussian(sigma=1.0, q=0.01, steps=1000), gaussian(mu=0.5) or points(0:0.3, 2:1e-5)"
_LONGEST_NAME = 80  # characters of a claim that are shown whole


def claimed_curve(claimed: object) -> ClaimedCurve:
    """The curve that is claimed.

    Args:
        claimed: A `ClaimedCurve`; "gaussian(sigma=..., q=..., steps=...)" for DP-SGD with noise
            multiplier sigma, Poisson sampling at rate q (default 1) and so many steps (default 1);
            "gaussian(mu=...)"; "points(0:0.3, 2:1e-5)" for pairs epsilon:delta that hold
            together; or an accountant of ``dp_accounting`` that has composed the training, for
            adding or removing a record.

    Raises:
        ValueError: A claim of another form, or numbers out of range.

    >>> claimed_curve("gaussian(sigma=2, steps=4)").profile(np.array([1.0])).round(4)
    array([0.1269])
    """
    if isinstance(claimed, ClaimedCurve):
        return claimed
    if isinstance(claimed, str):
        kind, arguments = _call(claimed)
        return _gaussian(claimed, arguments) if kind == "gaussian" else _points(claimed, arguments)
    if hasattr(claimed, "get_delta") and hasattr(claimed, "get_epsilon"):
        return _of_accountant(claimed)
    raise ValueError(f"claimed: expected {_FORM}, an accountant or a ClaimedCurve, got {claimed!r}")


def tested_curve(claimed: object, plan: "SealedPlan | None") -> ClaimedCurve | None:
    """The curve that an audit tests, None for none.

    Args:
        claimed: The claim of the user, in one of the forms of `claimed_curve`; None for no claim.
        plan: The sealed plan that is followed, which may name a curve; None without one.

    Raises:
        ValueError: A claim of another form, with numbers out of range, or other than planned.
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
    pairs = _read_pairs(path)
    return ClaimedCurve(Path(path).name, profile_of_points(pairs[:, 0], pairs[:, 1]))


def curve_in_words(path: str | Path) -> str:
    """The claim of a table in words, "points(epsilon:delta, ...)", as a plan holds it; its curve is
    that of `read_claimed_curve`, which also says what is refused.
    """
    pairs = _read_pairs(path)
    profile_of_points(pairs[:, 0], pairs[:, 1])  # refuses numbers out of range
    # The order of rows says nothing: tables of the same pairs are the same words.
    ordered = sorted({(float(epsilon), float(delta)) for epsilon, delta in pairs})
    return f"points({', '.join(f'{epsilon!r}:{delta!r}' for epsilon, delta in ordered)})"


def _read_pairs(path: str | Path) -> FloatArray:
    """Epsilon (nats) and delta of each row of a table, shape (rows, 2); a ValueError for columns
    that are missing, or hold no numbers.
    """
    (frame,) = read_frames([str(path)])
    missing = [name for name in ("epsilon", "delta") if name not in frame.columns]
    if missing:
        raise ValueError(f"{path}: expected the columns epsilon and delta, got no {missing[0]}")
    try:
        return np.asarray(frame[["epsilon", "delta"]].to_numpy(float))
    except ValueError:
        raise ValueError(f"{path}: epsilon and delta must be numbers") from None


def _call(text: str) -> tuple[str, list[str]]:
    """The kind of a claim in words, such as "gaussian", and the texts between its commas; a
    ValueError for words of another form.
    """
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(f"claimed: expected {_FORM}, got {text!r}")
    return call["kind"], call["arguments"].split(",")


def _points(text: str, arguments: Sequence[str]) -> ClaimedCurve:
    """The curve of pairs in words, such as "points(0:0.3, 2:1e-5)".

    Raises:
        ValueError: Words of another form, or numbers out of range.
    """
    pairs: list[tuple[float, float]] = []
    for argument in arguments:
        first, colon, second = argument.partition(":")
        epsilon, delta = _number(first), _number(second)
        if not colon or epsilon is None or delta is None:
            raise ValueError(f"claimed: expected {_FORM}, got {text!r}")
        pairs.append((epsilon, delta))
    epsilons, deltas = np.array(pairs).T
    profile = profile_of_points(epsilons, deltas)
    if len(text) <= _LONGEST_NAME:
        return ClaimedCurve(text, profile)
    first, last = arguments[0].strip(), arguments[-1].strip()
    return ClaimedCurve(f"points({first}, ..., {last}) of {len(pairs)} pairs", profile)


def _gaussian(text: str, arguments: Sequence[str]) -> ClaimedCurve:
    """The curve of a claim in words, such as "gaussian(sigma=2, steps=4)".

    Raises:
        ValueError: Words of another form, or numbers out of range.
    """
    numbers = _named_numbers(text, arguments)
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


def _named_numbers(text: str, arguments: Sequence[str]) -> dict[str, float]:
    """The numbers of a claim in words, by their names, from arguments such as "sigma=2"; a
    ValueError, which quotes the whole ``text``, for arguments of another form.
    """
    numbers: dict[str, float] = {}
    for argument in arguments:
        name, equals, value = (word.strip() for word in argument.partition("="))
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
    """The curve of an accountant of ``dp_accounting`` that has composed a training, for adding or
    removing a record.
    """
    from paperlib.training.private.profile import accountant_points

    profile = profile_of_points(*accountant_points(accountant))
    return ClaimedCurve(f"the {type(accountant).__name__}", profile, is_add_remove=True)
