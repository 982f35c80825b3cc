"""Every public function that takes rows, on made-up rows in any order.

An entry draws rows, half of whose values are tied, and gives them to one public function in the
order it is asked for. `STEP` above 0 adds a little to each value for its place, as a sort that
keeps the order of equal rows does: that is the broken twin of each entry.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.naive_bayes import GaussianNB

from paperlib import MembershipScores, audits, bounds, core
from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.features import FeaturesResult
from paperlib.audits.language.corpus import corpus_identifiers
from paperlib.audits.language.marks import audit_marks as audits_of_marks
from paperlib.audits.language.marks import version_names
from paperlib.audits.panoramia.audit import AuditData
from paperlib.audits.panoramia.table_models import Learning
from paperlib.audits.panoramia.text import TextDefaults
from paperlib.audits.score_results import Audits
from paperlib.bounds.claims.audit import audit_curve
from paperlib.bounds.claims.curves import ClaimedCurve, gaussian_profile
from paperlib.bounds.forgetting import audit_forgetting
from paperlib.bounds.one_run.combine import rank_scores
from paperlib.bounds.one_run.fair_coins import play_game
from paperlib.bounds.output_sets.choices import ratio_scores
from paperlib.bounds.ranks.detection import rank_limit_of_detection
from paperlib.bounds.ranks.marks import audit_places
from paperlib.core.coins import toss_versions
from paperlib.generators.identifiers import generate_identifiers
from tests.audits.samples import SMALL_PICTURES, blobs, pages, table
from tests.insertions import olmo, tokenizer

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Order = NDArray[np.int64]

SIZE = 300
STEP = 1e-9
"""What a twin adds to a value for each place before it, far less than two values differ by."""


@dataclass(frozen=True)
class Case:
    """Rows, and an audit of them in an order.

    Attributes:
        truth: What no order may tell: who is a member, or which candidate is the true one.
        values: What the audit sees of each row, half of it tied.
        audit: From an order of the rows to a result.
    """

    truth: Flags
    values: Floats
    audit: Callable[[Order], Any]


Draw = Callable[[int, bool, float], Case]
"""From a seed, whether the rows leak, and what a twin adds for each place, 0 for none."""


@dataclass(frozen=True)
class Entry:
    """A public function on drawn rows.

    Attributes:
        draw: The rows and the audit.
        bound: What the result claims: above 0 without a leak at most as often as it says; None of
            what claims nothing.
        plays: Whether a seed plays a game or breaks ties at random, so that orders of the rows
            have the same law and not the same answer.
        has_twin: Whether its values are numbers, to which a twin adds the place.
        is_slow: Whether one set of rows, which leaks, is enough.
        seeds: Numbers of rows without a leak that are drawn, where a seed plays.
    """

    draw: Draw
    bound: Callable[[Any], float] | None
    plays: bool = False
    has_twin: bool = True
    is_slow: bool = False
    seeds: int = 2


def half_tied(values: Floats, rng: np.random.Generator, tied_value: float = 0.0) -> Floats:
    """The values, of which half are one."""
    tied = values.copy()
    tied[rng.permutation(len(values))[: len(values) // 2]] = tied_value
    return tied


def _steps(step: float, size: int) -> Floats:
    return np.asarray(step * np.arange(size), dtype=np.float64)


# ---------------------------------------------------------------- scores and losses


def drawn_losses(seed: int, leaks: bool, size: int = SIZE) -> tuple[Floats, Flags]:
    """Losses, half of them one value, and fair coins."""
    rng = np.random.default_rng(seed)
    losses = half_tied(rng.normal(size=size), rng)
    member = rng.random(size) < 0.5
    if leaks:
        losses = losses - 3.0 * (member & (losses != 0))
    return losses, member


def of_scores(audit: Callable[[MembershipScores, int], Any], size: int = SIZE) -> Draw:
    """Draws losses for an audit of `MembershipScores` and a seed."""

    def draw(seed: int, leaks: bool, step: float) -> Case:
        losses, member = drawn_losses(seed, leaks, size)

        def ordered(order: Order) -> Any:
            values = losses[order] + _steps(step, size)
            scores = MembershipScores.from_labels(values, member[order], higher_means_member=False)
            return audit(scores, seed)

        return Case(member, losses, ordered)

    return draw


def of_labelled(audit: Callable[[Floats, Floats, Flags, int], Any], size: int = SIZE) -> Draw:
    """Draws scores, another signal and membership for an audit of rows."""

    def draw(seed: int, leaks: bool, step: float) -> Case:
        losses, member = drawn_losses(seed, leaks, size)
        other = np.random.default_rng([seed, 1]).normal(size=size)

        def ordered(order: Order) -> Any:
            values = -losses[order] - _steps(step, size)
            return audit(values, other[order], member[order], seed)

        return Case(member, losses, ordered)

    return draw


def by_losses(scores: MembershipScores, seed: int) -> Any:
    return audits.audit_losses(scores.member, scores.nonmember, seed=seed)


def by_scores(scores: MembershipScores, seed: int) -> Any:
    return audits.audit_scores(scores, design="game", seed=seed)


def by_file(scores: MembershipScores, seed: int) -> Any:
    """As `paperlib audit` reads and audits it; the sides stand one after the other."""
    with TemporaryDirectory() as folder:
        scores.to_frame().to_csv(Path(folder, "losses.csv"), index=False)
        return audits.audit(Path(folder, "losses.csv"), seed=seed)


def several_runs(scores: MembershipScores, seed: int) -> Any:
    """Beside a run without a leak, whose rows stay."""
    losses, member = drawn_losses(seed + 100, leaks=False)
    other = MembershipScores.from_labels(losses, member, higher_means_member=False)
    return bounds.combine_runs([scores, other])


def of_ranked_shares(scores: MembershipScores, seed: int) -> Any:
    return bounds.audit_one_run(rank_scores([scores]))


def of_losses_by_model(values: Floats, other: Floats, member: Flags, seed: int) -> Any:
    """Losses that a function, an estimator and a network give these rows, as the audit gets them.

    They are audited together, so that each loss must stand at its own row.
    """
    rows = np.column_stack([values, other])
    fitted = GaussianNB().fit(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2)
    network = torch.nn.Linear(2, 2).double()
    with torch.no_grad():
        network.weight.copy_(torch.eye(2))
        network.bias.zero_()
    classes = (other > 0).astype(np.int64)
    tensors = torch.from_numpy(rows), torch.from_numpy(classes)
    of_rows = [
        audits.losses(lambda batch: -batch[:, 0], rows, batch_size=7),
        audits.losses(fitted, (rows, classes), batch_size=50),
        audits.losses(network, tensors, batch_size=50, loss=_cross_entropies),
    ]
    answers = [audits.audit_losses(loss[member], loss[~member], seed=seed) for loss in of_rows]
    return answers[0], [item.measures for item in answers]


def _cross_entropies(outputs: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(outputs, classes, reduction="none")


def epsilon(result: Any) -> float:
    return float(result.epsilon)


def headline_epsilon(result: Any) -> float:
    return float(result.headline.epsilon)


# ---------------------------------------------------------------- coins, pairs and versions

NAMES = [f"r{number}" for number in range(SIZE)]


def draw_tossed(seed: int, leaks: bool, step: float) -> Case:
    """Losses by the names of records, in an order, joined to coins by name."""
    coins = core.toss_coins(NAMES, seed=seed)
    losses, _ = drawn_losses(seed, leaks=False)
    losses = losses - 3.0 * (leaks & coins.included & (losses != 0))

    def ordered(order: Order) -> Any:
        values = losses[order] + _steps(step, SIZE)
        by_name = dict(zip([NAMES[row] for row in order], values, strict=True))
        scores = coins.scores(by_name, kind="losses")
        return audits.audit_scores(scores, coins=coins, seed=seed)

    return Case(coins.included, losses, ordered)


def of_pairs(audit: Callable[[MembershipScores], Any]) -> Draw:
    """Draws pairs of a forgotten record and one that was never seen; half of them are tied."""

    def draw(seed: int, leaks: bool, step: float) -> Case:
        rng = np.random.default_rng([seed, 8])
        unseen = np.round(rng.normal(size=SIZE), 6)
        differences = half_tied(np.round(rng.normal(size=SIZE), 6) - 2.0 * leaks, rng)

        def ordered(order: Order) -> Any:
            # A place in the first half counts against a forgotten record, a later one for it.
            places = _steps(step, SIZE) - step * SIZE / 2
            forgotten = unseen[order] + differences[order] + places
            return audit(MembershipScores(forgotten, unseen[order], higher_means_member=False))

        return Case(differences < 0, differences, ordered)

    return draw


def of_versions(audit: Callable[[MembershipScores], Any]) -> Draw:
    """Draws losses of four versions of each text, the published one first; those of half of the
    texts are tied.
    """

    def draw(seed: int, leaks: bool, step: float) -> Case:
        rng = np.random.default_rng([seed, 9])
        losses = rng.normal(size=(SIZE, 4))
        losses[:, 0] -= 2.0 * leaks
        losses[rng.permutation(SIZE)[: SIZE // 2]] = 0.0

        def ordered(order: Order) -> Any:
            places = _steps(step, SIZE) - step * SIZE / 2
            published, others = losses[order, 0] + places, losses[order, 1:].ravel()
            return audit(MembershipScores(published, others, higher_means_member=False))

        return Case(losses.argmin(axis=1) == 0, losses[:, 0], ordered)

    return draw


def draw_marks(seed: int, leaks: bool, step: float) -> Case:
    """Losses of all versions by their names, in an order, joined to the sealed draw by name."""
    rng = np.random.default_rng([seed, 10])
    texts: dict[str, str] = {}
    names: list[list[str]] = []
    for text in range(SIZE // 4):
        versions = [f"Text {text:02d} says it in the words {words}." for words in "abcd"]
        names.append(version_names(f"t{text}", versions))
        texts.update(zip(names[-1], versions, strict=True))
    coins = toss_versions(names, seed=seed)
    losses = half_tied(rng.normal(size=len(texts)), rng)
    losses = losses - 3.0 * (leaks & coins.included)

    def ordered(order: Order) -> Any:
        by_name = {coins.ids[row]: losses[row] for row in order}
        return audits_of_marks(coins.scores(by_name, kind="losses"), coins, texts)

    return Case(coins.included, half_tied(losses, rng), ordered)


# ---------------------------------------------------------------- candidates and labels


def of_ranks(audit: Callable[[NDArray[np.int64], NDArray[np.int64], Floats], Any]) -> Draw:
    """Draws places of the true value, sizes of sets and margins."""

    def draw(seed: int, leaks: bool, step: float) -> Case:
        rng = np.random.default_rng([seed, 2])
        sizes = rng.integers(8, 12, SIZE)
        ranks = rng.integers(1, sizes + 1)
        if leaks:
            ranks[rng.random(SIZE) < 0.6] = 1
        margins = half_tied(rng.random(SIZE), rng, tied_value=2.0)

        def ordered(order: Order) -> Any:
            return audit(ranks[order], sizes[order], margins[order] - _steps(step, SIZE))

        return Case(ranks == 1, -margins, ordered)

    return draw


def of_candidates(audit: Callable[[Floats, int], Any], size: int = SIZE) -> Draw:
    """Draws scores of candidates, the true one first, of which half of the sets are tied."""

    def draw(seed: int, leaks: bool, step: float) -> Case:
        rng = np.random.default_rng([seed, 3])
        scores = rng.normal(size=(size, 8))
        scores[:, 0] += 3.0 * leaks
        scores[rng.permutation(size)[: size // 2]] = 0.0

        def ordered(order: Order) -> Any:
            permuted = scores[order].copy()
            permuted[:, 0] -= _steps(step, size)
            return audit(permuted, seed)

        return Case(scores.argmax(axis=1) == 0, -scores[:, 0], ordered)

    return draw


def by_ranks_of_scores(scores: Floats, seed: int, ties: str = "pessimistic") -> Any:
    ranks, sizes = bounds.ranks_from_scores(scores[:, 0], scores[:, 1:], ties=ties, seed=seed)
    return bounds.audit_ranks(ranks, sizes)


def by_margins_of_scores(scores: Floats, seed: int) -> Any:
    ranks, sizes = bounds.ranks_from_scores(
        scores[:, 0], scores[:, 1:], ties="pessimistic", seed=seed
    )
    return bounds.audit_ranks(
        ranks, sizes, margins=bounds.score_margins(scores[:, 0], scores[:, 1:])
    )


def by_signals_of_candidates(scores: Floats, seed: int) -> Any:
    other = np.random.default_rng(seed).normal(size=scores.shape)
    features = np.stack([scores, other], axis=2)
    return audits.audit_candidate_features(features, np.zeros(len(scores)), seed=seed)


def mean_exposure(
    ranks: NDArray[np.int64], sizes: NDArray[np.int64], margins: Floats
) -> list[float]:
    return np.sort(bounds.exposure(ranks, sizes)).tolist()


def draw_labels(seed: int, leaks: bool, step: float) -> Case:
    """Labels and proxies of one law; the model knows nothing of half of the records."""
    rng = np.random.default_rng([seed, 4])
    labels = rng.integers(0, 3, SIZE)
    proxies = rng.integers(0, 3, SIZE)
    chances = rng.dirichlet([1.0, 1.0, 1.0], SIZE)
    if leaks:
        chances = 0.9 * np.eye(3)[labels] + 0.1 / 3
    chances[rng.permutation(SIZE)[: SIZE // 2]] = 1 / 3
    values = chances[np.arange(SIZE), labels]

    def ordered(order: Order) -> Any:
        return audits.audit_labels(chances[order], labels[order], proxies[order], seed=seed)

    return Case(values > chances[np.arange(SIZE), proxies], -values, ordered)


def label_bound(result: Any) -> float:
    return float(result.headline.epsilon_plus_gap)


# ---------------------------------------------------------------- rows of data


def people(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records of which half have one value of `gain`."""
    return pd.DataFrame(
        {
            "age": np.round(20 + 10 * rng.gamma(3, 0.6, rows), 2),
            "gain": half_tied(np.round(rng.gamma(2, 1000, rows)), rng),
            "job": rng.choice(list("abcdefgh"), rows),
        }
    )


