"""PANORAMIA on tables: disjoint parts, what pools hold, the null control, and the tables of the
page.
"""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.panoramia.pools import Target
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.audits.panoramia.run import audit_pools
from paperlib.audits.panoramia.table_models import Learning, RowEncoder
from paperlib.reproduction.data.tables import adult
from paperlib.reproduction.data.tables.labelled import load_table
from paperlib.reproduction.papers.panoramia.null import experiment as null
from paperlib.reproduction.papers.panoramia.tables import pools as tabular
from paperlib.reproduction.papers.panoramia.tables import tables as tables
from paperlib.reproduction.papers.panoramia.tables.lira import judged_rows
from paperlib.reproduction.papers.panoramia.tables.pools import (
    PartSizes,
    TabularConfig,
    build_pools,
    draw_rows,
    split_table,
    tabular_pools,
)
from paperlib.reproduction.papers.panoramia.tables.sizes import tabular_audit, tabular_config
from paperlib.reproduction.papers.verdict import Estimate
from tests.refusals import refused

LEARNING = Learning(hidden=(64,), batch_size=100, learning_rate=1e-2)
SMALL = tabular_config("smoke", dp_epsilons=(), epochs=(1, 80), learning=LEARNING)
AUDIT = tabular_audit("smoke")
SIZES = ("generator", "members", "null", "nonmembers")


@pytest.fixture(scope="module")
def pools():
    return tabular_pools(SMALL)


def test_parts_of_randhie_share_no_row_and_the_null_target_learns_none_of_the_members():
    table = load_table("randhie", "visits")
    assert len(table.rows) == 2760
    assert not table.rows.drop(columns="visits").duplicated().any()
    assert table.classes == tuple(map(str, range(12)))
    rows = draw_rows(SMALL)
    keys = [tuple(row) for part in rows.parts.values() for row in part.to_numpy()]
    assert len(set(keys)) == len(keys)
    assert {name: len(part) for name, part in rows.parts.items()} == vars(SMALL.sizes)


def test_generated_rows_are_kept_and_do_not_depend_on_targets(monkeypatch):
    config = SMALL
    first = tabular.tabular_rows(config)
    monkeypatch.setattr(TabularConfig, "table_generator", None)  # a second fit would fail
    again = tabular.tabular_rows(replace(config, epochs=(3,), dp_epsilons=(1.0,)))
    pd.testing.assert_frame_equal(first.generated, again.generated)
    tabular.tabular_rows(replace(config, stronger=("gradient_norm", "lira_online")))
    with pytest.raises(TypeError):
        tabular.tabular_rows(replace(config, bins=7))


def test_pools_name_every_model_and_losses_are_low_on_members_of_the_target_alone(pools):
    assert pools.target_names == ("MLP, 1 epochs", "MLP, 80 epochs", "null")
    assert pools.helper_names == ("synthetic", "real")
    assert pools.table["null"].tolist() == [False, False, True]
    for pool in pools.by_kind().values():
        assert pool.examples.shape == (300, 10)
        assert {values.shape for values in pool.targets.values()} == {(300, 1)}
    assert pools.table["train_accuracy"].iloc[1] > pools.table["test_accuracy"].iloc[1]
    members, others = (pool.targets for pool in (pools.members, pools.nonmembers))
    leak, null = (others[name].mean() - members[name].mean() for name in ("MLP, 80 epochs", "null"))
    assert leak > max(0.05, abs(null))


def test_targets_learn_the_generators_rows_too_and_have_their_epsilon_in_the_table(monkeypatch):
    train = Mock(wraps=tabular.train)
    monkeypatch.setattr(tabular, "train", train)
    sizes = PartSizes(generator=70, members=60, null=50, nonmembers=40)
    learning = Learning(hidden=(4,), dp_epochs=2)
    models = {"epochs": (1,), "dp_epsilons": (2.0, 8.0), "helper_rows": 20}
    table = build_pools(TabularConfig(sizes=sizes, learning=learning, **models)).table.set_index(
        "target"
    )
    # A helper, the generator's helper, the null target, and those with and without DP.
    learned = sorted((len(one.args[1]), len(one.args[2])) for one in train.mock_calls)
    assert learned == [(20, 1), (70, 1), (120, 1), (130, 3)]
    assert table.loc["MLP, DP epsilon 8", "dp_epsilon"] == 8
    assert table.loc["MLP, DP epsilon 2", "epochs"] == 2
    assert np.isnan(table.loc["null", "dp_epsilon"])


@pytest.fixture(scope="module")
def results():
    return tables.run_tabular([SMALL], replace(AUDIT, repetitions=2))


def test_the_difference_of_a_game_is_not_clipped_before_a_mean(results):
    game = results.first.decisive.select("panoramia")[0]
    noise = np.random.default_rng(0).normal(0, 0.1, game.membership.size)
    row = replace(game, baseline=game.membership + noise).row("union", 0.95)
    assert row["eps_tilde"] == row["c_plus_eps_lb"] - row["c_lb"] < -1


