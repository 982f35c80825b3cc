"""Optimal output sets and learned orders beside PANORAMIA's searches over recall."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from paperlib.audits.features import audit_panoramia_features
from paperlib.audits.panoramia.game import AuditConfig, Flags
from paperlib.audits.panoramia.pools import Pool, Pools, Target
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.audits.panoramia.run import audit_pools
from paperlib.bounds import fit_output_set, one_run_epsilon
from paperlib.bounds.output_sets.choices import SelectionRule, ratio_scores
from paperlib.core import FloatArray, MembershipScores
from paperlib.core.options import RecallSearch

CHOSEN_FOR: dict[str, Literal["both", "members"]] = {
    "output set": "members",
    "output set chosen for both sides": "both",
}
EVERY_LEVEL = "output sets of every level"
_HALF = 1 / 2  # of the examples, to choose a set on
_QUARTER = 1 / 4  # of the examples, to order scores by


def output_set_bounds(audits: TargetAudits) -> pd.DataFrame:
    """Output sets beside the searches over recall, on the same scores.

    Guarantee:
        The two bounds of a game hold together at the confidence of the audits: who of the judged
        examples is a member changes neither set nor order. Guesses are "member" alone, as
        Propositions 1 and 2 require.

    Returns:
        A row for each game and way to bound it: target, null, seed, way, examples (their number)
            and the bounds c_lb, c_plus_eps_lb and eps_tilde, nats.
    """
    confidence = audits.config.confidence
    rows: list[dict[str, Any]] = []
    for game in audits.select("panoramia"):
        for way, scores, bounds in _ways(game, audits.config.searches, confidence):
            rows.append(
                {
                    "target": game.target.name,
                    "null": game.target.kind == "null",
                    "seed": game.seed,
                    "way": way,
                    "examples": scores.membership.size,
                    "c_lb": bounds["c_lb"],
                    "c_plus_eps_lb": bounds["c_plus_eps_lb"],
                    "eps_tilde": bounds["eps_tilde"],
                }
            )
    return pd.DataFrame(rows)


def _ways(
    game: TargetScores, searches: Sequence[RecallSearch], confidence: float
) -> Iterator[tuple[str, TargetScores, Mapping[str, Any]]]:
    """Each way to bound a game: its name, the examples that it judges, and its three bounds, nats,
    by column.
    """
    first, second = _cut(game, _HALF)
    for way, guess in CHOSEN_FOR.items():
        # Both bounds hold together where each may fail with half of the error.
        yield way, second, _set_bounds(first, second, (1 - confidence) / 2, guess)
    ordered = by_ratio(*_cut(game, _QUARTER))
    yield EVERY_LEVEL, ordered, ordered.row("anytime", confidence)
    for search in searches:
        yield f"{search}, second half", second, second.row(search, confidence)
        yield f"{search}, all", game, game.row(search, confidence)


def _set_bounds(
    selection: TargetScores,
    judged: TargetScores,
    level: float,
    guess: Literal["both", "members"],
) -> dict[str, float]:
    """Bounds in nats of an output set for the baseline and of one for the attack.

    Args:
        selection: Scores on which both sets are chosen.
        judged: Scores on which they are tested.
        level: Error of each bound, in (0, 1).
        guess: Whether a score in the set is guessed as a member alone, or by its side.

    Returns:
        "c_lb" of the generator, "c_plus_eps_lb" of generator and target, and "eps_tilde", the
            second less the first.
    """

    def bound(fitted: FloatArray, scores: FloatArray) -> float:
        """The bound in nats of a set fitted to the first scores and tested on the second."""
        return set_bound(
            fitted, selection.membership, scores, judged.membership, level, guess=guess
        )

    c_lb = bound(selection.baseline, judged.baseline)
    c_plus_epsilon_lb = bound(selection.attack, judged.attack)
    return {
        "c_lb": c_lb,
        "c_plus_eps_lb": c_plus_epsilon_lb,
        "eps_tilde": c_plus_epsilon_lb - c_lb,
    }


def ratio_correlation(audits: TargetAudits, target: str) -> float:
    """Spearman's rank correlation of an example's estimated log-ratio with the attack's score, mean
    over games of a target: near 1, output sets gain little over thresholds.
    """
    correlations = []
    for game in audits.select("panoramia", target=target):
        selection, judged = _cut(game, _QUARTER)
        ratios = by_ratio(selection, judged).attack
        correlations.append(spearmanr(ratios, judged.attack).statistic)
    return float(np.mean(correlations))


def simulated_bounds(*, repetitions: int = 5, examples: int = 840, seed: int = 0) -> pd.DataFrame:
    """`output_set_bounds` where the scores' densities are known, and the baseline's scores are
    noise.

    Args:
        repetitions: Games of each of the two kinds of scores.
        examples: Of a game, each a member by a fair coin.
        seed: Of the first game, in thousands.
    """
    games = []
    for name, attack in (("higher scores", _higher_scores), ("inner region", _inner_region)):
        for game in range(repetitions):
            rng = np.random.default_rng(1000 * seed + game)
            member = rng.random(examples) < 0.5
            noise = rng.normal(size=examples)
            scores = attack(rng, member)
            games.append(TargetScores(Target(name), "panoramia", game, noise, scores, member))
    # Nothing is trained here: the sizes of the parts for training and validation are not used.
    config = AuditConfig(train=2, validation=2, test=examples)
    return output_set_bounds(TargetAudits(tuple(games), config))


def _higher_scores(rng: np.random.Generator, member: Flags) -> FloatArray:
    """Normal scores, those of members higher by one standard deviation."""
    return member + rng.normal(size=member.size)


def _inner_region(rng: np.random.Generator, member: Flags) -> FloatArray:
    """Scores around -2 and 2, but 0.4 of the members' around 0, where no threshold can tell."""
    outer = rng.normal(rng.choice([-2.0, 2.0], member.size), 0.6)
    is_inner = member & (rng.random(member.size) < 0.4)
    return np.where(is_inner, rng.normal(0, 0.3, member.size), outer)


