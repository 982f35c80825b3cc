"""Optimal output sets on PANORAMIA's scores: chosen on a part of the judged examples, judged on the rest."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from paperlib.audits.panoramia.game import AuditConfig, Flags
from paperlib.audits.panoramia.pools import Target
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.bounds import SelectionRule, fit_output_set, one_run_epsilon, ratio_scores
from paperlib.core import FloatArray, MembershipScores, RecallSearch, check_confidence

CHOSEN_FOR: dict[str, Literal["both", "members"]] = {
    "output set": "members",
    "output set chosen for both sides": "both",
}
EVERY_LEVEL = "output sets of every level"
_HALF, _QUARTER = 1 / 2, 1 / 4  # of the examples, to choose a set on, and to order scores by


def output_set_bounds(audits: TargetAudits) -> pd.DataFrame:
    """Output sets beside the searches over recall, on the same examples.

    Both tests guess "member" where the ratio of the two densities of the scores is high, wherever that is: a
    search over recall can only guess above a threshold.

    - "output set": the first half of the test part chooses the set whose guesses "member" alone have the best
      bound; the second half is judged, and needs no correction for a search. Beside it stands the set that
      would be best for guesses on both sides, as in its paper, of which "member" alone counts.
    - "output sets of every level": the first quarter estimates the ratio, and the rest is judged by the
      anytime search over its level.

    Guarantee:
        The bounds of one game hold together at the audits' confidence, as those of `audit_panoramia`: who of
        the judged examples is a member changes neither set nor order.

    Source:
        Output sets, Algorithm 1, with positive guesses only, as PANORAMIA's Propositions 1 and 2 require.
    """
    confidence = check_confidence(audits.config.confidence)
    rows: list[dict[str, Any]] = []
    for judged in audits.select("panoramia"):
        target = judged.target
        about = {"target": target.name, "null": target.kind == "null", "seed": judged.seed}
        rows += [{**about, **found} for found in _ways(judged, audits.config.searches, confidence)]
    return pd.DataFrame(rows)


def _ways(
    judged: TargetScores, searches: tuple[RecallSearch, ...], confidence: float
) -> Iterator[dict[str, Any]]:
    first, second = _cut(judged, _HALF)
    for way, guess in CHOSEN_FOR.items():
        c_lb, both = (
            set_bound(*fitted, *scores, (1 - confidence) / 2, guess=guess)
            for fitted, scores in zip(_labelled(first), _labelled(second), strict=True)
        )
        yield _row(way, second, {"c_lb": c_lb, "c_plus_eps_lb": both, "eps_tilde": both - c_lb})
    ordered = by_ratio(*_cut(judged, _QUARTER))
    yield _row(EVERY_LEVEL, ordered, ordered.row("anytime", confidence))
    for search in searches:
        yield _row(f"{search}, second half", second, second.row(search, confidence))
        yield _row(f"{search}, all", judged, judged.row(search, confidence))


def _row(way: str, part: TargetScores, found: Mapping[str, Any]) -> dict[str, Any]:
    bounds = {name: found[name] for name in ("c_lb", "c_plus_eps_lb", "eps_tilde")}
    return {"way": way, "examples": part.membership.size, **bounds}


def _labelled(scores: TargetScores) -> list[tuple[FloatArray, Flags]]:
    """Scores of baseline and attack, each with who is a member."""
    return [(scores.baseline, scores.membership), (scores.attack, scores.membership)]


def ratio_correlation(audits: TargetAudits, target: str) -> float:
    """Rank correlation of the estimated ratio with the attack's score, mean over a target's games.

    The nearer to 1, the less sets can gain on thresholds for the examples that they spend on learning.
    """
    parts = [_cut(one, _QUARTER) for one in audits.select("panoramia", target=target)]
    return float(np.mean([spearmanr(by_ratio(*part).attack, part[1].attack).statistic for part in parts]))


def simulated_bounds(*, repetitions: int = 5, examples: int = 840, seed: int = 0) -> pd.DataFrame:
    """`output_set_bounds` where the scores' densities are known; the baseline's scores are noise, so c is 0.

    - "higher scores": members' scores are those of the others, shifted up by one standard deviation.
    - "inner region": two members in five have scores in a narrow bump between the two bumps of all others.
    """
    drawn = []
    for name, attack in (("higher scores", _higher), ("inner region", _inner)):
        for game in range(repetitions):
            rng = np.random.default_rng(1000 * seed + game)
            flags = rng.random(examples) < 0.5
            scores = rng.normal(size=examples), attack(rng, flags)
            drawn.append(TargetScores(Target(name), "panoramia", game, *scores, flags))
    return output_set_bounds(TargetAudits(tuple(drawn), AuditConfig(train=2, validation=2, test=examples)))


def _higher(rng: np.random.Generator, member: Flags) -> FloatArray:
    return member + rng.normal(size=member.size)


def _inner(rng: np.random.Generator, member: Flags) -> FloatArray:
    outer = rng.normal(rng.choice([-2.0, 2.0], member.size), 0.6)
    return np.where(member & (rng.random(member.size) < 0.4), rng.normal(0, 0.3, member.size), outer)


def set_bound(
    scores: FloatArray,
    membership: Flags,
    judged_scores: FloatArray,
    judged: Flags,
    level: float,
    *,
    guess: Literal["both", "members"] = "members",
) -> float:
    """Bound of the guesses "member" inside a set fitted on other scores, nats; 0 where no guess is made.

    Scores and judged scores come with 1 or True for members; ``level`` is the bound's error, and ``guess`` as
    in `fit_output_set`.

    >>> import numpy as np
    >>> flags = np.arange(200) < 100
    >>> rng = np.random.default_rng(0)
    >>> round(set_bound(rng.normal(4.0 * flags), flags, rng.normal(4.0 * flags), flags, 0.025), 1)
    3.2
    """
    rule = SelectionRule(guess=guess)
    fitted = MembershipScores.from_labels(scores, membership)
    chosen = fit_output_set(fitted, confidence=1 - level, total=judged.size, rule=rule)
    guesses = chosen.guess(judged_scores) == 1
    if not guesses.any():
        return 0.0
    return float(one_run_epsilon(int(judged[guesses].sum()), int(guesses.sum()), confidence=1 - level))


def by_ratio(selection: TargetScores, judged: TargetScores) -> TargetScores:
    """The judged examples with each score replaced by the log-ratio that the selection estimates for it."""
    baseline, attack = (
        ratio_scores(MembershipScores.from_labels(*fitted), scores)
        for fitted, (scores, _) in zip(_labelled(selection), _labelled(judged), strict=True)
    )
    return replace(judged, baseline=baseline, attack=attack)


def _cut(judged: TargetScores, share: float) -> tuple[TargetScores, TargetScores]:
    """The first examples, and the rest; they are in random order."""
    at = int(share * judged.membership.size)
    names = ("baseline", "attack", "membership")
    rest = replace(judged, **{name: getattr(judged, name)[at:] for name in names})
    return judged.first(at), rest
