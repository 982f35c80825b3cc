"""What users bring: a target and members, and nothing else if they have nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.panoramia.audit import YOURS, AuditData, audit_model
from paperlib.audits.panoramia.images import bring_images
from paperlib.audits.panoramia.pools import SYNTHETIC
from paperlib.audits.panoramia.results import TargetScores
from paperlib.audits.panoramia.table import bring_table
from paperlib.audits.panoramia.table_models import Learning
from paperlib.audits.panoramia.text import TextDefaults, bring_text, of_text
from paperlib.bounds.one_run.fair_coins import coin_warnings
from tests.audits.samples import SMALL_PICTURES, blobs, pages, table

QUICK = (BoostedTrees(rounds=20, smallest_leaf=10),)


def knows(members, certain=True):
    """A target whose loss is low exactly for its training rows, or for nobody."""
    known = set(map(tuple, members.to_numpy())) if certain else set()
    rng = np.random.default_rng(1)

    def target(rows):
        hit = np.array([tuple(row) in known for row in rows.to_numpy()])
        return rng.normal(size=len(rows)) - 3 * hit

    return target


def quick(brought):
    return replace(brought, attacks=QUICK)


LEARNING = Learning(hidden=(8,))


def test_a_table_and_a_target_are_enough():
    members = table()
    brought = quick(bring_table(members, label="label", epochs=2, learning=LEARNING))
    found = audit_model(knows(members), brought, repetitions=1, restarts=1)
    assert found.result.epsilon_tilde > 0.3
    assert any("check it with a null model" in text for text in found.result.assumptions)
    assert found.real is None
    assert found.null is None
    assert found.headline.endswith("; null not checked")
    nothing = audit_model(knows(members, certain=False), brought, repetitions=1, restarts=1)
    assert nothing.result.epsilon_tilde == 0


def test_the_generator_learns_from_other_rows_than_those_audited():
    members = table().assign(number=np.arange(600))
    seen = []

    class Spy:
        def fit(self, rows):
            seen.extend(rows["number"])
            return self

        def sample(self, n, seed):
            return members.sample(n, replace=True, random_state=seed).reset_index(drop=True)

    brought = bring_table(members, label="label", generator=Spy(), epochs=1, learning=LEARNING)
    (audited,) = brought.members
    assert len(seen) == 240
    assert not set(seen) & set(audited["number"])


def test_your_own_generated_rows_are_halved_between_helper_and_audit():
    made = table(seed=5)
    brought = bring_table(table(), label="label", generated=made, nonmembers=table(seed=6), epochs=1)
    assert len(brought.members[0]) == 600
    assert len(brought.generated[0]) == 300
    assert list(brought.helpers) == [SYNTHETIC]
    found = audit_model(knows(table()), quick(brought), repetitions=1, restarts=1)
    assert found.real.epsilon > 0.3
    assert "replacing one example" in found.real.claim
    assert not any("before training" in text for text in found.real.assumptions)
    assert "coins tossed by this audit" in found.real.condition
    assert "come from one distribution" in found.real.assumptions[0]
    relaxed = audit_model(knows(table()), quick(brought), delta=0.01, repetitions=1, restarts=1)
    assert (relaxed.real.delta, relaxed.real.total) == (0.01, found.real.total)
    assert relaxed.real.epsilon < found.real.epsilon


def test_the_table_of_games_has_the_numbers_of_the_claim():
    """With the delta, gamma and c of the audit, for generated and for real non-members."""
    brought = quick(bring_table(table(), generated=table(seed=5), nonmembers=table(seed=6)))
    for options in ({"delta": 0.02, "gamma": 0.001}, {"delta": 0.02, "known_c": 0.0}):
        found = audit_model(knows(table()), brought, **options, repetitions=1, restarts=1)
        rows = found.games.set_index("audit")
        assert rows.loc["panoramia", "c_plus_eps_lb"] == found.result.c_plus_epsilon_lb
        assert rows.loc["panoramia", "ceiling"] == found.result.ceiling
        assert rows.loc["rm_rn", "eps"] == found.real.epsilon
        assert (found.real.delta, found.result.delta) == (0.02, 0.02)


def test_coins_that_fell_unevenly_are_no_doubt_about_the_audits_own_game():
    flags = np.arange(200) < 130  # fair coins give this less often than once in 10,000
    shown = TargetScores(YOURS, "rm_rn", 0, np.empty(0), flags.astype(float), flags)
    assert coin_warnings(130, 70, "played")
    assert shown.one_run("anytime", 0.95).warnings == ()


def test_a_known_c_gives_a_lower_bound_and_needs_no_null():
    brought = quick(bring_table(table(), generated=table(seed=7)))
    found = audit_model(knows(table()), brought, known_c=0.0, repetitions=1, restarts=1)
    assert found.result.epsilon == found.result.c_plus_epsilon_lb > 0.3
    assert not any("null model" in text for text in found.result.assumptions)
    assert found.headline.endswith("confidence 0.95)")


def test_without_a_label_the_result_says_that_the_baseline_may_be_weak():
    found = audit_model(knows(table()), quick(bring_table(table())), repetitions=1, restarts=1)
    assert any("without a label" in text for text in found.result.warnings)


def test_a_generator_that_copies_warns_in_the_result():
    class Copier:
        def fit(self, rows):
            self.rows = rows
            return self

        def sample(self, n, seed):
            return self.rows.sample(n, replace=True, random_state=seed).reset_index(drop=True)

    brought = quick(bring_table(table(), label="label", generator=Copier(), epochs=1, learning=LEARNING))
    found = audit_model(knows(table()), brought, repetitions=1, restarts=1)
    assert any("memorises" in text for text in found.result.warnings)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": "colour"}, "label: expected one of the columns"),
        ({"label": "size"}, "label: expected 2 to 100 different values in 'size'"),
        (
            {"generated": table()[["size"]]},
            r"generated: expected the columns \['size', 'other', 'word', 'label'\]",
        ),
        ({"share": 1.0}, "share: expected a number in"),
    ],
)
def test_tables_that_cannot_be_audited_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        bring_table(table(), **{"label": "label", "epochs": 1, **options})


def test_missing_values_are_named():
    """Each column with its number, on one line, in every table."""
    holes = table().assign(size=[np.nan, *range(599)], word=[None, None, *["a"] * 598])
    for tables in ({"members": holes}, {"members": table(), "nonmembers": holes, "generated": table()}):
        with pytest.raises(ValueError, match=r"columns 'size' \(1\), 'word' \(2\); give them") as caught:
            bring_table(**tables, label="label")
        assert str(caught.value).startswith(
            f"{next(name for name in tables if tables[name] is holes)}: missing"
        )
        assert "\n" not in str(caught.value)


def test_a_target_that_returns_nan_or_the_wrong_number_is_named():
    brought = quick(bring_table(table(), generated=table(seed=3)))
    with pytest.raises(ValueError, match=r"target: expected one loss for each of 600 examples.*got \(3,\)"):
        audit_model(lambda rows: [0.0, 1.0, 2.0], brought)
    with pytest.raises(ValueError, match="target 'yours': losses: 600 of 600 rows hold NaN"):
        audit_model(lambda rows: np.full(len(rows), np.nan), brought)


def test_too_few_members_say_how_many_are_needed():
    with pytest.raises(ValueError, match="members: expected 30 or more"):
        audit_model(knows(table()), bring_table(table(20), generated=table(seed=3)))


def test_documents_and_a_target_are_enough():
    documents = pages(60, 1)
    defaults = TextDefaults(tokens=8, epochs=1, width=16, vocabulary=300)
    brought = quick(bring_text(documents, defaults))
    texts, tokens = brought.members
    assert len(texts) == len(tokens)
    joined = " ".join(documents)
    found = audit_model(
        of_text(lambda batch: [-4.0 * (text in joined) for text in batch]), brought, repetitions=1, restarts=1
    )
    assert found.result.c_plus_epsilon_lb > 1


def test_too_little_text_is_refused():
    with pytest.raises(ValueError, match="chunks of 64 tokens, 30 are needed"):
        bring_text(pages(4, 1), TextDefaults(tokens=64, vocabulary=300))


def test_models_beside_the_members_may_be_none():
    rng = np.random.default_rng(0)
    brought = AuditData(
        members=(rng.normal(size=(300, 2)),),
        generated=(rng.normal(size=(300, 2)),),
        examples=lambda rows: rows,
        attacks=QUICK,
    )
    found = audit_model(lambda rows: rng.normal(size=len(rows)), brought, repetitions=1, restarts=1)
    assert found.result.epsilon_tilde < 0.5


def test_images_and_a_target_are_enough():
    images, labels = blobs(400)
    known = {image.tobytes() for image in images}

    def target(shown, classes):
        return [-4.0 * (image.tobytes() in known) for image in shown]

    brought = bring_images(images, labels, SMALL_PICTURES)
    assert len(brought.members[0]) == len(brought.generated[0]) == 240
    assert list(brought.helpers) == [SYNTHETIC]
    found = audit_model(target, brought, repetitions=1, restarts=1)
    assert found.result.c_plus_epsilon_lb > 1


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (np.zeros((5, 4, 4), np.uint8), np.zeros(5, int), r"images: expected uint8 of shape"),
        (np.zeros((5, 1, 4, 4)), np.zeros(5, int), r"got float64 \(5, 1, 4, 4\)"),
        (np.zeros((5, 1, 4, 4), np.uint8), [0, 1], "images: expected 5 labels"),
        (np.zeros((5, 1, 4, 4), np.uint8), np.full(5, -1), "whole numbers of 0 or more"),
    ],
)
def test_images_that_cannot_be_audited_are_refused(images, labels, words):
    with pytest.raises(ValueError, match=words):
        bring_images(images, labels)


def test_generated_images_of_another_size_are_refused():
    other = np.zeros((5, 1, 8, 8), np.uint8), np.zeros(5, int)
    with pytest.raises(ValueError, match=r"generated: expected images of shape \(1, 4, 4\)"):
        bring_images(*blobs(), generated=other)
