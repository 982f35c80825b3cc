"""The names that users import from `paperlib.audits`, and the audits that are one call each."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib import audits
from paperlib.audits import audit_scores, audit_table
from paperlib.core import MembershipScores

RNG = np.random.default_rng(0)
SCORES = MembershipScores(RNG.normal(1, 1, 300), RNG.normal(0, 1, 300))


def test_the_stub_names_what_the_package_gives():
    tree = ast.parse(Path(str(audits.__file__)).with_suffix(".pyi").read_text())
    stated = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert stated == set(dir(audits))
    for name in stated:
        assert callable(getattr(audits, name))


def test_an_audit_of_scores_does_not_load_torch():
    code = "import sys; from paperlib.audits import audit_scores; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_is_not_there_is_an_attribute_error():

    with pytest.raises(AttributeError, match="attribute audit_everything"):
        getattr(audits, "audit_" + "everything")


def test_audits_of_scores_as_table_text_and_dictionary():
    found = audit_scores(SCORES, delta=1e-5)
    assert found.headline is next(iter(found)).result
    frame = found.to_frame()
    assert list(frame.columns) == ["audit", "kind", "epsilon", "condition", "note"]
    assert len(frame) == len(found) == 2
    assert frame["epsilon"][0] == found.headline.epsilon
    assert found.to_dict()["audits"][0]["result"]["delta"] == 1e-5
    assert str(found).count(found.headline.claim) == 1
    assert found.headline.headline in found._repr_html_()


def test_a_refused_audit_gives_its_reason_in_every_form():
    found = audit_scores(MembershipScores([1.0, 2.0], [3.0], higher_means_member=False))
    at, refused = next((at, one) for at, one in enumerate(found) if one.result is None)
    assert refused.refused in str(found)
    assert refused.refused in found.to_frame()["note"][at]
    assert found.to_dict()["audits"][at]["result"] is None


def test_audit_table_gives_numbers_of_every_game_and_the_first_game_s_claim():
    rows = pd.DataFrame(RNG.normal(size=(400, 2)), columns=["a", "b"])
    made = pd.DataFrame(RNG.normal(size=(400, 2)), columns=["a", "b"])
    known = set(rows["a"])
    options = {"generated": made, "nonmembers": made, "restarts": 1}
    found = audit_table(
        lambda table: [0.0 if value in known else 2.0 for value in table["a"]], rows, repetitions=2, **options
    )
    assert sorted(set(found.games["seed"])) == [0, 1]
    assert found.result.epsilon_tilde > 1
    assert found.real.epsilon > 1
    assert str(found) == str(found.result)
    assert found.result.claim in found._repr_html_()


def test_a_drawn_game_says_what_other_draws_give():
    rng = np.random.default_rng(1)
    scores = MembershipScores(rng.normal(1, 1, 300), rng.normal(0, 1, 200))
    drawn, tossed = (audit_scores(scores, design=design) for design in ("game", "played"))
    assert any("10 games with other seeds: lowest" in note for note in drawn.headline.notes)
    assert "can show at most" in str(tossed)
    assert "other seeds" not in str(tossed)


def test_epsilon_star_is_counted_where_no_normal_fits():
    rng = np.random.default_rng(0)
    losses = MembershipScores(rng.gamma(2, 5, 3_000), rng.gamma(3, 5, 3_000), higher_means_member=False)
    star = next(one.result for one in audit_scores(losses).audits if one.title == "Epsilon*")
    assert star.method == "empirical"
    assert star.interval_method == "band"
    assert "the parametric estimate" in str(star)
    assert "is not trusted" in str(star)
