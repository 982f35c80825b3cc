"""What all modalities read from audits: rows, Table 3, and samples for the rules, paired and not
clipped.
"""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import Pool, Pools, Target
from paperlib.audits.panoramia.results import TargetAudits, TargetScores, means_over_games
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.panoramia import results as shared
from paperlib.reproduction.papers.panoramia.images.tables import figure_fifteen
from paperlib.reproduction.papers.panoramia.results import PanoramiaResults
from tests.refusals import refused

TARGETS = (
    Target("1 epoch", "trained", 1),
    Target("6 epochs", "trained", 6),
    Target("null", "null", 6),
)
TARGETS = *TARGETS, Target("DP", "private", 1, 3.0)
OWN = {"1 epoch": 0.2, "6 epochs": 1.0, "null": 0.05, "DP": 0.0}


def known():
    """Results whose summaries have two searches, of which the second one's numbers are off by
    ten.
    """
    rows = pd.DataFrame(
        {"target": target, "audit": audit, "c_plus_eps_lb": value, "value": value + shift + off}
        | {"search": search, "c_lb": 0.5, "value_sd": 0.1}
        for target, value in OWN.items()
        for audit, shift in (("panoramia", 0.0), ("rm_rn", 0.5), ("o1", 1.0))
        for search, off in (("union", 0.0), ("anytime", 10.0))
    )
    forms = {
        form: Mock(search="union", summary=Mock(return_value=some.assign(form=form)))
        for form, some in (("helpers", rows), ("paper", rows[rows["audit"] != "o1"]))
    }
    pool = Pool(np.zeros((2, 1)), {}, {name: np.zeros((2, 1)) for name in OWN})
    return PanoramiaResults(Pools(pool, pool, None, TARGETS), forms)


def test_rows_are_of_the_first_search_and_table_three_has_the_papers_own_numbers_beside_ours():
    found = known()
    assert found.value("6 epochs") == 1.0
    assert found.value("6 epochs", "rm_rn", form="paper") == 1.5
    assert found.means_of("null")["c_lb"] == 0.5
    assert (found.trained, found.null) == (["1 epoch", "6 epochs"], ["null"])
    refused("2 epochs", found.value, "2 epochs")
    refused("o1", found.value, "null", "o1", form="paper")
    printed = paper_table("panoramia_table03").query("target_model == 'GPT2_E37'")
    table = shared.table_three(known(), {"1 epoch": printed})
    names = ["c_lb", "eps_tilde", "helpers_eps_tilde", "rm_rn", "o1"]
    assert table.set_index("target").loc["6 epochs", names].tolist() == [0.5, 1.0, 1.0, 1.5, 2.0]
    names = ["c_lb", "c_plus_eps_lb", "eps_tilde", "eps_tilde_sd", "rm_rn", "o1"]
    shown = [f"paper_{name}" for name in names]
    own = printed.iloc[0][["c_lb", "c_plus_eps_lb", "eps_tilde", "eps_tilde_pm"]]
    wanted = [*own, *printed["eps"].iloc[1:]]
    np.testing.assert_array_equal(table.loc[0, shown].astype(float), np.array(wanted, dtype=float))
    assert table.loc[1:, shown].isna().all(axis=None)


def test_differences_are_of_their_own_game_averaged_first_and_clipped_last(results):
    about = {
        "target": "a",
        "null": True,
        "epochs": 1,
        "dp_epsilon": None,
        "form": "paper",
        "search": "union",
    }
    about |= {
        "ceiling": 3.0,
        "baseline_auc": 0.5,
        "mia_auc": 0.5,
        "audit": "panoramia",
        "eps": np.nan,
    }
    bounds = pd.DataFrame({"c_lb": [0.5, 0.4, 0.6], "c_plus_eps_lb": [0.2, 0.6, 0.4]})
    table = bounds.assign(**about, eps_tilde=[0.0, 0.2, 0.0])
    (row,) = means_over_games(table).to_dict("records")
    assert row["value"] == 0.0  # the mean of -0.3, 0.2 and -0.2, not of 0, 0.2 and 0
    assert row["value_sd"] == pytest.approx(np.std([-0.3, 0.2, -0.2], ddof=1))
    chosen = "target == 'E1' and audit == 'panoramia' and search == 'union'"
    table = results.forms["helpers"].table.query(chosen)
    found = shared.by_game(results.forms["helpers"], "E1")
    assert found.tolist() == (table["c_plus_eps_lb"] - table["c_lb"]).tolist()
    assert found.min() < 0
    assert found.index.tolist() == [0, 1]
    assert shared.by_game(results.forms["paper"], "E1", "o1").empty
    refused("target: 'E9'", shared.by_game, results.forms["paper"], "E9")


