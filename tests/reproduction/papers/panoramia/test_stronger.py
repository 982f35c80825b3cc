"""Stronger attacks on tables: whose number stands where, and who may see what."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import logit

from paperlib.attacks.gradients import gradient_norms
from paperlib.attacks.shadow import lira_offline, lira_online, rmia
from paperlib.audits.panoramia.pools import Pool
from paperlib.audits.panoramia.run import audit_pools
from paperlib.audits.panoramia.table_models import Learning, train
from paperlib.reproduction.papers.panoramia.tables import lira as tabular_online
from paperlib.reproduction.papers.panoramia.tables import pools as tabular
from paperlib.reproduction.papers.panoramia.tables.lira import game_pools, judged_rows, shown_rows
from paperlib.reproduction.papers.panoramia.tables.shadows import (
    STRONGER,
    Shadows,
    numbers,
    shadow_models,
)
from paperlib.reproduction.papers.panoramia.tables.sizes import tabular_audit, tabular_config
from paperlib.reproduction.papers.panoramia.tables.tables import only_columns, strong_attacks

LEARNING = Learning(hidden=(64,), batch_size=100, learning_rate=1e-2)
MODELS = {"dp_epsilons": (), "epochs": (60,), "learning": LEARNING}
CONFIG = tabular_config("smoke", stronger=tuple(STRONGER), shadows=4, **MODELS)
AUDIT = tabular_audit("smoke")
TRAINED = "MLP, 60 epochs"


class World:
    """A target and three shadow models on 40 rows."""

    def __init__(self):
        rows = tabular.tabular_rows(CONFIG)
        self.rows, self.population = rows.parts["members"][:40], rows.spare[:30]
        self.encoder = rows.encoder
        self.target = train(self.encoder, self.rows, [CONFIG.learning.plain(self.encoder, 8, 1)])
        parts = [np.arange(start, start + 90) for start in (0, 50, 100)]
        models = shadow_models(self.encoder, rows.parts["generator"], parts, CONFIG.learning, 8, 5)
        self.shadows = Shadows(self.encoder, models, self.population)

    def chances(self, rows, *models):
        """Each model's probability of the label of each row, in double precision."""
        x, y = self.encoder(rows)
        logits = torch.stack([model.logits(x)[0].double() for model in models])
        return torch.softmax(logits, dim=2)[:, torch.arange(len(y)), torch.as_tensor(y)].numpy()


@pytest.fixture(scope="module")
def world():
    return World()


def test_the_loss_comes_first_and_then_the_attacks_in_the_asked_order(world):
    names = ("gradient_norm", "lira_online", "rmia", "lira_offline")
    found = numbers(names, world.encoder, (world.target, 0), world.rows, world.shadows)
    every = world.target, *world.shadows.models
    p, *out = world.chances(world.rows, *every)
    population, *out_population = world.chances(world.population, *every)
    x, y = world.encoder(world.rows)
    wanted = [
        -np.log(p),
        gradient_norms(world.target.model(0), x, y),
        -logit(p),  # until a game has its own shadow models
        -rmia(p, np.array(out), population, np.array(out_population)),
        -lira_offline(logit(p), logit(out), fixed_variance=True),  # three shadow models are few
    ]
    np.testing.assert_allclose(found, np.stack(wanted, axis=1), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="shadows: rmia needs shadow models"):
        numbers(("rmia",), world.encoder, (world.target, 0), world.rows)


def test_online_shadows_learn_each_row_in_half_of_the_models():
    shown = np.arange(20), np.arange(20)
    shadows, included = tabular_online._trained(
        CONFIG, tabular.tabular_rows(CONFIG), shown, 0
    ).values()
    assert (included.sum(axis=0) == 2).all()
    assert (included.sum(axis=1) == 20).all()
    gap = shadows[included].mean() - shadows[~included].mean()
    turned = np.roll(included, 7, axis=1)  # the wrong rows
    assert gap > 1
    assert gap > shadows[turned].mean() - shadows[~turned].mean() + 1


