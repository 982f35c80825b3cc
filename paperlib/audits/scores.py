"""Every audit that membership scores or losses allow, each with what it can and cannot say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never, TypeAlias, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from paperlib.audits.claimed import tested_curve
from paperlib.audits.planned.sealed_plan import SealedPlan, record_facts
from paperlib.audits.score_results import Audits
from paperlib.bounds import (
    audit_one_run,
    audit_output_set,
    epsilon_star,
    game_spread,
    limit_of_detection,
)
from paperlib.bounds.claims.audit import audit_curve
from paperlib.bounds.claims.curves import ClaimedCurve
from paperlib.bounds.forgetting import audit_forgetting
from paperlib.bounds.one_run.audit import OneRunResult
from paperlib.core import AuditResult, Coins, MembershipScores, ScoreAudit
from paperlib.core.checks import check_choice, check_ids, find_ties, unit_means
from paperlib.core.direction import REFUSED_LEVEL, REVERSED_LEVEL, check_scores
from paperlib.core.facts import NAMES_GIVEN, Refusal, RefusalCode, reasons
from paperlib.core.options import Design, Guess, ScoreDesign
from paperlib.core.sealed import check_loaded
from paperlib.words import forgetting
from paperlib.words.audits import claimed_curves
from paperlib.words.audits import scores as words
from paperlib.words.claims import unit_sentence
from paperlib.words.coins import one_example, sealed_assumptions, seed_warnings
from paperlib.words.designs import tie_warnings

if TYPE_CHECKING:
    import pandas as pd

ById: TypeAlias = "Mapping[Any, Any] | pd.DataFrame"
"""Values by id: a mapping, or a table with a column of ids."""

Kind = Literal["scores", "losses"]

_MAIN = ScoreAudit(title=words.MAIN_TITLE, kind="lower bound", purpose=words.MAIN_PURPOSE)
_OUTPUT_SET = ScoreAudit(
    title=words.OUTPUT_SET_TITLE, kind="lower bound", purpose=words.OUTPUT_SET_PURPOSE
)
_EPSILON_STAR = ScoreAudit(
    title=words.EPSILON_STAR_TITLE, kind="measurement", purpose=words.EPSILON_STAR_PURPOSE
)

CLAIM = ScoreAudit(title=claimed_curves.TITLE, kind="test", purpose=claimed_curves.PURPOSE)


class ScoreOptions(TypedDict, total=False):
    """Options of `audit_scores`."""

    delta: float
    confidence: float
    guess: Guess
    design: ScoreDesign
    seed: int
    coins: Coins
    plan: SealedPlan
    claimed: object
    utility: Sequence[float]


def audit(
    data: "MembershipScores | str | PathLike[str] | ArrayLike | ById",
    nonmembers: "str | PathLike[str] | ArrayLike | None" = None,
    *,
    kind: Kind | None = None,
    score_column: str | None = None,
    member_column: str | None = None,
    id_column: str | None = None,
    unit: str | None = None,
    **options: Unpack[ScoreOptions],
) -> Audits:
    """Run every audit that scores or losses allow, whatever they come as.

    Args:
        data: `MembershipScores`; the path of a file, as `paperlib.io.read_scores` reads it; or the
            values of the members, shape (n_member,); with ``coins`` values by id, as for
            `Coins.scores`, or a file.
        nonmembers: Values of the non-members, shape (n_nonmember,), or the path of their file.
        kind: "losses" if lower values mean member, "scores" if higher ones do; needed for arrays,
            and for files whose columns do not tell.
        score_column, member_column, id_column: Columns of a file that has several, as for
            `paperlib.io.read_scores`.
        unit: Column of a file that says what one record is, such as a customer, whose values are
            averaged.
        options: ``delta``, ``confidence``, ``guess``, ``design``, ``seed``, ``coins``, ``plan``,
            ``utility``, ``claimed``, as for `audit_scores`; what is not given is as planned.

    Raises:
        ValueError: Values without a kind, options that do not go with the data, a file that cannot
            be read, or scores that do not allow the main audit.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> audit(rng.gamma(2, 1, 500), rng.gamma(8, 1, 500), kind="losses", design="game")
    Audits(ε ≥ 4.568 (δ = 0, confidence 0.95; 345 of 345 guesses right, 841 examples); 3 audits)
    """
    coins, plan = options.get("coins"), options.get("plan")
    check_loaded(coins, plan)
    if plan is not None:
        kind, score_column, options = _as_planned(plan, data, kind, score_column, options)
    columns = {
        "score_column": score_column,
        "member_column": member_column,
        "id_column": id_column,
        "unit_column": unit,
    }
    reading: tuple[str, ...] = ()
    if isinstance(data, str | PathLike):
        # Imported here, since it takes longer to load than arrays take to audit.
        from paperlib.io import read_scores

        if options.get("design") == "forget" and coins is None:
            raise ValueError(
                "coins: a file does not say which records are a pair; give the coins of "
                "`paperlib coins --forget`, or two arrays in the order of the pairs"
            )
        loaded = read_scores(data, cast(Any, nonmembers), kind=kind, coins=coins, **columns)
        scores, reading = loaded.scores, loaded.warnings
    elif any(columns.values()):
        raise ValueError(
            "score_column, member_column, id_column, unit: columns of a file; data is no path"
        )
    else:
        scores = _scores_of_values(data, nonmembers, kind, coins)
    audits = audit_scores(scores, unit=unit, **options)
    return replace(audits, reading=(*reading, *audits.reading))


def _as_planned(
    plan: SealedPlan,
    data: object,
    kind: Kind | None,
    score_column: str | None,
    options: ScoreOptions,
) -> tuple[Kind | None, str | None, ScoreOptions]:
    """Kind, column of scores and options of a sealed plan; a ValueError where any that somebody
    gave differs.
    """
    is_file = isinstance(data, str | PathLike)
    named = {
        "kind": kind,
        "score_column": score_column,
        "scores": Path(data).name if is_file else None,
    }
    chosen = {name: value for name, value in named.items() if value is not None}
    planned = plan.follow(options.get("coins"), {**chosen, **options})
    holds_kind = isinstance(data, MembershipScores)
    from_plan = {name: planned[name] for name in ("delta", "confidence", "guess")}
    return (
        None if holds_kind else planned["kind"],
        planned["score_column"] if is_file else None,
        cast(ScoreOptions, {**from_plan, **options}),
    )


def _scores_of_values(
    data: "MembershipScores | ArrayLike | ById",
    nonmembers: "str | PathLike[str] | ArrayLike | None",
    kind: Kind | None,
    coins: Coins | None,
) -> MembershipScores:
    """Scores of values that stand in memory; a ValueError where they do not say who is a member, or
    which values mean member.
    """
    if isinstance(data, MembershipScores):
        if nonmembers is not None or kind is not None:
            raise ValueError(
                "data: MembershipScores hold the non-members and their direction; give neither "
                "nonmembers nor kind beside them"
            )
        return data
    if coins is not None:
        if nonmembers is not None:
            raise ValueError(
                "coins: they tell who is a member; give the values of all records by id, alone"
            )
        return coins.scores(cast(ById, data), kind=str(kind))
    if nonmembers is None:
        raise ValueError(
            "nonmembers: needed where data holds values of members; give audit(members, "
            "nonmembers, kind='losses'), MembershipScores, or the path of a file"
        )
    if kind is None:
        raise ValueError(
            "kind: say what the values are: kind='losses' if lower values mean member, "
            "kind='scores' if higher ones do"
        )
    check_choice("kind", kind, Kind)
    return MembershipScores(
        cast(Any, data), cast(Any, nonmembers), higher_means_member=kind == "scores"
    )


def audit_losses(
    members: "ArrayLike | ById",
    nonmembers: ArrayLike | None = None,
    *,
    unit: tuple[Sequence[Any], Sequence[Any]] | None = None,
    **options: Unpack[ScoreOptions],
) -> Audits:
    """Run every audit that a model's losses allow, on records it was trained on and on others.

    Args:
        members: Losses of training records, shape (n_member,); lower means member. With ``coins``
            the losses of all records with a coin, by id.
        nonmembers: Losses of other records, shape (n_nonmember,); None with ``coins``.
        unit: Names of the unit of each member and of each non-member, such as users, whose losses
            are averaged: a unit is one record.
        options: As for `audit`; design "game" is for a split that nobody tossed coins for.

    Raises:
        ValueError: What `audit` refuses, and names of units that do not fit the losses.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> audits = audit_losses(rng.gamma(2, 1, 500), rng.gamma(8, 1, 500), design="game")
    >>> audits.condition
    'coins tossed by this audit chose who is shown: it speaks of replacing one record'
    """
    if unit is None:
        return audit(members, nonmembers, kind="losses", **options)
    scores = MembershipScores(cast(Any, members), cast(Any, nonmembers), higher_means_member=False)
    if len(unit) != 2 or any(np.ndim(names) != 1 for names in unit):
        raise ValueError(
            "unit: expected a pair, names for the members and for the others, got "
            f"{type(unit).__name__} of {len(unit)}"
        )
    check_ids(*unit, unit=True)
    member_means, _ = unit_means(scores.member, unit[0])
    nonmember_means, _ = unit_means(scores.nonmember, unit[1])
    scores = MembershipScores(member_means, nonmember_means, higher_means_member=False)
    return audit_scores(scores, unit=NAMES_GIVEN, **options)


def audit_scores(
    scores: MembershipScores,
    *others: Never,
    delta: float = 0.0,
    confidence: float = 0.95,
    guess: Guess = "adaptive",
    design: ScoreDesign = "randomized",
    seed: int = 0,
    unit: str | None = None,
    coins: Coins | None = None,
    plan: SealedPlan | None = None,
    utility: Sequence[float] | None = None,
    claimed: object = None,
) -> Audits:
    """Run every score-based audit of one set of scores.

    The first number is the answer to "how much does this training leak at least?". Each holds at
    its own confidence; no claim covers the largest, chosen after looking.

    Args:
        scores: Scores or losses of members and of non-members, with their direction.
        others: Nothing: a second array is refused with a hint at `MembershipScores`.
        delta: Delta of the (epsilon, delta)-DP to test, and of Epsilon* where it is above 0, in [0,
            1).
        confidence: Confidence level of every number, in (0, 1).
        guess: Guesses of the one-run audit, as in `audit_one_run`.
        design: "randomized" if fair coins decided membership before training; "game" draws a
            fair-coin subsample; "played" if fair coins decided after training who is shown;
            "forget", which coins of `toss_pairs` imply, if they decided in pairs of records which
            was trained on and then forgotten, as in `audit_forgetting`.
        seed: Seed of every random split, 0 or more.
        unit: What one record is where each score is the mean of several rows; it stands in every
            claim.
        coins: The coins that were tossed before training, where ``scores`` are those of
            `Coins.scores`; their unit and commitment stand in every result.
        plan: What was planned for these coins; options that differ are refused, and its hash and
            day stand in every result.
        claimed: A whole trade-off curve that is tested beside, as one hypothesis: a mechanism in
            words, such as "gaussian(sigma=1.0, q=0.01, steps=1000)", or an accountant, as for
            `claimed_curve`.
        utility: With "forget" the utility of the model before and after forgetting.

    Returns:
        The audits, the main one first. Epsilon* needs losses and is left out for scores.

    Raises:
        ValueError: Arrays in place of `MembershipScores`, or scores that do not allow the main
            audit: the message says what to do.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = MembershipScores(rng.normal(3, 1, 500), rng.normal(0, 1, 500))
    >>> audits = audit_scores(scores)
    >>> [audit.kind for audit in audits]
    ['lower bound', 'lower bound']
    >>> print(audits.headline.headline)
    ε ≥ 4.179 (δ = 0, confidence 0.95; 430 of 431 guesses right, 1000 examples)
    """
    unsorted = check_scores("scores", scores, *others)
    curve = tested_curve(claimed, plan)
    check_choice("design", design, ScoreDesign)
    check_loaded(coins, plan)
    if design == "forget" or (coins is not None and coins.forget):
        _check_pairs(unsorted, design, guess, unit, coins, plan)
        if curve is not None:
            raise ValueError(
                "claimed: an audit of forgetting tests no trade-off curve; leave it out"
            )
        return _forgetting(unsorted, coins, delta, confidence, utility)
    if utility is not None:
        raise ValueError('utility: belongs to an audit of forgetting, design="forget"')
    _check_followed(unsorted, coins, plan, unit, delta, confidence, guess, design)
    if coins is not None:
        unit = coins.unit or None
    reading: tuple[str, ...] = ()
    if unit is None:
        ties = find_ties("scores", unsorted.member, unsorted.nonmember)
        reading = tie_warnings(ties)
    reading += rounded(unsorted)
    if coins is not None:
        reading += seed_warnings(coins)
    audits = audits_of(unsorted, curve, guess, delta, confidence, design, seed)
    example = ""
    if coins is not None:
        example = one_example(coins)
    elif unit:
        example = unit_sentence(unit)
    assumptions = sealed_assumptions(coins, plan)
    facts = record_facts(coins=coins, plan=plan, unit=unit or "")
    stated = tuple(audit.with_claim(example, *assumptions, **facts) for audit in audits)
    return Audits(unsorted, stated, design, reading=reading, plan=plan, coins=coins, seed=seed)


def audits_of(
    unsorted: MembershipScores,
    curve: ClaimedCurve | None,
    guess: Guess,
    delta: float,
    confidence: float,
    design: Design,
    seed: int,
) -> list[ScoreAudit]:
    """The audits of `audit_scores`, the main one first, of scores whose records were checked.

    Args:
        unsorted: The scores, in any order.
        curve: A claimed trade-off curve to test beside; None for none.
        guess, delta, confidence, design, seed: As for `audit_scores`.

    Raises:
        ValueError: Scores that do not allow the main audit.
    """
    # Sorted, so that the order of the rows tells nothing and changes neither a game nor a split.
    scores = MembershipScores(
        np.sort(unsorted.member),
        np.sort(unsorted.nonmember),
        higher_means_member=unsorted.higher_means_member,
    )
    options: dict[str, Any] = {
        "delta": delta,
        "confidence": confidence,
        "design": design,
        "seed": seed,
    }
    main = _main_result(scores, guess=guess, **options)
    is_reversed = any(reason.code == RefusalCode.REVERSED for reason in main.refusals)
    audits = [replace(_MAIN, result=main)]
    if curve is not None:
        result = audit_curve(scores, curve, confidence=confidence, design=design, seed=seed)
        audits.append(replace(CLAIM, result=result))
    audits.append(
        _tried(
            _OUTPUT_SET,
            lambda: audit_output_set(*scores.split(seed=seed), **options),
            is_reversed=is_reversed,
        )
    )
    if not scores.higher_means_member:
        star = partial(_epsilon_star, scores, delta, confidence)
        audits.append(_tried(_EPSILON_STAR, star, is_reversed=is_reversed))
    return audits


def _check_pairs(
    scores: MembershipScores,
    design: ScoreDesign,
    guess: Guess,
    unit: str | None,
    coins: Coins | None,
    plan: SealedPlan | None,
) -> None:
    """Refuse (ValueError) options that an audit of forgetting does not have, and coins that are not
    those of these pairs.
    """
    check_loaded(coins, plan)
    if plan is not None:
        raise ValueError("plan: an audit of forgetting follows no sealed plan yet; leave it out")
    if guess != "adaptive" or unit is not None:
        raise ValueError("guess, unit: an audit of forgetting has neither; leave them out")
    if coins is None:
        return
    if not coins.forget or design not in ("randomized", "forget"):
        raise ValueError(
            'coins: design "forget" goes with the coins of pairs, of `paperlib coins --forget` or '
            f"toss_pairs, and no other design does; got {design!r}"
        )
    if 2 * scores.member.size != len(coins.ids) or len(scores) != len(coins.ids):
        raise ValueError("coins: for another number of records; use coins.scores(...)")


def _forgetting(
    scores: MembershipScores,
    coins: Coins | None,
    delta: float,
    confidence: float,
    utility: Sequence[float] | None,
) -> Audits:
    """The audit of forgetting, and beside it each of its two directions; ``utility`` is as for
    `audit_scores`.
    """
    result = audit_forgetting(scores, delta=delta, confidence=confidence, utility=utility)
    result = replace(result, refusals=reasons(equal_scores(scores)))
    main = ScoreAudit(
        title=forgetting.MAIN_TITLE,
        kind="lower bound",
        purpose=forgetting.MAIN_PURPOSE,
        result=result,
    )
    audits = [main]
    for title, direction in zip(forgetting.TITLES, result.directions, strict=True):
        audits.append(replace(main, title=title, purpose=forgetting.PURPOSE, result=direction))
    reading = rounded(scores)
    if coins is not None:
        reading += seed_warnings(coins)
    facts = record_facts(coins=coins, plan=None, unit="")
    claimed = tuple(
        audit.with_claim("", *sealed_assumptions(coins, None), **facts) for audit in audits
    )
    return Audits(scores, claimed, "forget", reading=reading, coins=coins)


def _check_followed(
    scores: MembershipScores,
    coins: Coins | None,
    plan: SealedPlan | None,
    unit: str | None,
    delta: float,
    confidence: float,
    guess: Guess,
    design: Design,
) -> None:
    """Refuse (ValueError) options other than planned, and coins that are used with another design
    or unit than theirs, or whose numbers of members and records are not those of the scores.
    """
    check_loaded(coins, plan)
    if plan is not None:
        used = {
            "delta": delta,
            "confidence": confidence,
            "guess": guess,
            "design": design,
            "kind": "scores" if scores.higher_means_member else "losses",
        }
        plan.follow(coins, used)
    if coins is not None:
        coins.check_alone(design, unit)
        same_members = scores.member.size == int(coins.included.sum())
        if not same_members or len(scores) != len(coins.ids):
            raise ValueError(
                "coins: for another number of members or of records; use coins.scores(...)"
            )


def _main_result(
    scores: MembershipScores, *, guess: Guess, design: Design, seed: int, **options: Any
) -> OneRunResult:
    """The result of `audit_one_run` with these options, and what needs a look beyond it: refusals
    of equal scores and of the other direction, a note on other games where one was played, and the
    limit of detection, which is computed where it is asked for.
    """
    bound = partial(audit_one_run, scores, guess=guess, **options)
    result = bound(design=design, seed=seed)
    refusals = reasons(*result.refusals, equal_scores(scores))
    if result.epsilon == 0 and not result.refusals:
        other = _other_direction(scores, guess, design, seed, options["delta"])
        refusals = reasons(*refusals, other)
    notes = result.notes
    if design == "game":
        notes = (*notes, f"{game_spread(bound, seed=seed)}.")
    detection = None
    if guess != "grid":
        limit = partial(limit_of_detection, scores, guess=guess, **options)
        detection = partial(limit, design=design, seed=seed)
    return replace(result, refusals=refusals, notes=notes, _limit=detection)


def equal_scores(scores: MembershipScores) -> Refusal | None:
    """A refusal where all scores are one value; None elsewhere, and for scores of 0 or of 1 alone,
    higher for members, which may say whether a guess was right.
    """
    values = np.unique(scores.pooled()[0] + 0.0)  # no -0
    if values.size > 1 or (scores.higher_means_member and values[0] in (0, 1)):
        return None
    return words.equal_scores(float(values[0]))


def rounded(scores: MembershipScores) -> tuple[str, ...]:
    """A warning where more than half of the scores are one value, of three or more that there are:
    they may have been rounded. No warning elsewhere.
    """
    values, times = np.unique(scores.pooled()[0] + 0.0, return_counts=True)  # no -0
    if values.size <= 2 or 2 * times.max() <= len(scores):
        return ()
    share = float(times.max() / len(scores))
    return (words.rounded(share, float(values[times.argmax()])),)


def _other_direction(
    scores: MembershipScores, guess: Guess, design: Design, seed: int, delta: float
) -> Refusal | None:
    """The refusal of scores whose other direction shows a leak with error `REFUSED_LEVEL`, or the
    doubt, with error `REVERSED_LEVEL`; None where it shows none.

    It is asked where the direction as given shows nothing and nothing else is refused: a leak of
    few records leaves the AUC, by which reversed scores are seen otherwise, as it is. The other
    arguments are those of the audit.
    """
    mirrored = replace(scores, higher_means_member=not scores.higher_means_member)
    # What it shows is no result: a direction that is chosen after a look has no confidence.
    bound = partial(audit_one_run, mirrored, delta=delta, guess=guess, design=design, seed=seed)
    if bound(confidence=1 - REVERSED_LEVEL).epsilon == 0:
        return None
    return words.other_direction(is_refused=bound(confidence=1 - REFUSED_LEVEL).epsilon > 0)


def _tried(audit: ScoreAudit, run: Callable[[], AuditResult], *, is_reversed: bool) -> ScoreAudit:
    """The audit with the result of ``run`` or, where that raises a ValueError, with its message as
    the reason why these scores do not allow it; a reversed direction is a reason, too.
    """
    # It would look at both ends of the scores, and show what the other direction gives.
    if is_reversed:
        return replace(audit, refused=words.SETTLE_DIRECTION)
    try:
        return replace(audit, result=run())
    except ValueError as error:
        return replace(audit, refused=str(error))


def _epsilon_star(losses: MembershipScores, delta: float, confidence: float) -> AuditResult:
    """Epsilon* at the user's delta, or at its own default where that is 0; a note says which."""
    chosen = delta if delta > 0 else None
    results = epsilon_star(losses.member, losses.nonmember, delta=chosen, confidence=confidence)
    star = results.trusted
    used = words.delta_of_epsilon_star(star.delta, star.n_train, is_default=chosen is None)
    return replace(star, notes=(used, *star.notes))