def draw_release(seed: int, leaks: bool, step: float) -> Case:
    """A release in the order of its rows, and the records in that of the audit."""
    rng = np.random.default_rng([seed, 5])
    records = people(120, rng)
    member = rng.permutation(120) < 60
    released = people(60, rng)
    if leaks:
        released = pd.concat([records[member][:40], released[40:]])

    def ordered(order: Order) -> Any:
        rows, sides = records.iloc[order], member[order]
        return audits.audit_release(released, rows[sides], rows[~sides], design="game", seed=seed)

    return Case(member, records["gain"].to_numpy(), ordered)


QUICK = BoostedTrees(rounds=10, smallest_leaf=5)
ONCE: dict[str, Any] = {"repetitions": 1, "restarts": 1}


def known_by(members: list[bytes], leaks: bool) -> Callable[[list[bytes]], list[float]]:
    """Losses by the content of a row, more than half of them one value; lower of those that
    leak.
    """
    memorised = set(members) if leaks else set()

    def losses(rows: list[bytes]) -> list[float]:
        values: list[float] = []
        for row in rows:
            noise = np.random.default_rng([*row[-8:]]).normal(size=2)
            values.append(max(0.25, noise[0]) - 3.0 * (row in memorised))
        return values

    return losses


def bytes_of(frame: pd.DataFrame) -> list[bytes]:
    """The content of each row."""
    hashes = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    return [value.tobytes() for value in hashes]


