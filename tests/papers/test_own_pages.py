"""What the pages for one's own files and parts show: the values drawn, the columns, and the words."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paperlib import MembershipScores, audit_one_run, audit_scores
from paperlib.core import round_down
from paperlib.papers import own_model_page, own_parts_page


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the pages show, by name: the figure or table first, then the options; texts under "text"."""
    kept: dict[str, Any] = {"text": []}

    def keep(what: object, *, name: str, **options: object) -> None:
        kept[name] = what, options

    for module in (own_model_page, own_parts_page):
        for kind in ("show_figure", "show_table"):
            monkeypatch.setattr(module, kind, keep)
        monkeypatch.setattr(module, "show_text", kept["text"].append)
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


def games(bound: float) -> Any:
    rows = {"target": ["yours", "null"] * 2, "c_lb": [1.0] * 4, "c_plus_eps_lb": [bound, 0.5, bound + 1, 0.5]}
    return SimpleNamespace(games=pd.DataFrame({**rows, "baseline_auc": 0.5, "mia_auc": 0.6}))


def test_epsilon_is_that_of_the_mean_bounds_and_never_below_0(shown: dict[str, Any]) -> None:
    found = own_parts_page.mean_games(games(2.0))
    assert [(row["target"], row["eps_tilde"]) for row in found] == [("yours", 1.5), ("null", 0)]
    own_parts_page.show_games({"trees": found}, part="attack", games=2)
    table, options = shown["own-attack"]
    assert table["attack"].tolist() == ["trees", "trees"]
    assert next(iter(options["columns"].values())) == "Attack"
    assert "means over 2 games" in options["caption"]
    assert len(options["columns"]) == 7


def test_a_rule_is_refuted_in_words_where_the_simulation_says_so(shown: dict[str, Any]) -> None:
    rates = pd.DataFrame(
        {
            "bound": ["one", "one", "best"],
            "mechanism": ["none", "Laplace", "none"],
            "rate": [0.02, 0.05, 0.3],
            "low": [0.0, 0.01, 0.2],
            "high": [0.1, 0.1, 0.4],
            "wrong": [2, 5, 30],
            "trials": 100,
            "verdict": ["consistent with it", "consistent with it", "above the nominal level"],
        }
    )
    own_parts_page.show_rates(rates, nominal=0.05, interval=0.999)
    figure, options = shown["own-rates"]
    assert [axis.get_title() for axis in figure.axes] == ["one", "best"]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["none", "Laplace"]
    assert options["alt"] == "one: 0.020 on none, 0.050 on Laplace; best: 0.300 on none."
    assert shown["text"] == ["Refuted: “best” on none (30 of 100 bounds are wrong)."]
    assert own_parts_page.refuted(rates[:2]) == "No rule is refuted."
