"""All audits of one set of scores as one collection: what it says, in every form it is read in."""

import ast
import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib import audits
from paperlib.audits.features import audit_features
from paperlib.audits.scores import Audits, audit, audit_losses, audit_scores
from paperlib.bounds import audit_one_run, epsilon_star
from paperlib.core import MembershipScores, toss_coins
from paperlib.core.direction import reversed_direction
from paperlib.core.intervals import score_measures
from paperlib.core.results import RESULT_SCHEMA_VERSION
from paperlib.words import directions
from tests.refusals import refused

RNG = np.random.default_rng(0)
MEMBERS, OTHERS = RNG.gamma(2, 1, 310), RNG.gamma(5, 1, 290)
LOSSES = MembershipScores(MEMBERS, OTHERS, higher_means_member=False)
AUDITS = audit_losses(MEMBERS, OTHERS)


def same(one: Audits, other: Audits) -> bool:
    return one.to_dict() == other.to_dict()


def forms(result: Audits) -> list[str]:
    return [str(result), result._repr_html_(), json.dumps(result.to_dict(), ensure_ascii=False)]


def test_the_stub_names_what_the_package_gives():
    tree = ast.parse(Path(str(audits.__file__)).with_suffix(".pyi").read_text())
    stated = {
        alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert stated == set(dir(audits))
    for name in stated:
        assert callable(getattr(audits, name))


def test_a_reversed_score_is_named_everywhere():
    wrong = audit_scores(MembershipScores(MEMBERS, OTHERS))
    assert wrong.refusals == directions.refusals(reversed_direction(wrong.scores))
    assert wrong.warnings[0] == wrong.refusals[0].sentence
    assert all("probably reversed" in form for form in forms(wrong))
    assert not any("reversed" in form for form in forms(AUDITS))
    shown = f"{AUDITS.headline.epsilon:.3f}"[:-1]
    assert not any(shown in form for form in forms(wrong)), (
        "what the other direction gives is no result"
    )
    wrong = audit_losses(OTHERS, MEMBERS)  # flipped membership
    assert sum("probably reversed" in text for text in wrong.warnings) == 1
    assert wrong.audits[0].result.warnings[0] == wrong.warnings[0]
    assert [one.result for one in wrong.audits[1:]] == [None, None]
    assert all("probably reversed" in one.refused for one in wrong.audits[1:])


def test_a_leak_of_few_records_in_the_other_direction_is_named():
    named = {0: 0, 30: 0}
    for seed, leaked in product(range(4), named):
        losses = np.random.default_rng(seed).normal(size=(2, 1000))
        losses[0, :leaked] -= 9
        audits = audit_scores(MembershipScores(*losses), design="game")
        named[leaked] += audits.document().judged(3.0)[1] is None
        assert audits.headline.epsilon > 0 or "reversed" in str(audits.warnings) or not leaked
    assert named[0] == 0
    assert named[30] > 1


@pytest.mark.parametrize("design", ["randomized", "game", "played"])
def test_the_coins_stand_beside_the_number_in_every_form(design):
    result = audit_losses(MEMBERS, OTHERS, design=design)
    condition = audit_one_run(LOSSES, design=design).condition
    assert result.condition == condition != ""
    assert all(condition in form for form in forms(result))
    assert str(result).splitlines()[:2] == [result.headline.headline, condition]
    assert result.to_frame()["condition"][0] == condition
    assert result.to_dict()["design"] == design


def test_dictionary_text_and_page_begin_with_the_answer_and_name_every_audit():
    result = audit_losses(MEMBERS, OTHERS, delta=1e-5, confidence=0.9)
    written, main = json.loads(json.dumps(result.to_dict())), result.headline
    assert written["schema_version"] == RESULT_SCHEMA_VERSION
    assert written["epsilon"] == main.epsilon > 0
    assert (written["delta"], written["confidence"], written["kind"]) == (1e-5, 0.9, "lower bound")
    for name in ("headline", "claim", "condition", "ceiling"):
        assert written[name] == getattr(main, name)
    assert written["assumptions"] == list(main.assumptions)
    assert written["warnings"] == list(result.warnings)
    measures = score_measures(LOSSES, confidence=0.9).to_dict()
    assert written["measures"] == measures == result.measures.to_dict()
    titles = [
        "One training run, every threshold",
        "One training run, optimal output set",
        "Epsilon*",
    ]
    assert [one["title"] for one in written["audits"]] == [one.title for one in AUDITS] == titles
    assert repr(AUDITS) == f"Audits({AUDITS.headline.headline}; 3 audits)"
    lines = str(AUDITS).splitlines()
    assert (lines[0], lines[3]) == (AUDITS.headline.headline, f"Claim: {AUDITS.headline.claim}")
    assert str(AUDITS.measures) in lines
    at = lines.index("Other audits, each at its own confidence:")
    assert [line.partition(" (")[0].strip() for line in lines[at + 1 :]] == titles[1:]
    result = Audits(AUDITS.scores, AUDITS.audits, reading=("a < b",))
    page = result._repr_html_()
    assert all(words in page for words in (*titles, AUDITS.headline.headline, "a &lt; b"))
    assert ("a < b" in page, "a < b" in result.warnings) == (False, True)
    frame = AUDITS.to_frame()
    assert list(frame.columns) == ["audit", "kind", "epsilon", "condition", "note"]
    assert frame["epsilon"].tolist() == [one.result.epsilon for one in AUDITS]


def test_the_game_is_named_with_other_draws_and_epsilon_star_is_counted_where_no_normal_fits():
    result = audit_losses(MEMBERS[:290], OTHERS)
    assert any(
        "exactly as many members" in text and "--design game" in text for text in result.warnings
    )
    assert all("--design game" in form for form in forms(result))
    drawn, tossed = (audit_losses(MEMBERS, OTHERS, design=design) for design in ("game", "played"))
    assert any("10 games with other seeds: lowest" in note for note in drawn.headline.notes)
    assert "can show at most" in str(tossed)
    assert "other seeds" not in str(tossed)
    rng = np.random.default_rng(0)
    star = epsilon_star_of(audit_losses(rng.gamma(2, 5, 3_000), rng.gamma(3, 5, 3_000)))
    assert (star.method, star.interval_method) == ("empirical", "band")
    assert "the parametric estimate" in str(star)
    assert "is not trusted" in str(star)


def epsilon_star_of(audits):
    return next(one.result for one in audits if one.title == "Epsilon*")


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_epsilon_star_takes_the_delta_that_is_given_and_says_which(delta):
    star = epsilon_star_of(audit_losses(MEMBERS, OTHERS, delta=delta))
    alone = epsilon_star(MEMBERS, OTHERS, delta=delta or None, confidence=0.95).trusted
    assert (star.delta, star.epsilon) == (alone.delta, alone.epsilon)
    assert f"delta = {star.delta:.3g}, " in star.notes[0]
    assert (", as given" in star.notes[0]) == (delta > 0)
    assert ("1 / (n log n) for n = 310" in star.notes[0]) == (delta == 0)
    assert star.notes[0] in str(star)
    assert len(audit_scores(LOSSES.oriented())) == 2  # scores have none


def test_tied_and_few_scores_are_audited_and_what_is_refused_has_its_reason_in_every_form():
    tied = audit_losses([1.0] * 40, [1.0] * 40)
    assert tied.headline.epsilon == 0
    assert "could have refuted at most" in str(tied)
    few = audit_losses([1.0, 2.0], [4.0, 5.0])
    assert few.headline.ceiling == 0
    assert all("nothing is learned" in form for form in forms(few))
    few = audit_losses([1.0, 2.0], [3.0])
    at, refused = next((at, one) for at, one in enumerate(few) if one.result is None)
    assert refused.refused in str(few)
    assert refused.refused in few.to_frame()["note"][at]
    assert few.to_dict()["audits"][at]["result"] is None


def test_audit_takes_scores_arrays_and_files_and_asks_for_the_kind_of_one_file_per_side(tmp_path):
    path = tmp_path / "losses.csv"
    rows = [f"{loss!r},1" for loss in MEMBERS.tolist()] + [
        f"{loss!r},0" for loss in OTHERS.tolist()
    ]
    path.write_text("loss,member\n" + "\n".join(rows))
    assert same(audit(LOSSES), AUDITS)
    assert same(audit(MEMBERS, OTHERS, kind="losses"), AUDITS)
    assert same(audit(-MEMBERS, -OTHERS, kind="scores"), audit_scores(LOSSES.oriented()))
    assert same(audit(path), AUDITS)
    assert same(audit(str(path), score_column="loss", member_column="member"), AUDITS)
    options = {"delta": 1e-5, "confidence": 0.9, "guess": "both", "design": "played", "seed": 3}
    expected = audit_scores(LOSSES, **options)
    assert same(audit(LOSSES, **options), expected)
    assert same(audit_losses(MEMBERS, OTHERS, **options), expected)
    paths = tmp_path / "in.npy", tmp_path / "out.npy"
    for path, values in zip(paths, (MEMBERS, OTHERS), strict=True):
        np.save(path, values)
    assert same(audit(*paths, kind="losses"), AUDITS)
    refused("losses", audit, *paths)


def test_warnings_of_the_reader_are_warnings_of_the_audit(tmp_path, monkeypatch):
    loaded = type("Loaded", (), {"scores": LOSSES, "warnings": ("2 empty rows",)})()
    monkeypatch.setattr("paperlib.io.read_scores", lambda *paths, **options: loaded)
    result = audit(tmp_path / "any.csv")
    assert result.warnings == ("2 empty rows", *AUDITS.warnings)
    assert all("2 empty rows" in form for form in forms(result))


SIDES = (MEMBERS, OTHERS)
TWICE = "data: MembershipScores hold the non-members and their direction"
COINS = r"coins: expected Coins, got str; read a file with Coins.load\(path\)"
TOSSED = {"coins": toss_coins(3, seed=0)}


def test_what_does_not_go_together_is_refused_in_one_line():
    for by, given, options, message in (
        (
            audit,
            SIDES,
            {},
            "kind: say what the values are: kind='losses' if lower .* kind='scores' if",
        ),
        (audit, SIDES, {"kind": "loss"}, "kind: expected one of 'scores', 'losses', got 'loss'"),
        (
            audit,
            (MEMBERS,),
            {"kind": "losses"},
            "nonmembers: needed where data holds values of members",
        ),
        (audit, (LOSSES, OTHERS), {}, TWICE),
        (audit, (LOSSES,), {"kind": "losses"}, TWICE),
        (
            audit,
            SIDES,
            {"kind": "losses", "score_column": "a"},
            "score_column, member_column, id_column, unit: co",
        ),
        (
            audit_scores,
            ([0.1],),
            {},
            r"MembershipScores\(member, nonmember\), or call audit_losses",
        ),
        (
            audit_scores,
            ([0.1], [0.3]),
            {},
            r"MembershipScores\(member, nonmember\), or call audit_losses",
        ),
        (audit_losses, ({"0": 1.0, "1": 2.0},), TOSSED, "records with a coin are missing"),
        (audit_losses, ([1.0], [2.0]), TOSSED, "they tell who is a member"),
        (
            audit_losses,
            (dict.fromkeys("012", 1.0),),
            TOSSED | {"design": "game"},
            "design is randomized",
        ),
        (audit_scores, (MembershipScores([1.0], [2.0]),), TOSSED, "another number of members"),
        (audit_losses, ([1.0],), {"coins": "a.json"}, COINS),
        (audit_scores, (LOSSES,), {"coins": "a.json"}, COINS),
        (audit, ("a.csv",), {"plan": Path("a.json")}, r"SealedPlan, got \w+; read a file with Se"),
        (
            audit_losses,
            SIDES,
            {"unit": ["u", "v", "v"]},
            "a pair, .* for the others, got list of 3",
        ),
        (audit_losses, SIDES, {"unit": "id"}, "unit: expected a pair, .* got str of 2"),
    ):
        refused(message, by, *given, **options)


def test_every_audit_takes_sealed_coins_and_values_by_id(tmp_path):
    coins = toss_coins([f"u{at}" for at in range(400)], unit="user", seed=1)
    loss = np.random.default_rng(0).normal(-3.0 * coins.included, 1)
    order = np.random.default_rng(1).permutation(400)
    by_id = {coins.ids[at]: loss[at] for at in order}
    frame = pd.DataFrame({"user": list(by_id), "loss": list(by_id.values())})
    frame.to_csv(tmp_path / "a.csv", index=False)
    sides = MembershipScores.from_labels(loss, coins.included, higher_means_member=False)
    expected = audit_scores(sides).headline.epsilon
    results = [
        audit_losses(by_id, coins=coins),
        audit_losses(frame, coins=coins),
        audit(by_id, kind="losses", coins=coins),
        audit(tmp_path / "a.csv", coins=coins),
        audit_scores(coins.scores(by_id, kind="losses"), coins=coins),
    ]
    assert [one.headline.epsilon for one in results] == [expected] * 5
    more = audit_features(
        frame.assign(loss=-frame["loss"], more=0.5 * frame["loss"]), coins, seed=0
    )
    again = audit_features(np.column_stack([-loss, 0.5 * loss]), coins.included, seed=0)
    assert more.epsilon == again.epsilon > 1
    for result in (*(one.headline for one in results), more):
        assert "One example is one unit of user" in result.claim
        assert any(coins.commitment in text for text in result.assumptions)
    assert all("seed 1: whoever knows" in one.warnings[0] for one in (*results, more))


def test_scores_that_are_all_or_mostly_one_value_are_doubted(tmp_path):
    rng = np.random.default_rng(0)
    constant = audit_losses(np.zeros(40), np.zeros(40), design="game")
    assert constant.document().judged(3.0)[1] is None, "no number that a gate passes"
    halves = np.minimum(1.0, rng.gamma(5, 0.3, (2, 400)))
    warnings = audit_losses(*halves, design="game").warnings
    assert any("of the scores are 1: if they were rounded" in text for text in warnings)
    answers = MembershipScores(rng.random(100) < 0.9, rng.random(100) < 0.9)
    assert audit_scores(answers, design="game").reading == ()


def test_the_column_of_ids_can_be_named(tmp_path):
    coins = toss_coins(60, seed=0)
    frame = pd.DataFrame({"key": range(60), "loss": np.random.default_rng(0).random(60)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert len(audit(tmp_path / "a.csv", coins=coins, id_column="key").scores) == 60