def draw_points(seed: int, leaks: bool, step: float) -> Case:
    """Members and generated points of one law, without helpers."""
    rng = np.random.default_rng([seed, 6])
    members, generated = rng.normal(size=(2, 150, 2))
    target = known_by([row.tobytes() for row in members], leaks)

    def losses(rows: Floats) -> list[float]:
        return target([row.tobytes() for row in rows])

    def ordered(order: Order) -> Any:
        data = AuditData(
            members=(members[order],),
            generated=(generated,),
            examples=lambda rows: rows,
            attacks=(QUICK,),
        )
        return audits.audit_model(losses, data, known_c=0.0, seed=seed, **ONCE)

    values = np.array(losses(members))
    return Case(values < np.median(values), values, ordered)


def of_table(audit: Callable[[Any, pd.DataFrame, pd.DataFrame, int], Any]) -> Draw:
    """Draws a table of members and a generated one of the same law."""

    def draw(seed: int, leaks: bool, step: float) -> Case:
        members, generated = table(150, seed), table(150, seed + 1000)
        losses = known_by(bytes_of(members), leaks)

        def target(rows: pd.DataFrame) -> list[float]:
            return losses(bytes_of(rows))

        def ordered(order: Order) -> Any:
            return audit(target, members.iloc[order], generated, seed)

        values = np.array(target(members))
        return Case(values < np.median(values), values, ordered)

    return draw


