"""What the pages for one's own files and parts show: the values drawn, the columns, and the words."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from paperlib import MembershipScores, audit_one_run, audit_scores
from paperlib.core import round_down
from paperlib.papers import own_model_page


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the pages show, by name: the figure or table first, then the options; texts under "text"."""
    kept: dict[str, Any] = {"text": []}

    def keep(what: object, *, name: str, **options: object) -> None:
        kept[name] = what, options

    for kind in ("show_figure", "show_table"):
        monkeypatch.setattr(own_model_page, kind, keep)
    monkeypatch.setattr(own_model_page, "show_text", kept["text"].append)
    return kept


@pytest.fixture
def scores() -> MembershipScores:
    rng = np.random.default_rng(0)
    return MembershipScores(rng.normal(size=200), rng.normal(2, 1, size=190), higher_means_member=False)


def test_values_are_drawn_with_their_auc_and_unit(shown: dict[str, Any], scores: MembershipScores) -> None:
    own_model_page.show_scores(scores)
    histogram, roc = shown["own-histogram"][0], shown["own-roc"][0]
    assert histogram.axes[0].get_xlabel() == "loss"
    labels = [text.get_text() for text in roc.legends[0].get_texts()]
    assert labels == ["95 % band", f"values (AUC {scores.auc():.2f})", "guessing (AUC 0.5)"]
    assert shown["own-roc"][1]["data"]["false_positive_rate"].iloc[0] == 0


def test_the_audit_chosen_beforehand_comes_first(shown: dict[str, Any], scores: MembershipScores) -> None:
    audits, both = audit_scores(scores), audit_one_run(scores, guess="both")
    own_model_page.show_audits(audits, both)
    table, options = shown["own-audits"]
    assert table["epsilon"].iloc[:2].tolist() == [audits.headline.epsilon, both.epsilon]
    assert len(table) == len(audits.to_frame()) + 1
    assert list(options["columns"]) == ["audit", "kind", "shown", "condition", "note"]
    assert table["shown"].iloc[0] == f"{round_down(audits.headline.epsilon, 2):.2f}"
    measured = table[table["kind"] == "measurement"].iloc[0]
    assert measured["shown"] == f"{measured['epsilon']:.2f}"
    own_model_page.show_bound(audits.headline)
    figure, _ = shown["own-bound"]
    drawn = {str(line.get_label()): line for line in figure.axes[0].get_lines()}
    assert list(drawn["bound at this many guesses"].get_ydata()) == audits.headline.curve["bound"].tolist()
    assert list(drawn["reported"].get_ydata()) == [audits.headline.epsilon] * 2


def test_the_size_is_said_with_the_direction(shown: dict[str, Any], scores: MembershipScores) -> None:
    own_model_page.show_size(scores)
    assert shown["text"] == ["Audited: 200 members and 190 non-members; a lower value means member."]


def test_bound_and_auc_have_a_panel_each(shown: dict[str, Any]) -> None:
    own_model_page.show_epochs(pd.DataFrame({"epochs": [1, 9], "auc": [0.5, 0.7], "epsilon": [0.0, 1.5]}))
    figure, options = shown["own-epochs"]
    assert [list(axis.get_lines()[0].get_ydata()) for axis in figure.axes] == [[0.0, 1.5], [0.5, 0.7]]
    assert "from 0.00 to 1.50 nats and the AUC from 0.50 to 0.70" in options["alt"]
