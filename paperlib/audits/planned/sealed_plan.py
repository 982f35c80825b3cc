"""What an audit will do, sealed before training, and a hash that shows that it did just that; and
what coins and plan say of one record.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast, get_args

from paperlib.audits.claimed import claimed_curve, curve_in_words
from paperlib.core import Coins
from paperlib.core.checks import check_choice, check_in, did_you_mean
from paperlib.core.sealed import sealed_hash, sealed_text
from paperlib.reading.sealed import read_sealed, write_sealed
from paperlib.report.audit.about import read_pairs

PlannedGuess = Literal["adaptive", "both", "members", "nonmembers"]
_FORMAT, _VERSION = "paperlib sealed plan", 1
_CHOICES = {
    "direction": ("higher", "lower"),
    "guess": get_args(PlannedGuess),
    "design": ("randomized",),
    "adjacency": ("add/remove",),
}
_NUMBERS = {
    "delta": "[0, 1)",
    "confidence": "(0, 1)",
    "claimed_epsilon": "[0, inf)",
    "limit": "[0, inf)",
}
_REQUIRED = {
    "coins": "the hash that `paperlib coins` printed (in Python coins.commitment)",
    "score": "the column of the scores in the file that you will audit",
    "direction": "which values of the score point to members, higher or lower",
}
_MADE = ("sealed", "salt")
_LONGEST = 2000  # characters of a text
_LONGEST_CLAIM = 20_000  # characters of a claim, whose pairs of epsilon and delta may be hundreds
_SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True, kw_only=True)
class SealedPlan:
    """What an audit will do, decided before training; `seal_plan` makes it.

    The audit follows the fields up to ``scores``. The others are shown, in the words of who sealed
    the plan; they are those that NIST SP 800-226 and registries of deployments ask for beside
    epsilon and delta.

    Attributes:
        coins: Hash of the coins, as `Coins.commitment` gives it.
        score: Column of the scores in the file that will be audited.
        direction: "higher" or "lower": which values of the score point to members.
        delta: As for `audit_one_run`, as ``confidence`` and ``guess`` (without "grid").
        design: "randomized", which is what coins tossed before training make an audit.
        adjacency: "add/remove": what that design speaks of.
        unit: What has a coin, such as "user"; empty for what the coins say.
        claimed_epsilon: Epsilon that the training is said to have, nats; None for no claim.
        limit: Epsilon above which the audit fails, nats; None for none.
        scores: Name of the file that will hold the scores, without folder; no plan is sealed where
            it exists.
        model, attack, mechanism, accountant, sampling, notes: Free text, such as how the score is
            computed, DP-SGD with its clipping and noise, the accountant with its version, and how
            batches are drawn.
        claimed: What has the trade-off curve that is tested as well, in words of `claimed_curve`,
            such as "gaussian(sigma=1.0, q=0.01, steps=1000)" or "points(0:0.3, 2:1e-5)"; empty for
            none.
        sealed: Day on which it was sealed (UTC).
        salt: Random text without which the hash tells nothing of the plan.
    """

    coins: str
    score: str
    direction: Literal["higher", "lower"]
    delta: float = 0.0
    confidence: float = 0.95
    guess: PlannedGuess = "adaptive"
    design: Literal["randomized"] = "randomized"
    adjacency: Literal["add/remove"] = "add/remove"
    unit: str = ""
    claimed_epsilon: float | None = None
    limit: float | None = None
    scores: str = ""
    model: str = ""
    attack: str = ""
    mechanism: str = ""
    accountant: str = ""
    sampling: str = ""
    notes: str = ""
    claimed: str = ""
    sealed: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    salt: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    @property
    def text(self) -> str:
        """All fields as the text that the hash is of."""
        return sealed_text(self._content())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan: published before training, it shows that no other plan was
        followed.
        """
        return sealed_hash(self.text)

    @property
    def seal(self) -> str:
        """What a report says of the plan."""
        return f"the plan sealed on {self.sealed}, SHA-256 {self.hash}"

    def follow(
        self, coins: Coins | None, options: Mapping[str, Any], *, named: Callable[[str], str] = str
    ) -> dict[str, Any]:
        """Options of the planned audit, by the names that `audit` and the command give them.

        Args:
            coins: Those that the audit uses, of which the plan names the hash.
            options: Options that somebody gave; those that the plan does not speak of are left out.
            named: How the message calls an option.

        Raises:
            ValueError: Other coins, another unit, or given options that differ, each in a line of
                its own.
        """
        if coins is None:
            raise ValueError(
                "plan: it names coins; give their file as well, with --coins (in Python coins=)"
            )
        if coins.commitment != self.coins:
            raise ValueError(
                f"plan: it names the coins {self.coins}, and those given are {coins.commitment}; "
                "bring the coins that were planned with"
            )
        if self.unit not in ("", coins.unit or "record"):
            raise ValueError(
                f"plan: its unit is {self.unit!r}, and what has a coin is "
                f"{coins.unit or 'record'!r}"
            )
        planned = {
            "kind": "scores" if self.direction == "higher" else "losses",
            "score_column": self.score,
            "delta": self.delta,
            "confidence": self.confidence,
            "guess": self.guess,
            "design": self.design,
            "claimed": self.claimed or None,
            "claimed_curve": None,
            "claimed_epsilon": self.claimed_epsilon,
            "fail_above": self.limit,
        }
        if self.scores:
            planned["scores"] = self.scores
        given = dict(options)
        table = given.get("claimed_curve")
        if table is not None and self.claimed:
            # A table of the planned pairs is the planned claim, whatever its file is called.
            given["claimed"] = curve_in_words(given.pop("claimed_curve"))
        lines = [f"plan: this is not what was planned on {self.sealed}:"]
        for name, value in given.items():
            if name in planned and planned[name] != value:
                lines.append(
                    f"  {named(name)}: planned {_shown(planned[name])}, given {_shown(value)}"
                )
        if len(lines) > 1:
            raise ValueError("\n".join(lines))
        return planned

    def _content(self) -> dict[str, Any]:
        return {"format": _FORMAT, "version": _VERSION, **self._held()}

    def _held(self) -> dict[str, Any]:
        """The fields by name; no empty ``claimed``, which plans did not always have."""
        held = asdict(self)
        if not self.claimed:
            del held["claimed"]
        return held

    def to_dict(self) -> dict[str, Any]:
        """Every field, and the hash."""
        return {**self._held(), "hash": self.hash}

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the sealed file, which only its owner can read; a ValueError where a file is
        there.
        """
        if Path(path).exists():
            raise ValueError(self._sealed_before(path, SealedPlan.load(path)))
        write_sealed(path, self._content())

    def _sealed_before(self, path: "str | PathLike[str]", first: "SealedPlan") -> str:
        """The error message of a file that holds the plan ``first`` already: in which fields this
        plan differs from it, if it does.
        """
        lines: list[str] = []
        for name in _fields():
            before, new = getattr(first, name), getattr(self, name)
            if before != new:
                lines.append(f"  {name}: {_shown(before)} is sealed, {_shown(new)} is new")
        if not lines:
            return f"{path}: was sealed on {first.sealed} as {first.hash}"
        why = "with another content, and a plan is sealed once:"
        return "\n".join([f"{path}: was sealed on {first.sealed} {why}", *lines])

    @classmethod
    def load(cls, path: "str | PathLike[str] | Mapping[str, Any]") -> "SealedPlan":
        """Read a sealed file, or its JSON as a mapping.

        Raises:
            ValueError: It is no sealed plan, of a later version, or its hash is not that of its
                content.
        """
        content = read_sealed(path, _FORMAT, _VERSION, by="`paperlib seal` and seal_plan(...).save")
        made: dict[str, Any] = {name: str(content.get(name, "")) for name in _MADE}
        left_out = {"format", "version", *_MADE}
        options = {name: value for name, value in content.items() if name not in left_out}
        name = "plan" if isinstance(path, Mapping) else str(path)
        plan = cls(**_checked(options, name), **made)
        if plan.text != sealed_text(content):  # or its hash would be called another one than it is
            raise ValueError(f"{name}: is not as `paperlib seal` writes it; seal the plan with it")
        return plan


def seal_plan(plan: "str | PathLike[str] | Mapping[str, Any]") -> SealedPlan:
    """Check a plan and seal it, before training.

    Guarantee:
        Whoever published the hash of the sealed plan cannot later show another plan with that hash.
        A hash tells neither when it was made nor how many other plans were sealed: publish one,
        before training, where others keep the date.

    Args:
        plan: Fields of `SealedPlan` but for ``sealed`` and ``salt``, as a mapping or a YAML file;
            ``coins``, ``score`` and ``direction`` are needed, and an empty one counts as left out.
            In place of ``claimed`` it may name ``claimed_curve``, a table with the columns epsilon
            and delta, beside the YAML file or here: the plan holds the pairs.

    Raises:
        ValueError: Unknown or missing fields and values that are not allowed, each in a line of its
            own; or the file named as ``scores`` exists, beside the YAML file or here.

    >>> plan = seal_plan({"coins": "0" * 64, "score": "loss", "direction": "lower", "limit": 3})
    >>> plan.limit, plan.guess, len(plan.hash)
    (3.0, 'adaptive', 64)
    """
    if isinstance(plan, Mapping):
        values, name, folder = dict(plan), "plan", Path()
    else:
        values, name, folder = read_pairs(Path(plan)), str(plan), Path(plan).parent
    table = values.pop("claimed_curve", None)
    if table:
        if values.get("claimed"):
            raise ValueError(f"{name}: claimed_curve: give it or claimed, not both")
        values["claimed"] = curve_in_words(folder / str(table))
    sealed = SealedPlan(**_checked(values, name))
    if sealed.scores and (folder / sealed.scores).exists():
        raise ValueError(
            f"{name}: {folder / sealed.scores} exists; a plan is sealed before there are scores"
        )
    return sealed


def _fields() -> list[str]:
    """Names of the fields that somebody chooses."""
    return [entry.name for entry in fields(SealedPlan) if entry.name not in _MADE]


def _shown(value: Any) -> str:
    """A field's value as a message shows it."""
    if value in (None, ""):
        return "none"
    text = f"{value:g}" if isinstance(value, float) else f"{value}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _checked(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Fields as a plan holds them, without empty ones; a ValueError, which begins with ``name``,
    with one line for each mistake: fields that are unknown, missing or not allowed.
    """
    filled = {str(key): value for key, value in values.items() if value not in (None, "")}
    names = _fields()
    allowed = f"; allowed are {', '.join(names)}"
    unknown = [key for key in filled if key not in names]
    problems = [f"{key}: unknown{did_you_mean(key, names) or allowed}" for key in unknown]
    problems += [f"{key}: missing; {what}" for key, what in _REQUIRED.items() if key not in filled]
    checked: dict[str, Any] = {}
    for key in (name for name in names if name in filled):
        try:
            checked[key] = _value(key, filled[key])
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n  ".join([f"{name}: cannot be sealed as it stands", *problems]))
    return checked


def _value(key: str, value: Any) -> Any:
    """The value of the field ``key``, a number or a text; a ValueError where it is not allowed."""
    if key in _NUMBERS:
        return check_in(_NUMBERS[key], key, value)
    if not isinstance(value, str):
        raise ValueError(f"{key}: expected text, got {value!r}")
    if key in _CHOICES:
        check_choice(key, value, _CHOICES[key])
    if key == "coins" and not re.fullmatch("[0-9a-f]{64}", value):
        raise ValueError(
            f"coins: expected the hash of the coins, 64 hexadecimal digits, got {value!r}"
        )
    if key == "claimed":
        claimed_curve(value)
    if key == "scores" and Path(value).name != value:
        raise ValueError(f"scores: expected the name of a file without its folder, got {value!r}")
    longest = _LONGEST_CLAIM if key == "claimed" else _LONGEST
    if len(value) > longest:
        raise ValueError(f"{key}: expected at most {longest} characters, got {len(value)}")
    return cast(str, value)


def record_facts(
    *, coins: Coins | None = None, plan: SealedPlan | None = None, unit: str = ""
) -> dict[str, Any]:
    """Fields of an `AuditResult`: unit, copies, and the published hashes of coins and plan.

    Args:
        coins: What told membership; they say what a unit is, and how often a canary was inserted.
        plan: What was followed.
        unit: What the rows of a record share, where no coins say it; "" for one row.
    """
    copies = 1
    if coins is not None:
        unit = coins.unit or ("canary" if coins.copies else "")
        copies = max(1, coins.copies)
    return {
        "unit": unit,
        "copies": copies,
        "coins": "" if coins is None else coins.commitment,
        "plan": "" if plan is None else plan.hash,
    }