def test_the_papers_values_stand_beside_the_targets_trained_shortest_and_longest(results):
    shown = tables.table_six(results, form="helpers")
    direct = results.table.query("target == 'null' and audit == 'panoramia' and form == 'helpers'")
    assert shown.loc[2, "eps_tilde"] == direct.query("search == 'union'")["eps_tilde"].mean()
    both = tables.table_six_beside_paper(shown)
    assert both.loc[0, ["paper_eps_tilde", "paper_o1", "paper_o1_sd"]].tolist() == [0, 0.655, 0.014]
    names = ["MLP, 5 epochs", "MLP, 50 epochs", "MLP, 150 epochs", "null"]
    ours = pd.DataFrame({"label": ["a"] * 4 + ["b"] * 4, "target": names * 2, "source": "ours"})
    ours[["eps_tilde", "train_accuracy", "test_accuracy", "rm_rn", "rm_rn_sd", "o1"]] = 0.1
    printed = pd.DataFrame({"source": ["paper"], "target": "MLP_E10"})
    shown = tables.table_six_beside_paper(pd.concat([ours, printed]))
    assert list(shown["paper_eps_tilde"].fillna(-1)) == [0, -1, 0.062, *[-1] * 5], "of one label"
    assert list(shown["paper_target"].dropna()) == ["MLP_E10", "MLP_E100"]


def test_evidence_is_about_the_first_label_with_a_number_for_each_of_several_pools(results):
    run, other = results.first, replace(SMALL, label="other")
    by_target = tables.evidence(tables.TabularResults({SMALL: run, other: run}))
    assert [name[10:] for name in by_target] == ["table-06", "figure-10", "figure-12"]
    found = list(by_target.values())
    games = results.table.query("form == 'paper' and search == 'union'").set_index(
        ["target", "seed"]
    )
    own = games["c_plus_eps_lb"] - games["c_lb"]
    names = ["MLP, 1 epochs", "MLP, 80 epochs"]
    assert found[0].values["eps~ near 0"] == {name: own[name].tolist() for name in names}
    assert found[0].values["null"] == {"null": own["null"].tolist()}
    assert len(found[1].values["members first"]) == len(found[2].values["extremes first"]) == 2
    splits = tables.evidence(tables.TabularResults({SMALL: run, replace(SMALL, seed=1): run}))
    two, twelve = (splits[f"panoramia-{item}"] for item in ("table-06", "figure-12"))
    assert [one.unit for one in (found[0], found[2], two, twelve)] == [
        "game",
        "game",
        "model",
        "model",
    ]
    assert len(twelve.values["extremes first"]) == 2
    assert two.values["null"] == {"null": [own["null"].mean()] * 2}
    eps = results.table.query("audit == 'o1' and search == 'union'").groupby("target")["eps"].mean()
    assert two.values["O(1) positive"] == {name: [eps[name]] * 2 for name in names}
    assert own["MLP, 80 epochs"].std() > 0
    config, run = replace(SMALL, dataset="adult", label="income"), results.first
    above = 100 * run.pools.table["train_accuracy"][1] - 82
    assert tables._above_printed({config: run}, "MLP, 80 epochs") == Estimate(above)
    for several, expected in (
        ((config, replace(config, seed=1)), [above, above]),
        ((SMALL,), []),
        ((replace(config, label="occupation"),), []),
    ):
        assert tables._above_printed(dict.fromkeys(several, run), "MLP, 80 epochs") == expected


@pytest.mark.parametrize(("sign", "first"), [(1, 1.0), (-1, 0.0)])
def test_extreme_rows_are_counted_in_the_first_guesses_of_each_game(sign, first):
    """Every tenth member holds a value that no generated row comes near."""
    members = pd.DataFrame({"gain": np.where(np.arange(300) % 10, 1, 500), "word": "x"})
    rows = SimpleNamespace(
        parts={"members": members}, generated=members.assign(gain=np.arange(300) % 50)
    )
    judged = []
    for seed in (0, 1):
        shown = judged_rows(300, 300, AUDIT, seed)
        surest = sign * np.where((shown < 300) & (shown % 10 == 0), 1.0, 0.0)
        judged.append(
            TargetScores(Target("null", "null"), "panoramia", seed, surest, surest, shown < 300)
        )
    found = tables.extremes_first(rows, TargetAudits(tuple(judged), AUDIT), "null")
    assert found == pytest.approx([first - 0.2] * 2)