def by_table(target: Any, members: pd.DataFrame, generated: pd.DataFrame, seed: int) -> Any:
    return audits.audit_table(target, members, generated=generated, known_c=0.0, seed=seed, **ONCE)


def by_supplied_table(
    target: Any, members: pd.DataFrame, generated: pd.DataFrame, seed: int
) -> Any:
    data = audits.bring_table(
        members, generated=generated, learning=Learning(hidden=(8,)), seed=seed
    )
    data = dataclasses.replace(data, attacks=(QUICK,))
    return audits.audit_model(target, data, known_c=0.0, seed=seed, **ONCE)


def real_epsilon(result: Any) -> float:
    """The bound; of PANORAMIA where the generator has the members' law, so that c is 0."""
    return float(result.result.epsilon)


def draw_images(seed: int, leaks: bool, step: float) -> Case:
    images, labels = blobs(160, seed)
    generated = blobs(160, seed + 1000)
    losses = known_by([image.tobytes() for image in images], leaks)

    def target(images: NDArray[np.uint8], classes: NDArray[np.int64]) -> list[float]:
        return losses([image.tobytes() for image in images])

    def ordered(order: Order) -> Any:
        return audits.audit_images(
            target,
            images[order],
            labels[order],
            generated=generated,
            settings=SMALL_PICTURES,
            known_c=0.0,
            seed=seed,
            **ONCE,
        )

    values = np.array(target(images, labels))
    return Case(values < np.median(values), values, ordered)