def set_bound(
    scores: FloatArray,
    membership: Flags,
    judged_scores: FloatArray,
    judged: Flags,
    level: float,
    *,
    guess: Literal["both", "members"] = "members",
) -> float:
    """Bound, nats, from guesses "member" inside a set that was fitted on other scores; 0 without a
    guess.

    Args:
        scores, membership: Examples on which the set is fitted, shape (n,) each.
        judged_scores, judged: Scores and membership of the examples that are guessed, shape (m,).
        level: Error of the bound.
        guess: "members" fits the best set for guesses "member", "both" the best one for guesses of
            both kinds. "Member" alone is counted in either case, as PANORAMIA's bound needs.
    """
    rule = SelectionRule(guess=guess)
    fitted = MembershipScores.from_labels(scores, membership)
    output_set = fit_output_set(fitted, confidence=1 - level, total=judged.size, rule=rule)
    guessed_members = output_set.guess(judged_scores) == 1
    if not guessed_members.any():
        return 0.0
    right = int(judged[guessed_members].sum())
    return float(one_run_epsilon(right, int(guessed_members.sum()), confidence=1 - level))


def by_ratio(selection: TargetScores, judged: TargetScores) -> TargetScores:
    """The judged examples with each score replaced by its log-ratio of members' to others'
    densities, nats, as the selection estimates them.
    """

    def ratios(fitted: FloatArray, scores: FloatArray) -> FloatArray:
        """The log-ratios of ``scores`` by densities of the selection's scores ``fitted``."""
        labelled = MembershipScores.from_labels(fitted, selection.membership)
        return ratio_scores(labelled, scores)

    return replace(
        judged,
        baseline=ratios(selection.baseline, judged.baseline),
        attack=ratios(selection.attack, judged.attack),
    )