def test_a_gradient_norm_needs_no_shadow_model_and_columns_are_kept_by_name(monkeypatch):
    monkeypatch.setattr(tabular, "shadow_models", None)
    config = replace(CONFIG, stronger=("gradient_norm",), epochs=(1,))
    assert not len(tabular.draw_rows(config).spare)
    pools = tabular.build_pools(config)
    assert pools.members.targets["null"].shape == (300, 2)
    narrowed = only_columns(pools, ("loss", "gradient_norm"), ("gradient_norm", "loss"))
    np.testing.assert_array_equal(
        narrowed.members.targets["null"], pools.members.targets["null"][:, [1, 0]]
    )
    with pytest.raises(ValueError, match="names: expected some of loss, gradient_norm, got rmia"):
        only_columns(pools, ("loss", "gradient_norm"), ("rmia",))


def watch_shadows(monkeypatch):
    """A list that will hold the rows that shadow models are to learn from now on; none is
    trained.
    """
    seen = []
    for module in (tabular, tabular_online):
        monkeypatch.setattr(
            module, "shadow_models", lambda encoder, rows, *rest: [seen.append(rows)]
        )
    monkeypatch.setattr(tabular_online, "log_odds", lambda *_: np.zeros((1, 1)))
    return seen


def test_offline_shadows_see_no_audited_row(monkeypatch):
    rows, learned = tabular.tabular_rows(CONFIG), watch_shadows(monkeypatch)
    tabular._shadows(CONFIG, rows)
    real, made = (
        learned[0][: len(rows.parts["generator"])],
        learned[0][len(rows.parts["generator"]) :],
    )
    pd.testing.assert_frame_equal(made.reset_index(drop=True), rows.spare[: len(made)])
    known = set(map(tuple, real.to_numpy()))  # a generated row may equal a real one by chance
    for part in ("members", "nonmembers", "null"):
        assert not known & set(map(tuple, rows.parts[part].to_numpy()))


def test_online_shadows_see_no_row_that_the_game_leaves_out(monkeypatch):
    """Whatever the numbers of rows that are not shown, the game ends alike; those shown matter."""
    pools, shown = game_pools(CONFIG, AUDIT, 7)
    assert sum(map(len, shown)) == AUDIT.train + AUDIT.validation + AUDIT.test
    once = replace(AUDIT, repetitions=1, seed=7)
    place = CONFIG.columns.index("lira_online")
    hidden = np.setdiff1d(np.arange(300), shown[0])

    def bounds(poisoned):
        members = pools.members
        targets = {name: values.copy() for name, values in members.targets.items()}
        targets[TRAINED][poisoned, place] = 1e6
        poisoned_pools = replace(pools, members=replace(members, targets=targets), key="")
        narrowed = only_columns(poisoned_pools, CONFIG.columns, ("lira_online",))
        judged = audit_pools(narrowed, once, targets=[TRAINED], audits=["panoramia"]).judged
        return judged[0].attack

    np.testing.assert_array_equal(bounds(hidden), bounds([]))
    assert (bounds(shown[0][:50]) != bounds([])).any()
    rows, learned = tabular.tabular_rows(CONFIG), watch_shadows(monkeypatch)
    tabular_online._trained(CONFIG, rows, shown, 7)
    left_out = set(map(tuple, rows.parts["members"].iloc[hidden].to_numpy()))
    real, made = learned[0][: len(shown[0])], learned[0][len(shown[0]) :]
    assert not left_out & set(
        map(tuple, real.to_numpy())
    )  # a generated row may equal a real one by chance
    wanted = rows.generated.iloc[shown[1]]
    pd.testing.assert_frame_equal(made.reset_index(drop=True), wanted.reset_index(drop=True))