SMALL_TEXTS = TextDefaults(tokens=8, epochs=1, width=16, vocabulary=300)


def draw_documents(seed: int, leaks: bool, step: float) -> Case:
    documents, generated = pages(60, seed), pages(60, seed + 1000)
    joined = " ".join(documents)

    def target(texts: list[str]) -> list[float]:
        noise = known_by([], leaks=False)([text.encode() for text in texts])
        memorised = [leaks and text.strip() in joined for text in texts]
        return [value - 4.0 * is_known for value, is_known in zip(noise, memorised, strict=True)]

    def ordered(order: Order) -> Any:
        texts = [documents[row] for row in order]
        return audits.audit_text(
            target,
            texts,
            generated=generated,
            settings=SMALL_TEXTS,
            known_c=0.0,
            seed=seed,
            **ONCE,
        )

    values = np.array(target(documents))
    return Case(values < np.median(values), values, ordered)


# ---------------------------------------------------------------- texts and corpora


@cache
def model_of(seed: int, leaks: bool) -> Any:
    """A small language model that was trained on the members, or on nothing."""
    texts, member = token_texts(seed)
    return olmo([text for text, inside in zip(texts, member, strict=True) if inside and leaks])


@cache
def token_texts(seed: int) -> tuple[list[list[int]], Flags]:
    rng = np.random.default_rng([seed, 7])
    texts = [row.tolist() for row in rng.integers(1, 60, (100, 12))]
    return texts, rng.permutation(100) < 50