def test_extreme_values_are_found_where_they_tell(monkeypatch):
    """A column whose large values the generator never makes: the baseline is surest of just these
    rows.
    """
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(400) < 0.1, 99_999, rng.integers(0, 50, 400))
    members = pd.DataFrame({"gain": gain, "word": rng.choice(["x", "y"], 400)})
    made = members.assign(gain=rng.integers(0, 50, 400))
    rows = SimpleNamespace(parts={"members": members}, generated=made)
    monkeypatch.setattr(tables, "tabular_rows", lambda config: rows)
    table = tables.extreme_values(SMALL).set_index("column")
    assert table.loc["gain", "top"] > 0.9
    assert table.loc["gain", "members"] == pytest.approx(0.1, abs=0.04)
    assert table.loc["word", "top"] == 0


def test_encoder_is_fitted_on_the_generators_rows_alone():
    rows = pd.DataFrame({"age": [1, 3], "job": ["a", "b"], "label": ["x", "y"]})
    encoder = RowEncoder.fit(rows, "label", ("x", "y"))
    x, y = encoder(rows.assign(age=[2, 4], job=["b", "c"]))
    assert x.tolist() == [[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]]
    assert y.tolist() == [0, 1]
    refused("labels of x, y, got z", encoder, rows.assign(label=["x", "z"]))


def test_adult_is_read_from_its_checked_files(tmp_path, monkeypatch):
    row = (
        "39",
        "State-gov",
        "77516",
        "Bachelors",
        "13",
        "Never-married",
        "Adm-clerical",
        "Not-in-family",
        "White",
        "Male",
        "2174",
        "0",
        "40",
        "United-States",
        "<=50K",
    )
    for name in ("TRAIN", "TEST"):
        part = replace(getattr(adult, name), rows=1, sha256=adult._digest([row]))
        (tmp_path / part.files[0]).write_text(adult.plain_text([row]), encoding="utf-8")
        monkeypatch.setattr(adult, name, part)
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    load_table.cache_clear()
    table = load_table("adult", "occupation")
    load_table.cache_clear()
    assert len(table.rows) == 2
    assert table.rows["age"].dtype.kind == "i"
    assert table.classes == ("Adm-clerical",)


def test_bad_settings_are_refused():
    few, sizes = pd.DataFrame({"a": range(50)}), PartSizes(**dict.fromkeys(SIZES, 15))
    refused("dataset: expected one of 'randhie', 'adult'", load_table, "iris", "visits")
    refused("label: expected one of 'visits'", load_table, "randhie", "income")
    refused("size: expected one of", tabular_config, "huge")
    refused("epochs: expected different numbers", tabular_config, "smoke", epochs=(5, 2))
    refused("stronger: expected one of 'lira_offline'", tabular_config, "smoke", stronger=("lira",))
    refused(
        "stronger: expected each attack once", tabular_config, "smoke", stronger=("rmia", "rmia")
    )
    refused("shadows: expected 2 or more", tabular_config, "smoke", stronger=("rmia",), shadows=1)
    refused(
        "shadows: expected an even", tabular_config, "smoke", stronger=("lira_online",), shadows=5
    )
    refused("generator: expected one of", tabular_config, "smoke", generator="gan")
    refused("filter: expected one of", tabular_config, "smoke", filter="all")
    refused("repetitions", null.NullControl, repetitions=0)
    refused("generator: expected 10", PartSizes, generator=9, members=10, null=10, nonmembers=10)
    refused("helper_knows", null.toy_pools, 100, 2.0)
    refused("members", null.NullControl, members=50)
    refused("15 members .* are 60 rows, and the table has 50", split_table, few, sizes, 0)


def test_null_control_counts_what_a_weak_helper_lets_through_and_holds_no_informed_target():
    """The toy: no leakage reported where the helper knows what the target knows, plenty where it
    does not.
    """
    control = null.NullControl(repetitions=4, members=400)
    worlds = {
        "fair": lambda seed: null.toy_pools(400, 1.0, shift=1.5, seed=seed),
        "weak": lambda seed: null.toy_pools(400, 0.0, shift=1.5, seed=seed),
        f"half {null.CONTRAST}": lambda seed: null.toy_pools(400, 0.5, shift=1.5, seed=seed),
    }
    table = null.null_false_positives(null.run_null_control(control, worlds))
    table = table.set_index(["world", "form", "search"])
    for form in ("helpers", "paper"):
        assert table.loc[("fair", form, "union"), "above 0.1"] <= 0.25
        assert table.loc[("weak", form, "union"), "above 0.1"] >= 0.75
    assert table["repetitions"].tolist() == [4] * 8 + [2] * 4, "half as many for contrast"
    none = table[table["above 0.1"] == 0]
    np.testing.assert_allclose(none["above 0.1, high"], 1 - 0.025 ** (1 / none["repetitions"]))
    pools = next(iter(null.NullControl(members=100, epochs=1).worlds().values()))(0)
    assert pools.target_names == ("null",)
    small = replace(null.NullControl(members=100).audit(), attacks=(BoostedTrees(rounds=2),))
    assert audit_pools(pools, small, audits=["panoramia"]).table["null"].all()