def test_online_numbers_do_not_tell_the_kind_of_a_row():
    """One formula for all rows shown: who is called a member changes no row's number."""
    rng = np.random.default_rng(0)
    shadows = rng.normal(size=(4, 12)) * np.repeat([1.0, 9.0], 6)  # one kind is far more spread out
    included = np.array([[1], [0], [1], [0]]).repeat(12, axis=1).astype(bool)
    confidence = rng.normal(size=12)

    def numbers_if(members):
        others = np.setdiff1d(np.arange(12), members)
        pair = [
            Pool(np.zeros((6, 1)), {}, {"t": -confidence[rows, None]}) for rows in (members, others)
        ]
        every, shown = np.concatenate([members, others]), (np.arange(6), np.arange(6))
        found = tabular_online._with_online(pair, 0, shown, shadows[:, every], included[:, every])
        values = np.empty(12)
        values[every] = np.concatenate([pool.targets["t"][:, 0] for pool in found])
        return values

    np.testing.assert_allclose(numbers_if(np.arange(6)), numbers_if(np.arange(0, 12, 2)))
    wanted = -lira_online(confidence, shadows, included, fixed_variance=True)
    np.testing.assert_allclose(numbers_if(np.arange(6)), wanted)


def test_offline_numbers_do_not_tell_the_kind_of_a_row():
    """Rows that stand in two parts have one number, though the parts differ in spread."""
    rows = tabular.tabular_rows(CONFIG)
    config = replace(CONFIG, epochs=(2,), stronger=("lira_offline", "rmia"))
    models = {at: tabular._alone(config, rows, rows.helper, salt=at) for at in (4, 5)}
    shadows = tabular._shadows(config, rows)
    parts = {str(count): rows.parts["members"][:count] for count in (20, 60)}
    for said in tabular._outputs(config, rows.encoder, models, parts, shadows).values():
        np.testing.assert_allclose(said["20"], said["60"][:20], rtol=1e-5)


def test_judged_rows_are_those_of_the_game_in_its_order():
    """The losses that the game judges are those of these rows, members first in their numbering."""
    assert shown_rows(300, 300, AUDIT, 1)[0].tolist() != shown_rows(300, 300, AUDIT, 2)[0].tolist()
    pools = tabular.build_pools(replace(CONFIG, stronger=(), epochs=(2,)))
    game = audit_pools(
        pools, replace(AUDIT, seed=3), targets=["null"], audits=["panoramia"]
    ).judged[0]
    rows = judged_rows(len(pools.members), len(pools.generated), AUDIT, 3)
    np.testing.assert_array_equal(rows < len(pools.members), game.membership)
    real = audit_pools(pools, replace(AUDIT, seed=3), targets=["null"], audits=["o1"]).judged[0]
    losses = pools.members.targets["null"][rows[game.membership], 0]
    np.testing.assert_array_equal(real.attack[real.membership], -losses)


def test_every_attack_has_a_row_for_the_target_and_for_the_null():
    table = strong_attacks(CONFIG, AUDIT, names=[TRAINED, "null"])
    assert table["target"].tolist() == [TRAINED] * 6 + ["null"] * 6
    assert table["attack"].tolist() == ["loss", *STRONGER.values(), "all"] * 2
    pools, shown = game_pools(CONFIG, AUDIT, AUDIT.seed)
    every, place = slice(None), CONFIG.columns.index("lira_online")
    for attack, column, others, rows, at in (
        ("loss", "auc_real", pools.nonmembers, (every, every), 0),
        ("LiRA (online)", "auc_generated", pools.generated, shown, place),
    ):
        member, other = (
            pools.members.targets["null"][rows[0], at],
            others.targets["null"][rows[1], at],
        )
        wins = (member[:, None] < other).mean() + (member[:, None] == other).mean() / 2
        found = table[(table["attack"] == attack) & (table["target"] == "null")].iloc[0]
        assert found[column] == pytest.approx(wins)
    assert table.loc[table["attack"] == "LiRA (online)", "auc_real"].isna().all()
    online = table[(table["attack"] == "LiRA (online)")].set_index("target")["auc_generated"]
    assert online[TRAINED] > 0.6 > online["null"]