E1, E6, NULL = Target("E1", "trained", 1), Target("E6", "trained", 6), Target("null", "null", 6)
M = 210


def audits(played, *, shifts, config=None):
    """Games in which attacks beat noise by a target's shift, the baseline by 1; another shift each
    game.
    """
    config = config or AuditConfig(train=2, validation=2, test=M, repetitions=2)
    judged = []
    for seed in range(config.repetitions):
        rng = np.random.default_rng(seed)
        members = rng.random(M) < 0.5
        for target, shift in shifts.items():
            for audit in played:
                baseline, attack = rng.normal(size=(2, M)) + np.outer(
                    [1, shift + 0.5 * seed], members
                )
                judged.append(TargetScores(target, audit, seed, baseline, attack, members))
    return TargetAudits(tuple(judged), config)


SHIFTS = {E1: 0.0, E6: 3.0, NULL: 0.0}


@pytest.fixture(scope="module")
def results():
    pool = Pool(np.zeros((2, 1)), {}, {target.name: np.zeros((2, 1)) for target in SHIFTS})
    larger = {target: 2 + shift for target, shift in SHIFTS.items()}
    forms = {"helpers": audits(["panoramia", "rm_rn", "o1"], shifts=SHIFTS)}
    forms["paper"] = audits(["panoramia", "rm_rn"], shifts=larger)
    return PanoramiaResults(Pools(pool, pool, None, tuple(SHIFTS)), forms)


def test_pairs_and_helpers_are_compared_within_a_game_and_a_missing_one_is_left_out():
    first, second = pd.Series([1.0, 5.0], index=[7, 8]), pd.Series([4.0, 0.5], index=[8, 7])
    assert shared.differences_by_game(first, second) == [0.5, 1.0]
    assert shared.differences_by_game(first, second.drop(7)) == [1.0]
    assert shared.differences_by_game(first, second.iloc[:0]) == []
    c_lb = {"none": (1.0, 2.0), "synthetic": (1.5, 2.25), "real": (1.25, 3.0)}
    rows = [
        (name, seed, value) for name, values in c_lb.items() for seed, value in enumerate(values)
    ]
    games = pd.DataFrame(rows, columns=["helper", "seed", "c_lb"])
    claims = ("generated over none", "real over none", "generated over real")
    for table, real, expected in (
        ("panoramia-table-02", "real", ([0.5, 0.25], [0.25, 1.0], [0.25, -0.75])),
        ("panoramia-table-05", "non-members", ([0.5, 0.25], [], [])),
    ):
        found = shared.helper_table(table, games, real).values
        assert found == dict(zip(claims, expected, strict=True))