def _cut(game: TargetScores, share: float) -> tuple[TargetScores, TargetScores]:
    """The first examples, and the rest; they are in random order."""
    count = int(share * game.membership.size)
    rest = replace(
        game,
        baseline=game.baseline[count:],
        attack=game.attack[count:],
        membership=game.membership[count:],
    )
    return game.first(count), rest


_MOST_COLUMNS = 100  # of an example's own numbers that a smooth model learns from


def learned_orders(pools: Pools, audits: TargetAudits, names: Sequence[str]) -> pd.DataFrame:
    """The judged games, and as many whole games of learned orders, which set nothing aside for
    training.

    Args:
        pools: Members and generated examples with the outputs of models.
        audits: Games on these pools.
        names: Targets.

    Returns:
        Means over games, a row for each target, audit and number m of examples judged: bounds
            c_lb, c_plus_eps_lb and eps_tilde (nats), and seconds for a game.

    Raises:
        ValueError: Pools of twins.
    """
    if pools.twins:
        raise ValueError(
            "pools: learned orders draw a whole game, which pools of twins do not allow"
        )
    trained = audits.table[audits.table["audit"] == "panoramia"]
    trained = trained.assign(audit="trained attack, " + trained["search"])
    tables: list[pd.DataFrame] = []
    for name in names:
        seconds = _seconds_to_play(pools, audits.config, name)
        tables.append(trained[trained["target"] == name].assign(seconds=seconds))
        learned = _learned_games(pools, audits.config, name)
        tables.append(learned.assign(target=name, audit="learned orders"))
    groups = pd.concat(tables).groupby(["target", "audit", "m"], sort=False)
    means = groups[["c_lb", "c_plus_eps_lb", "seconds"]].mean().reset_index()
    difference = (means["c_plus_eps_lb"] - means["c_lb"]).clip(lower=0)
    means.insert(list(means.columns).index("seconds"), "eps_tilde", difference)
    return means


def _seconds_to_play(pools: Pools, config: AuditConfig, name: str) -> float:
    """How long one game of a target takes, its attacks trained anew."""
    start = perf_counter()
    not_kept = replace(pools, key="")  # scores on pools without a key are not read from disk
    audit_pools(not_kept, replace(config, repetitions=1), targets=[name], audits=["panoramia"])
    return perf_counter() - start


def _learned_games(pools: Pools, config: AuditConfig, name: str) -> pd.DataFrame:
    """Learned orders on all members and generated examples: a row for each game with m, the number
    of examples judged, the bounds c_lb and c_plus_eps_lb (nats), and seconds.
    """
    pair = (pools.members, pools.generated)
    baseline = np.concatenate([_baseline(pool) for pool in pair])
    outputs = np.concatenate([_signed(pool.targets[name]) for pool in pair])
    membership = np.arange(len(baseline)) < len(pools.members)
    rows = []
    for seed in range(config.seed, config.seed + config.repetitions):
        start = perf_counter()
        result = audit_panoramia_features(
            baseline, outputs, membership, confidence=config.confidence, design="game", seed=seed
        )
        seconds = perf_counter() - start
        judged = result.members + result.nonmembers
        rows.append((judged, result.c_lb, result.c_plus_epsilon_lb, seconds))
    return pd.DataFrame(rows, columns=["m", "c_lb", "c_plus_eps_lb", "seconds"])


def _baseline(pool: Pool) -> FloatArray:
    """The helpers' columns, then the example's own numbers, unless they are too many."""
    columns = [_signed(values) for values in pool.helpers.values()]
    numbers = pool.examples.reshape(len(pool), -1)
    if numbers.dtype.kind in "biuf" and numbers.shape[1] <= _MOST_COLUMNS:
        columns.append(numbers)
    return np.column_stack([np.zeros((len(pool), 0)), *columns])


def _signed(outputs: FloatArray) -> FloatArray:
    """Outputs of a model, the loss in column 0 turned: higher means member."""
    return np.column_stack([-outputs[:, 0], outputs[:, 1:]])
