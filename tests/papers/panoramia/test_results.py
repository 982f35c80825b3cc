"""What all modalities read from audits: rows, and Table 3."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from paperlib.audits.panoramia.pools import Pool, Pools, Target
from paperlib.audits.panoramia.results import means_over_games
from paperlib.papers.panoramia import results as shared
from paperlib.report import paper_table

TARGETS = (
    Target("1 epoch", "trained", 1),
    Target("6 epochs", "trained", 6),
    Target("null", "null", 6),
    Target("DP", "private", 1, 3.0),
)
OWN = {"1 epoch": 0.2, "6 epochs": 1.0, "null": 0.05, "DP": 0.0}


def summary(form, values, played):
    """A summary of two searches in which the second one's numbers are off by ten."""
    rows = [
        {"target": target, "audit": audit, "form": form, "search": search, "c_lb": 0.5, "value_sd": 0.1,
         "c_plus_eps_lb": value, "value": value + shift + off}
        for target, value in values.items()
        for audit, shift in played.items()
        for search, off in (("union", 0.0), ("anytime", 10.0))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def audits(form, values, played):
    return SimpleNamespace(
        search="union",
        summary=lambda: summary(form, values, played),
        select=lambda audit: played.get(audit) is not None,
    )


def results(values=OWN, real=0.5, grid=1.0, both=True):
    everywhere = {"panoramia": 0.0, "rm_rn": real, "o1": grid}
    paper = {name: everywhere[name] for name in ("panoramia", "rm_rn") if both or name != "rm_rn"}
    pool = Pool(np.zeros((2, 1)), {}, {name: np.zeros((2, 1)) for name in values})
    pools = Pools(pool, pool, None, TARGETS)
    forms = {"helpers": audits("helpers", values, everywhere), "paper": audits("paper", values, paper)}
    return shared.PanoramiaResults(pools, forms)


def test_rows_are_of_the_first_search_and_of_the_form_asked_for():
    found = results()
    assert found.value("6 epochs") == 1.0
    assert found.value("6 epochs", "rm_rn", form="paper") == 1.5
    assert found.one("null")["c_lb"] == 0.5
    assert (found.trained, found.null) == (["1 epoch", "6 epochs"], ["null"])
    with pytest.raises(ValueError, match="2 epochs"):
        found.value("2 epochs")
    with pytest.raises(ValueError, match="o1"):
        found.value("null", "o1", form="paper")


def test_table_three_has_the_papers_own_numbers_beside_ours():
    printed = paper_table("panoramia_table03").query("target_model == 'GPT2_E37'")
    table = shared.table_three(results(), {"1 epoch": printed})
    names = ["c_lb", "eps_tilde", "helpers_eps_tilde", "rm_rn", "o1"]
    assert table.set_index("target").loc["6 epochs", names].tolist() == [0.5, 1.0, 1.0, 1.5, 2.0]
    theirs = table.set_index("target").loc["1 epoch"]
    shown = ["paper_c_lb", "paper_c_plus_eps_lb", "paper_eps_tilde", "paper_eps_tilde_sd"]
    wanted = printed.iloc[0][["c_lb", "c_plus_eps_lb", "eps_tilde", "eps_tilde_pm"]]
    np.testing.assert_array_equal(theirs[shown].astype(float), wanted.astype(float))
    np.testing.assert_array_equal(
        theirs[["paper_rm_rn", "paper_o1"]].astype(float), printed["eps"].iloc[1:].astype(float)
    )
    assert table.loc[1:, shown].isna().all(axis=None)


def test_differences_are_averaged_first_and_clipped_last():
    about = {"target": "a", "null": True, "epochs": 1, "dp_epsilon": None, "form": "paper", "search": "union"}
    auc = {"ceiling": 3.0, "baseline_auc": 0.5, "mia_auc": 0.5}
    bounds = pd.DataFrame({"c_lb": [0.5, 0.4, 0.6], "c_plus_eps_lb": [0.2, 0.6, 0.4]})
    table = bounds.assign(**about, **auc, audit="panoramia", eps=np.nan, eps_tilde=[0.0, 0.2, 0.0])
    (row,) = means_over_games(table).to_dict("records")
    assert row["value"] == 0.0  # the mean of -0.3, 0.2 and -0.2, not of 0, 0.2 and 0
    assert row["value_sd"] == pytest.approx(np.std([-0.3, 0.2, -0.2], ddof=1))
