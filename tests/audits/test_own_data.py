"""What users have: a target and members, and nothing else; a generator that copies is caught."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits import audit_images, audit_text
from paperlib.audits.panoramia.audit import YOURS, AuditData, audit_model
from paperlib.audits.panoramia.images import bring_images
from paperlib.audits.panoramia.memorization import copies, near_duplicates
from paperlib.audits.panoramia.pools import SYNTHETIC
from paperlib.audits.panoramia.results import TargetScores
from paperlib.audits.panoramia.table import bring_table
from paperlib.audits.panoramia.table_models import Learning
from paperlib.audits.panoramia.text import TextDefaults, bring_text
from paperlib.bounds.one_run.fair_coins import coin_warnings
from paperlib.core.checks import one_of_each
from tests.audits.samples import SMALL_PICTURES, blobs, pages, table
from tests.refusals import refused

LEARNING = Learning(hidden=(8,))
ONCE = {"repetitions": 1, "restarts": 1}


def knows(members, certain=True):
    """A target whose loss is low exactly for its training rows, or for nobody."""
    known = set(map(tuple, members.to_numpy())) if certain else set()

    def target(rows):
        hit = np.array([tuple(row) in known for row in rows.to_numpy()])
        places = pd.util.hash_pandas_object(rows, index=False) / 2.0**64  # noise that a row keeps
        return ndtri(places.clip(1e-9, 1 - 1e-9).to_numpy()) - 3 * hit

    return target


def data_of(members, **options):
    """Data whose attack is quick."""
    quick = BoostedTrees(rounds=20, smallest_leaf=10)
    return replace(bring_table(members, learning=LEARNING, **options), attacks=(quick,))


@pytest.fixture(scope="module")
def beside():
    """A table with generated and real non-members, without a label."""
    return data_of(table(), generated=table(seed=5), nonmembers=table(seed=6))


def test_a_table_and_a_target_are_enough():
    members = table()
    data = data_of(members, label="label", epochs=2)
    audit = audit_model(knows(members), data, **ONCE)
    assert audit.result.epsilon_tilde > 0.3
    assert any("check it with a null model" in text for text in audit.result.assumptions)
    assert audit.real is None
    assert audit.null is None
    assert audit.headline.endswith("; null not checked")
    assert audit_model(knows(members, certain=False), data, **ONCE).result.epsilon_tilde == 0
    rng = np.random.default_rng(0)  # without any model beside the members
    points = {"members": (rng.normal(size=(300, 2)),), "generated": (rng.normal(size=(300, 2)),)}
    data = AuditData(**points, examples=lambda rows: rows, attacks=(BoostedTrees(rounds=20),))
    assert (
        audit_model(lambda rows: np.sin(1e4 * rows[:, 0]), data, **ONCE).result.epsilon_tilde < 0.5
    )
    refused("call model.eval", audit_model, lambda rows: rng.normal(size=len(rows)), data, **ONCE)


def test_the_generator_learns_from_other_rows_than_those_audited_and_is_warned_of_where_it_copies():
    members = table().assign(number=np.arange(600))

    class Copier:
        def fit(self, rows):
            self.rows = rows
            return self

        def sample(self, n, seed):
            return self.rows.sample(n, replace=True, random_state=seed).reset_index(drop=True)

    copier = Copier()
    data = data_of(members, generator=copier)
    (audited,) = data.members
    assert len(copier.rows) == 240
    assert not set(copier.rows["number"]) & set(audited["number"])
    assert any(
        "memorises" in text for text in audit_model(knows(members), data, **ONCE).result.warnings
    )


def test_generated_rows_and_images_are_halved_between_helper_and_audit():
    data = data_of(table(), label="label", generated=table(seed=5), epochs=1)
    assert (len(data.members[0]), len(data.generated[0])) == (600, 300)
    assert list(data.helpers) == [SYNTHETIC]
    data = bring_images(*blobs(), SMALL_PICTURES)
    assert len(data.members[0]) == len(data.generated[0]) == 96
    assert list(data.helpers) == [SYNTHETIC]


def test_leaks_of_images_and_texts_are_found_and_their_null_is_trained_by_what_takes_them():
    images, labels = blobs(400)

    def train_images(given, classes, seed):
        assert given.shape[1:] == (1, 4, 4)
        assert len(given) == len(classes)
        known = {image.tobytes() for image in given}
        return lambda shown, classes: [-4.0 * (image.tobytes() in known) for image in shown]

    options = {"settings": SMALL_PICTURES, "train_again": train_images, **ONCE}
    audit = audit_images(train_images(images, labels, 0), images, labels, **options)
    assert (audit.result.c_plus_epsilon_lb > 1, audit.null.games) == (True, 1)

    def train_texts(texts, seed):
        joined = " ".join(texts)
        return lambda asked: [-4.0 * (text in joined) for text in asked]

    documents = pages(60, 1)
    small = TextDefaults(tokens=8, epochs=1, width=16, vocabulary=300)
    options = {"settings": small, "train_again": train_texts, **ONCE}
    audit = audit_text(train_texts(documents, 0), documents, **options)
    assert (audit.result.c_plus_epsilon_lb > 1, audit.null.games) == (True, 1)


def test_real_nonmembers_give_a_bound_on_replacing_an_example(beside):
    audit = audit_model(knows(table()), beside, **ONCE)
    assert audit.real.epsilon > 0.3
    assert "replacing one example" in audit.real.claim
    assert not any("before training" in text for text in audit.real.assumptions)
    assert "coins tossed by this audit" in audit.real.condition
    assert "come from one distribution" in audit.real.assumptions[0]
    flags = np.arange(200) < 130  # fair coins give this less often than once in 10,000
    shown = TargetScores(YOURS, "rm_rn", 0, np.empty(0), flags.astype(float), flags)
    assert coin_warnings(130, 70, "played")
    assert shown.one_run("anytime", 0.95).warnings == (), (
        "no doubt about the coins of the audit's own game"
    )


@pytest.mark.parametrize(
    "options", [{"delta": 1e-3, "gamma": 1e-4}, {"delta": 1e-3, "known_c": 0.0}]
)
def test_the_table_of_games_has_the_numbers_of_the_claim(beside, options):
    """With the delta, gamma and c of the audit; a known c gives a lower bound and needs no null."""
    audit = audit_model(knows(table()), beside, **options, **ONCE)
    rows, known = audit.games.set_index("audit"), "known_c" in options
    assert rows.loc["panoramia", "c_plus_eps_lb"] == audit.result.c_plus_epsilon_lb > 0.3
    assert rows.loc["panoramia", "ceiling"] == audit.result.ceiling
    assert rows.loc["rm_rn", "eps"] == audit.real.epsilon
    assert (audit.real.delta, audit.result.delta) == (1e-3, 1e-3)
    assert audit.result.epsilon == (audit.result.c_plus_epsilon_lb if known else None)
    assert any("null model" in text for text in audit.result.assumptions) != known
    assert audit.headline.endswith("confidence 0.95)") == known
    assert any("without a label" in text for text in audit.result.warnings) != known


def test_tables_that_cannot_be_audited_are_refused_and_missing_values_named():
    for options, words in (
        ({"label": "colour"}, "label: expected one of the columns"),
        ({"label": "size"}, "label: expected 2 to 100 different values in 'size'"),
        (
            {"generated": table()[["size"]]},
            r"generated: expected columns \['size', 'other', 'word', 'la",
        ),
        ({"share": 1.0}, "share: expected a number in"),
    ):
        refused(words, bring_table, table(200), **{"label": "label", "epochs": 1, **options})
    holes = table().assign(size=[np.nan, *range(599)], word=[None, None, *["a"] * 598])
    named = r"missing .* columns 'size' \(1\), 'word' \(2\); give them"
    refused(f"^members: {named}", bring_table, holes, label="label")
    refused(
        f"^nonmembers: {named}",
        bring_table,
        table(),
        nonmembers=holes,
        generated=table(),
        label="label",
    )


def test_losses_that_cannot_be_audited_are_named_and_so_are_too_few_members(beside):
    few = data_of(table(20), generated=table(seed=3))
    for data, target, words in (
        (
            beside,
            lambda rows: [0.0, 1.0, 2.0],
            r"target: expected one loss for each of 600 .*got \(3,\)",
        ),
        (
            beside,
            lambda rows: np.full(len(rows), np.nan),
            "target 'yours': losses: 600 of 600 rows hold NaN",
        ),
        (few, knows(table()), "members: expected 30 or more"),
    ):
        refused(words, audit_model, target, data)


def test_images_and_texts_that_cannot_be_audited_are_refused():
    images, labels = np.zeros((5, 1, 4, 4), np.uint8), np.zeros(5, int)
    other = {"generated": (np.zeros((5, 1, 8, 8), np.uint8), labels)}
    refused("documents: expected texts; write chats as texts", bring_text, [{"messages": []}] * 9)
    refused("images: expected uint8 of shape", bring_images, images[:, 0], labels)
    refused(r"got float64 \(5, 1, 4, 4\)", bring_images, images.astype(float), labels)
    refused("images: expected 5 labels", bring_images, images, [0, 1])
    refused("whole numbers of 0 or more", bring_images, images, labels - 1)
    refused(
        r"generated: expected images of shape \(1, 4, 4\)", bring_images, images, labels, **other
    )
    long = TextDefaults(tokens=64, vocabulary=300)
    refused("chunks of 64 tokens, 30 are needed", bring_text, pages(4, 1), long)


def real(seed, size=400):
    return np.random.default_rng(seed).normal(size=(size, 4))


def test_generated_rows_that_are_members_are_named_but_not_what_repeats_in_any_table():
    members, few = table(), table()[["size"]].round(0)
    for given, part, warned in (
        (members, members[:20], True),
        (members, members[:1], False),
        (few, few, False),
    ):
        drawn = pd.concat([part, table(seed=5)[list(given)]], ignore_index=True)
        assert (
            any("are members" in text for text in data_of(given, generated=drawn).warnings)
            == warned
        )


def test_copies_near_ones_and_repeats_are_caught_but_not_fresh_draws_nor_what_is_common():
    trained = real(1)
    result = copies(np.concatenate([real(0), trained[:40]]), trained, real(2))
    assert result.copied == pytest.approx(40 / 440)
    assert "memorises" in result.warnings[0], "few copies among many fresh draws"
    result = copies(trained + 1e-3, trained, real(2))
    assert result.copied == 0
    assert result.nearer > 0.95
    assert "memorises" in result.warnings[0]
    warned = sum(
        bool(copies(real(3 * at), real(3 * at + 1), real(3 * at + 2)).warnings) for at in range(40)
    )
    assert warned <= 1
    # Few values: everything equals something, in held-out data as in training data.
    result = copies(np.repeat(real(0)[:100], 4, axis=0), real(1), real(2))
    assert result.repeated == 0.75
    assert "repeats itself" in result.warnings[0]
    coins = [
        np.random.default_rng(seed).integers(0, 2, (300, 3)).astype(float) for seed in range(3)
    ]
    result = copies(*coins)
    assert result.copied == result.copied_others == 1
    assert result.warnings == ()
    refused("equal shapes", copies, real(0), real(1), real(2)[:, :2])
    refused("trained_on: expected shape", copies, real(0), np.empty((0, 4)), real(2))
    trained, held = real(1), real(2)
    drawn = np.concatenate([trained[:30] + 1e-3, real(0)[:70]])
    result, usual = near_duplicates(drawn, trained, held)
    fresh, _ = near_duplicates(real(0), trained, held)
    assert result == pytest.approx(0.3 + 0.7 * fresh, abs=0.05)
    assert usual == pytest.approx(fresh, abs=0.05)
    assert 0 < usual < 0.2


def test_words_that_stand_on_one_side_alone_tell_nothing():
    """A word of its own in each row, of members, generated rows and non-members alike."""
    mails = {seed: [f"{seed * 7919 + at * 104729:x}@a" for at in range(400)] for seed in (1, 2, 3)}
    parts = [table(400, seed).assign(mail=mail) for seed, mail in mails.items()]
    data = data_of(parts[0], generated=parts[1], nonmembers=parts[2])
    audit = audit_model(knows(parts[0], certain=False), data, **ONCE)
    assert (audit.real.epsilon, audit.result.epsilon_tilde) == (0, 0)
    shared = {"generated": table(seed=5).assign(owner=-1), "unit": "owner"}
    others = table(seed=6).assign(owner=range(600, 1200))
    data = data_of(table().assign(owner=range(600)), nonmembers=others, **shared)
    assert data.examples(data.members[0]).shape[1] == table().shape[1]


def test_sides_that_differ_by_themselves_or_in_their_types_are_refused():
    members, generated, others = table(), table(seed=5), table(seed=6)
    older = data_of(members, generated=generated, nonmembers=others.assign(size=others["size"] + 2))
    refused("their rows alone tell them from members", audit_model, knows(members), older, **ONCE)
    for name, other in (("nonmembers", others), ("generated", generated)):
        options = {"generated": generated, name: other.assign(label=other["label"].astype(str))}
        message = f"{name}: column 'label' holds text, and numbers in the members"
        refused(message, bring_table, members, **options)
    refused("generated: expected a DataFrame", bring_table, members, generated=generated.to_numpy())
    same = members.assign(label=members["label"].astype(float))
    refused("copies|stand twice", bring_table, members, generated=generated, nonmembers=same)
    days = pd.date_range("2026-01-01", periods=600).to_series(index=range(600))
    units = [members.assign(day=days.astype(f"datetime64[{unit}]")) for unit in ("us", "ns")]
    others = others.assign(day=units[1]["day"])
    dated = {"generated": generated.assign(day=days), "nonmembers": others}
    data = bring_table(units[0], **dated, group_columns=["day"])
    views = [data.examples(rows[0])[:, -1] for rows in (data.members, data.nonmembers)]
    assert np.array_equal(*map(np.sort, views))


def test_chunks_are_in_no_order_and_units_may_be_a_series():
    documents = pd.Series(pages(80, 1))[::-1]
    data = bring_text(documents, TextDefaults(tokens=4, epochs=1, width=16, vocabulary=300))
    firsts = data.members[1][:, 0]
    assert abs(np.corrcoef(firsts, np.arange(len(firsts)))[0, 1]) < 0.3
    units = pd.Series(np.arange(80) // 2)[::-1]
    assert sorted(units.iloc[one_of_each(units, 80, 0)]) == list(range(40))


def test_a_column_of_units_and_near_rows_of_real_nonmembers_are_seen_in_python_too():
    """The command alone once looked at the columns, and nothing at rows that are alike."""
    members, generated, others = table(), table(seed=5), table(seed=6)
    sides = {}
    for name, rows, first in (
        ("members", members, 0),
        ("generated", generated, 9_000),
        ("nonmembers", others, 500),
    ):
        numbers = [(first + row // 3) * 7919 % 99991 for row in range(len(rows))]
        sides[name] = rows.assign(kennung=numbers)
    refused("column 'kennung' names units: .* say --unit kennung .*unit=", bring_table, **sides)
    named = bring_table(**sides, group_columns=["kennung"])
    assert bring_table(**sides, unit="kennung").unit == "kennung"
    nobody = {"group_columns": ["nobody"]}
    refused("group column: expected one of the columns", bring_table, **sides, **nobody)
    near = [rows[:200].loc[np.repeat(np.arange(200), 3)] for rows in (members, others)]
    rng = np.random.default_rng(0)
    for rows in near:
        rows["size"] += 1e-3 * rng.normal(size=600)
        rows["other"] += 1e-3 * rng.normal(size=600)
    pairs = {"generated": generated, "nonmembers": near[1].reset_index(drop=True)}
    alike = bring_table(near[0].reset_index(drop=True), **pairs)
    sound = bring_table(members, generated=generated, nonmembers=others)
    found = ["near to each other" in " ".join(data.warnings) for data in (alike, sound, named)]
    assert found == [True, False, False]