def test_table_three_compares_levels_and_audits_in_the_papers_form_and_nothing_not_played(results):
    values = shared.table_three_evidence(results, ["E1", "E6"]).values
    form = results.forms["paper"]
    own = {name: shared.by_game(form, name) for name in ("E1", "E6")}
    assert values["eps~ grows"] == {"E6 over E1": (own["E6"] - own["E1"]).tolist()}
    assert min(values["eps~ grows"]["E6 over E1"]) > 0
    grid = shared.by_game(results.forms["helpers"], "E6", "o1")
    real = shared.by_game(form, "E6", "rm_rn")
    assert values["RM;RN below O(1)"]["E6"] == (grid - real).tolist()
    assert values["eps~ below RM;RN"]["E6"] == (real - own["E6"]).tolist()
    assert values["null"] == {"null": shared.by_game(form, "null").tolist()}
    alone = PanoramiaResults(
        results.pools, {"paper": audits(["panoramia"], shifts={E1: 0.0})}, "paper"
    )
    values = shared.table_three_evidence(alone, ["E1"]).values
    assert values == {
        "eps~ grows": {},
        "eps~ below RM;RN": {"E1": []},
        "RM;RN below O(1)": {"E1": []},
        "null": {},
    }
    assert shared.figure_six(alone, "E1").values["passes O(1)"] == []


def test_figure_six_sets_the_test_part_against_a_quarter_and_ten_counts_the_first_tenth(results):
    values = shared.figure_six(results, "E6").values
    games = results.forms["paper"].select("panoramia", target="E6")
    grids = results.forms["helpers"].select("o1", target="E6")
    for at, (game, grid) in enumerate(zip(games, grids, strict=True)):
        whole, quarter = (game.first(size).row("union", 0.95) for size in (M, M // 4))
        tilde = whole["c_plus_eps_lb"] - whole["c_lb"]
        assert values["grows with m"][at] == tilde - (quarter["c_plus_eps_lb"] - quarter["c_lb"])
        assert values["passes O(1)"][at] == tilde - grid.first(120).row("union", 0.95)["eps"]
    members = np.arange(20) % 2 == 0
    scores = np.where(np.arange(20) == 3, 2.0, np.where(np.arange(20) == 4, 1.0, 0.0))
    game = TargetScores(E1, "panoramia", 5, -np.arange(20.0), scores, members)
    surer = replace(
        game, attack=np.where(np.arange(20) == 3, 0.0, scores)
    )  # the first is number 4, then 0
    form = TargetAudits((game,), AuditConfig(train=2, validation=2, test=20))
    values = shared.figure_ten(form, "E1").values
    assert values == {"members first": [0.0], "room above": [0.5]}
    assert shared.figure_ten(replace(form, judged=(surer,)), "E1").values["members first"] == [0.5]


def test_figure_fifteen_takes_the_largest_family_at_equal_epochs_without_dp():
    about = {
        "resnet18 E9": ("trained", "resnet18", 9, 10),
        "wrn E1": ("trained", "wrn-16-4", 1, 10),
        "resnet101 E9": ("trained", "resnet101", 9, 80),
        "null": ("null", "resnet101", 9, 80),
        "resnet50 DP": ("private", "resnet50", 9, 90),
        "other null": ("null", "wrn-16-4", 9, 10),
    }
    targets = [Target(name, kind, epochs) for name, (kind, _, epochs, _) in about.items()]
    details = pd.DataFrame(
        {"architecture": [row[1] for row in about.values()], "train_metric": 1.0}
    )
    details = details.assign(parameters=[row[3] for row in about.values()], test_metric=0.5)
    pool = Pool(np.zeros((2, 1)), {}, {name: np.zeros((2, 1)) for name in about})
    pools = Pools(pool, pool, None, tuple(targets), details=details)
    config = AuditConfig(train=2, validation=2, test=M, repetitions=2, form="paper")
    shifts = {target: at for at, target in enumerate(targets)}
    form = audits(["panoramia", "rm_rn", "o1"], shifts=shifts, config=config)
    found = figure_fifteen(PanoramiaResults(pools, {"paper": form}, "paper")).values
    eps = {name: shared.by_game(form, name) for name in about}
    assert found["larger leaks more"] == (eps["resnet101 E9"] - eps["resnet18 E9"]).tolist()
    assert found["null"] == {"null": eps["null"].tolist()}
    assert found["sizes apart"].value == 8
    private = replace(pools, targets=tuple(replace(one, kind="private") for one in targets))
    found = figure_fifteen(PanoramiaResults(private, {"paper": form}, "paper")).values
    assert list(found.values()) == [[], [], []]