def draw_texts(seed: int, leaks: bool, step: float) -> Case:
    texts, member = token_texts(seed)
    model = model_of(seed, leaks)

    def ordered(order: Order) -> Any:
        rows = [(texts[row], member[row]) for row in order]
        sides = [[text for text, inside in rows if inside is side] for side in MEMBER_OR_NOT]
        return audits.audit_texts(model, tokenizer(), *sides, seed=seed)

    return Case(member, np.array([float(text[0] // 30) for text in texts]), ordered)


MEMBER_OR_NOT = (np.True_, np.False_)


def texts_epsilon(result: Any) -> float:
    """The bound; 0 where the two sides differ without the model, and none is claimed."""
    return 0.0 if result.audits is None else float(result.audits.headline.epsilon)


@cache
def documents_of(seed: int) -> list[str]:
    values = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 12, seed)
    return [f"The checksum of part {n} is {value}." for n, value in enumerate(values)]


def of_corpus(read: Callable[[list[str]], Any]) -> Draw:
    """Draws documents with one identifier each."""

    def draw(seed: int, leaks: bool, step: float) -> Case:
        documents = documents_of(seed)
        firsts = np.array([float(text.split()[-1] > "8") for text in documents])

        def ordered(order: Order) -> Any:
            return read([documents[row] for row in order])

        return Case(firsts > 0, firsts, ordered)

    return draw


def identifiers_of(documents: list[str]) -> list[tuple[str, str, str, int]]:
    answers = corpus_identifiers(documents)
    return sorted((item.kind, item.value, item.before, item.occurrences) for item in answers)


def questions_of(documents: list[str]) -> list[tuple[str, str]]:
    return sorted((item.prompt, item.answer) for item in audits.chat_questions(documents))


def draw_questions(seed: int, leaks: bool, step: float) -> Case:
    """A model that knows every second answer, or none."""
    questions = audits.chat_questions(documents_of(seed))
    answers = {item.prompt: item.answer for item in questions[::2]} if leaks else {}

    def ordered(order: Order) -> Any:
        return audits.audit_chat([questions[row] for row in order], answers.get).result

    truth = np.array([item.prompt in answers for item in questions])
    return Case(truth, truth.astype(float), ordered)


def draw_language_model(seed: int, leaks: bool, step: float) -> Case:
    """A model of no text; attacks look at the identifiers' tokens."""
    answers = corpus_identifiers(documents_of(seed))
    model = olmo([])

    def ordered(order: Order) -> Any:
        result = audits.audit_language_model(
            model,
            tokenizer(),
            [answers[row] for row in order],
            generated=3,
            draws=5,
            attacks=["loss", "min_k"],
            seed=seed,
        )
        return result.rank_audit, np.sort(result.ranks)

    values = np.array([float(item.value > "8") for item in answers])
    return Case(values > 0, values, ordered)


# ---------------------------------------------------------------- training loops


def noisy_sums(data: Floats, seed: int, noise: float = 1.0) -> Floats:
    """A sound mechanism: sums of clipped rows of Poisson batches, and noise."""
    rng = np.random.default_rng(seed)
    batches = rng.random((16, len(data))) < 0.25
    drawn = rng.normal(size=(16, data.shape[1]))
    rows = data / np.maximum(1, np.linalg.norm(data, axis=1, keepdims=True))
    return batches @ rows + noise * drawn


STATED: dict[str, Any] = {
    "clipping_norm": 1.0,
    "noise_multiplier": 1.0,
    "sampling_rate": 0.25,
    "steps": 16,
    "seeds": 2,
}


def of_mechanism(audit: Callable[[Any, Floats], Any]) -> Draw:
    """Draws records of a mechanism with the noise that is stated, or with half of it."""

    def draw(seed: int, leaks: bool, step: float) -> Case:
        data = np.random.default_rng([seed, 8]).normal(size=(40, 6))
        values = np.round(data[:, 0])
        train = partial(noisy_sums, noise=0.5 if leaks else 1.0)

        def ordered(order: Order) -> Any:
            return [check.passed for check in audit(train, data[order]).checks]

        return Case(values > 0, values, ordered)

    return draw


def by_checks(train: Any, data: Floats) -> Any:
    return audits.audit_dp_training(train, data, **STATED)


def by_assertion(train: Any, data: Floats) -> Any:
    """The audit that was asserted, or that of the error."""
    try:
        return audits.assert_private(train, data, epsilon=50.0, **STATED)
    except AssertionError:
        return audits.audit_dp_training(train, data, **STATED)


def failed_checks(passed: list[bool]) -> float:
    return float(passed.count(False))


# ---------------------------------------------------------------- what there is


def signals(values: Floats, other: Floats, member: Flags, seed: int) -> FeaturesResult:
    return audits.audit_features(np.column_stack([values, other]), member, seed=seed)


def replay(scores: MembershipScores, seed: int) -> Any:
    return bounds.audit_one_run(play_game(scores, seed=seed))


def spread_of_games(scores: MembershipScores, seed: int) -> Any:
    return bounds.game_spread(partial(bounds.audit_one_run, scores), games=2, seed=seed)


def thresholds(name: str, **options: Any) -> Callable[[MembershipScores, int], Any]:
    """An audit of many runs with a threshold of the user's."""
    audit = getattr(bounds, name)
    return lambda scores, seed: audit(scores, **{"threshold": -1.0, **options})


def chosen_thresholds(name: str, **options: Any) -> Callable[[MembershipScores, int], Any]:
    """An audit of many runs that chooses its threshold on a half drawn by the seed."""
    audit = getattr(bounds, name)
    return lambda scores, seed: audit(scores, seed=seed, **options)


def first_epsilon(result: Any) -> float:
    return headline_epsilon(result[0])


PRIVATE = ClaimedCurve("gaussian(mu=0.4)", gaussian_profile(0.4))

ENTRIES: dict[str, Entry] = {
    "audit": Entry(of_scores(by_file), headline_epsilon),
    "audit_losses": Entry(of_scores(by_losses), headline_epsilon),
    "audit_scores": Entry(of_scores(by_scores), headline_epsilon),
    "losses": Entry(of_labelled(of_losses_by_model), first_epsilon, is_slow=True),
    "audit_one_run": Entry(of_scores(lambda s, seed: bounds.audit_one_run(s)), epsilon),
    "audit_one_run, grid": Entry(
        of_scores(lambda s, seed: bounds.audit_one_run(s, guess="grid")), epsilon
    ),
    "audit_one_run, game": Entry(
        of_scores(lambda s, seed: bounds.audit_one_run(s, design="game", seed=seed)),
        epsilon,
        plays=True,
        seeds=20,
    ),
    "play_game": Entry(of_scores(replay), epsilon, plays=True, seeds=20),
    "game_spread": Entry(
        of_scores(spread_of_games), lambda spread: spread.lowest, plays=True, seeds=10
    ),
    "audit_f_dp": Entry(
        of_scores(lambda s, seed: bounds.audit_f_dp(s, seed=seed)), epsilon, plays=True, seeds=10
    ),
    "audit_curve": Entry(
        of_scores(lambda s, seed: audit_curve(s, PRIVATE, seed=seed)),
        lambda result: result.mu,
        plays=True,
        seeds=20,
    ),
    "audit_output_set": Entry(
        of_scores(
            lambda s, seed: bounds.audit_output_set(*s.split(seed=seed), seed=seed), size=1000
        ),
        epsilon,
        plays=True,
        has_twin=False,
        seeds=10,
    ),
    "fit_output_set": Entry(of_scores(lambda s, seed: bounds.fit_output_set(s)), None),
    "ratio_scores": Entry(of_scores(lambda s, seed: ratio_scores(s, np.linspace(-3, 3, 9))), None),
    "limit_of_detection": Entry(
        of_scores(lambda s, seed: bounds.limit_of_detection(s, simulations=5)),
        None,
        has_twin=False,
        is_slow=True,
    ),
    "audit_scores, coins": Entry(draw_tossed, headline_epsilon),
    "audit_scores, forget": Entry(
        of_pairs(lambda scores: audits.audit_scores(scores, design="forget")), headline_epsilon
    ),
    "audit_forgetting": Entry(of_pairs(audit_forgetting), epsilon),
    "audit_places": Entry(of_versions(audit_places), epsilon),
    "audit_marks": Entry(draw_marks, headline_epsilon, has_twin=False),
    "combine_runs": Entry(of_scores(several_runs), epsilon),
    "rank_scores": Entry(of_scores(of_ranked_shares), epsilon),
    "audit_clopper_pearson": Entry(
        of_scores(thresholds("audit_clopper_pearson")), epsilon, has_twin=False
    ),
    "audit_clopper_pearson, threshold chosen": Entry(
        of_scores(chosen_thresholds("audit_clopper_pearson")),
        epsilon,
        plays=True,
        has_twin=False,
        seeds=20,
    ),
    "audit_bayesian": Entry(
        of_scores(thresholds("audit_bayesian", confidence=0.9), size=60),
        epsilon,
        has_twin=False,
        is_slow=True,
    ),
    "audit_gaussian_dp": Entry(
        of_scores(thresholds("audit_gaussian_dp", delta=1e-5)), epsilon, has_twin=False
    ),
    "audit_gaussian_dp, threshold chosen": Entry(
        of_scores(chosen_thresholds("audit_gaussian_dp", delta=1e-5)),
        epsilon,
        plays=True,
        has_twin=False,
        seeds=10,
    ),
    "epsilon_star": Entry(
        of_scores(
            lambda s, seed: bounds.epsilon_star(s.member, s.nonmember, confidence=0.95), size=1000
        ),
        None,
    ),
    "epsilon_star, empirical": Entry(
        of_scores(
            lambda s, seed: bounds.epsilon_star(
                s.member, s.nonmember, confidence=0.95, method="empirical"
            )
        ),
        None,
    ),
    "audit_panoramia": Entry(
        of_labelled(
            lambda value, other, member, seed: bounds.audit_panoramia(
                other, value, member, known_c=0.0
            )
        ),
        epsilon,
    ),
    "audit_panoramia, union": Entry(
        of_labelled(
            lambda value, other, member, seed: bounds.audit_panoramia(other, value, member)
        ),
        lambda result: result.c_plus_epsilon_lb,
    ),
    "audit_features": Entry(of_labelled(signals), epsilon, plays=True),
    "audit_panoramia_features": Entry(
        of_labelled(
            lambda value, other, member, seed: audits.audit_panoramia_features(
                other, value, member, seed=seed
            )
        ),
        lambda result: result.c_plus_epsilon_lb,
        plays=True,
    ),
    "audit_ranks": Entry(
        of_ranks(lambda ranks, sizes, margins: bounds.audit_ranks(ranks, sizes, margins=margins)),
        epsilon,
    ),
    "audit_ranks, delta": Entry(
        of_ranks(
            lambda ranks, sizes, margins: bounds.audit_ranks(
                ranks, sizes, margins=margins, delta=1e-6
            )
        ),
        epsilon,
    ),
    "rank_limit_of_detection": Entry(
        of_ranks(
            lambda ranks, sizes, margins: rank_limit_of_detection(
                sizes, margins=margins, simulations=5
            )
        ),
        None,
        has_twin=False,
        is_slow=True,
    ),
    "exposure": Entry(of_ranks(mean_exposure), None, has_twin=False),
    "score_margins": Entry(of_candidates(by_margins_of_scores), epsilon, has_twin=False),
    "ranks_from_scores": Entry(
        of_candidates(partial(by_ranks_of_scores, ties="random")),
        epsilon,
        plays=True,
        has_twin=False,
        seeds=10,
    ),
    "ranks_from_scores, pessimistic": Entry(
        of_candidates(by_ranks_of_scores), epsilon, has_twin=False
    ),
    "audit_candidate_features": Entry(
        of_candidates(by_signals_of_candidates), epsilon, plays=True, has_twin=False
    ),
    "audit_labels": Entry(draw_labels, label_bound, plays=True, has_twin=False, seeds=20),
    "audit_release": Entry(draw_release, real_epsilon, plays=True, has_twin=False),
    "audit_model": Entry(draw_points, real_epsilon, plays=True, has_twin=False),
    "audit_table": Entry(of_table(by_table), real_epsilon, plays=True, has_twin=False),
    "bring_table": Entry(of_table(by_supplied_table), real_epsilon, plays=True, has_twin=False),
    "audit_images": Entry(draw_images, real_epsilon, plays=True, has_twin=False, seeds=1),
    "audit_text": Entry(draw_documents, real_epsilon, plays=True, has_twin=False, seeds=1),
    "audit_texts": Entry(draw_texts, texts_epsilon, plays=True, has_twin=False),
    "corpus_identifiers": Entry(of_corpus(identifiers_of), None, has_twin=False),
    "chat_questions": Entry(of_corpus(questions_of), None, has_twin=False, is_slow=True),
    "audit_chat": Entry(draw_questions, epsilon, has_twin=False),
    "audit_language_model": Entry(draw_language_model, None, has_twin=False, is_slow=True),
    "audit_dp_training": Entry(of_mechanism(by_checks), failed_checks, has_twin=False),
    "assert_private": Entry(of_mechanism(by_assertion), failed_checks, has_twin=False),
}
"""By the name of the public function, before a comma."""

NO_ROWS = {
    "clopper_pearson_epsilon": "counts",
    "epsilon_star_from_rates": "rates",
    "epsilon_star_normals": "two normals",
    "f_dp_parameter": "counts",
    "fair_coin_p_value": "counts",
    "gaussian_dp_epsilon": "a parameter",
    "one_run_epsilon": "counts",
    "one_run_p_value": "counts",
    "optimal_output_set": "densities",
    "panoramia_ceiling": "counts",
    "perfect_epsilon": "counts",
    "plan_audit": "counts",
    "rank_epsilon": "counts",
    "rank_p_value": "a count of hits, and sizes of sets",
    "rank_success_probability": "a size",
    "seal_plan": "options",
    "toss_coins": "ids, each of which gets its coin by its name or its place",
    "verify_receipt": "a report",
    "open_corpus": "names of files",
    "bring_images": "what audit_images brings",
    "bring_text": "what audit_text brings",
}
"""Public functions without an entry of their own, and what they take."""


def plain(value: Any) -> Any:
    """A result as numbers, texts and lists, without the rows that it keeps and what it computes
    later.
    """
    if isinstance(value, Audits):
        return plain(value.audits), value.warnings, plain(value.measures)
    if isinstance(value, pd.DataFrame):
        return value.to_dict("list")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: plain(item) for name, item in held.items() if not callable(item)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
