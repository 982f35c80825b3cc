"""Pools of images, on few digits and small networks."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from paperlib.attacks.learned.images import ImageStack
from paperlib.audits.panoramia.game import AuditConfig, smallest_pool
from paperlib.audits.panoramia.image_models import ImageHelper
from paperlib.audits.panoramia.pools import Pool, Pools, Target
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.audits.panoramia.run import over_training_size
from paperlib.bounds.one_run.tails import epsilon_from_counts
from paperlib.generators.image_quality import FakeFilter
from paperlib.generators.images import FlowConfig
from paperlib.models.images import build_image_model, image_logits
from paperlib.models.images.build import ImageArchitecture
from paperlib.reproduction.data.registry import load_images
from paperlib.reproduction.papers.panoramia import results as shared
from paperlib.reproduction.papers.panoramia.images import models as image_models
from paperlib.reproduction.papers.panoramia.images import pools as image_stages
from paperlib.reproduction.papers.panoramia.images import tables as image_tables
from paperlib.reproduction.papers.panoramia.images.data import (
    PARTS,
    ImageSplit,
    noisy_labels,
    split_images,
)
from paperlib.reproduction.papers.panoramia.images.models import ImageTarget, parse_targets
from paperlib.reproduction.papers.panoramia.images.pools import (
    ImageConfig,
    generated_images,
    image_pools,
    load_split,
)
from paperlib.reproduction.papers.panoramia.results import PanoramiaResults, by_game, helper_games
from paperlib.reproduction.papers.verdict import Estimate
from paperlib.reproduction.papers.verdict.evidence import rules
from tests.refusals import refused

SMALL = {"epochs": 1, "width": 4}
LABELER, REAL = (ImageHelper(name=name, data="real", **SMALL) for name in ("labeler", "real"))
SYNTHETIC = ImageHelper(name="synthetic", data="synthetic", **SMALL)
TARGETS = ["mlp@8:1", "mlp@8:30", "null mlp@8:30", "mlp@16:30", "null mlp@16:30"]
CONFIG = ImageConfig(
    split=ImageSplit(generator=90, members=80, nonmembers=80, others=80),
    generator=FlowConfig(width=16, blocks=1, steps=20, sampler_steps=3, levels=5),
    fakes=FakeFilter(epochs=1, width=2, threshold=0.95),
    generated=80,
    helper_images=60,
    labeler=LABELER,
    helpers=(SYNTHETIC, REAL),
    targets=parse_targets(TARGETS, learning_rate=5e-3),
)


@pytest.fixture(scope="module")
def pools():
    return image_pools(CONFIG)


AUDIT = AuditConfig(
    train=40,
    validation=20,
    test=50,
    attacks=(ImageStack(loss_steps=20),),
    repetitions=1,
    restarts=1,
)


@pytest.fixture(scope="module")
def results(pools):
    return image_tables.run_images(pools, AUDIT)


def test_targets_are_read_from_words():
    targets = parse_targets(
        ["wrn-28-10:300", "null cnn@4:2"], batch_size=7, cnn={"dp_epsilon": 8.0}
    )
    assert [target.name for target in targets] == ["wrn-28-10 E300", "null cnn-4 E2 DP 8"]
    about = [(one.architecture, one.width, one.epochs, one.null) for one in targets]
    assert about == [("wrn-28-10", 16, 300, False), ("cnn", 4, 2, True)]
    both = parse_targets(["cnn:1", "mlp:1"], batch_size=7, mlp={"batch_size": 9})
    assert [target.batch_size for target in both] == [7, 9]
    for wrong in ("cnn", "vgg:3", "cnn@4", "cnn@x:2", "nullcnn:2"):
        refused("targets: expected", parse_targets, [wrong])


def test_parts_are_disjoint_and_half_of_the_drawn_labels_differ():
    images = split_images(ImageSplit(side=None, levels=256, label_noise=0.5))
    assert len({image.tobytes() for part in PARTS for image in images.parts[part].x}) == 5000
    for part in images.parts.values():
        assert 0.4 < (part.y != part.true).mean() < 0.5
    attributes = noisy_labels(np.zeros((500, 4), dtype=np.int64), 1.0, 4, np.random.default_rng(0))
    assert 0.4 < attributes.mean() < 0.6


def test_official_parts_keep_the_test_part_apart_and_train_on_all_else(monkeypatch):
    sizes = {"generator": 900, "members": 1200, "nonmembers": 950, "others": 1300}
    split = ImageSplit(side=None, levels=256, label_noise=0.0, parts="official", **sizes)
    held = {image.tobytes() for image in load_images("mnist5k").test_x}
    images = split_images(split)
    dealt = {part: {image.tobytes() for image in images.parts[part].x} for part in PARTS}
    assert sum(map(len, dealt.values())) == len(set.union(*dealt.values())) == sum(sizes.values())
    assert dealt["nonmembers"] <= held
    left = held - dealt["nonmembers"]
    assert left & (dealt["generator"] | dealt["members"] | dealt["others"]), "dealt with the rest"
    assert split.trained_on() == ("generator", "members", "others")
    assert split.trained_on(null=True) == ("generator", "others")
    x, y = images.together(split.trained_on())
    assert np.shares_memory(x, images.parts["members"].x), "no second copy of the images"
    for part, start in (("generator", 0), ("members", 900), ("others", 2100)):
        stretch = slice(start, start + sizes[part])
        assert (x[stretch] == images.parts[part].x).all()
        assert (y[stretch] == images.parts[part].y).all()
    assert len(images.together(split.trained_on(null=True))[0]) == 2200
    refused("its test part has 1000", split_images, replace(split, nonmembers=1001, others=100))


def test_bad_settings_are_named():
    clean = replace(CONFIG.split, label_noise=0.0)
    refused(r"label_noise: expected a number in \[0, 1\]", ImageSplit, label_noise=2.0)
    refused("members: mnist5k has 5000 images, and 7800", split_images, ImageSplit(members=4000))
    refused("targets: expected at least one", replace, CONFIG, targets=())
    refused("targets: expected different names", replace, CONFIG, targets=CONFIG.targets[:1] * 2)
    refused("labels", replace, CONFIG, labels="guess")
    refused("helpers: real is the labeler itself", replace, CONFIG, labels="labeler", split=clean)
    refused("generator: expected levels 5", replace, CONFIG, generator=FlowConfig())
    refused("split: expected others above 0", replace, CONFIG, split=ImageSplit(others=0))
    refused("epochs: expected 1 or more", ImageTarget, name="x", epochs=0)
    refused("dp_epsilon: expected a finite number", ImageTarget, name="x", epochs=1, dp_epsilon=0.0)


def gap(pools, name):
    """How far the losses of real non-members lie above those of the members, on average."""
    return pools.nonmembers.targets[name][:, 0].mean() - pools.members.targets[name][:, 0].mean()


def test_pools_hold_answers_and_only_targets_that_saw_the_members_remember_them(pools):
    assert pools.target_names == (
        "mlp-8 E1",
        "mlp-8 E30",
        "null mlp-8 E30",
        "mlp-16 E30",
        "null mlp-16 E30",
    )
    assert pools.helper_names == ("synthetic", "real")
    for pool in pools.by_kind().values():
        assert (pool.examples.shape, pool.examples.dtype) == ((80, 1, 7, 7), np.uint8)
        for values in (*pool.helpers.values(), *pool.targets.values()):
            assert values.shape == (80, 2)
            assert (values[:, 0] >= values[:, 1] - 1e-6).all(), (
                "no label beats the model's own guess"
            )
    assert gap(pools, "mlp-16 E30") > max(0.0, gap(pools, "mlp-8 E1")) + 0.3
    assert abs(gap(pools, "null mlp-8 E30")) < 0.3
    table = pools.table.set_index("target")
    assert table.loc["mlp-16 E30", "train_metric"] > table.loc["mlp-16 E30", "test_metric"] + 0.1
    assert table["dp_epsilon"].isna().all()
    refused(
        "nonmembers: expected real ones",
        image_tables.run_images,
        replace(pools, nonmembers=None),
        AUDIT,
    )


def test_a_snapshot_is_a_run_of_its_own_length_and_a_helper_may_learn_other_real_images(pools):
    one = image_pools(replace(CONFIG, targets=CONFIG.targets[:1]))
    np.testing.assert_array_equal(
        one.members.targets["mlp-8 E1"], pools.members.targets["mlp-8 E1"]
    )
    more = ImageHelper(name="non-members", data="others", **SMALL)
    found = image_pools(replace(CONFIG, helpers=(*CONFIG.helpers, more)))
    assert found.helpers[-1].data == "real"
    own, real = (found.members.helpers[name] for name in ("non-members", "real"))
    assert (own != real).any()
    np.testing.assert_array_equal(real, pools.members.helpers["real"])


def test_other_targets_train_no_generator_nor_helper_anew_and_a_labeler_may_name_classes(
    pools, monkeypatch
):
    images, labeler = load_split(CONFIG), replace(CONFIG, labels="labeler")
    asked, made = generated_images(CONFIG, images), generated_images(labeler, images)
    np.testing.assert_array_equal(made.audit.x, asked.audit.x)
    assert (made.audit.true != asked.audit.true).any()
    monkeypatch.setattr(FlowConfig, "fit", None)
    monkeypatch.setattr(image_stages, "train_helper", None)
    more = image_pools(replace(CONFIG, targets=parse_targets(["mlp@4:1"])))
    np.testing.assert_array_equal(more.generated.examples, pools.generated.examples)
    with pytest.raises(TypeError):
        image_pools(replace(CONFIG, generator=replace(CONFIG.generator, steps=21)))


def test_dp_targets_keep_their_epsilon(monkeypatch):
    noise, fit = Mock(return_value=1.5), Mock(wraps=image_models.fit_dp)
    monkeypatch.setattr(image_models, "noise_for", noise)
    monkeypatch.setattr(image_models, "fit_dp", fit)
    private = ImageTarget(
        name="dp", architecture="cnn", width=2, epochs=2, dp_epsilon=2.0, batch_size=80
    )
    pools = image_pools(replace(CONFIG, targets=(private,)))
    assert pools.table["dp_epsilon"].tolist() == [2.0]
    config = fit.call_args.kwargs["config"]
    assert config.noise_multiplier == 1.5
    assert len(fit.call_args.args[1]) == 170
    asked = 2.0, config.sampling_rate(170), config.steps(170), 1e-5
    assert {one.args for one in noise.mock_calls} == {asked}


@pytest.mark.parametrize("name", ["mlp", "cosine", "cosine-mlp"])
def test_mlps_with_dp_are_trained_by_the_stack_and_keep_their_fixed_layers(name, monkeypatch):
    monkeypatch.setattr(image_models, "fit_dp", None)
    how = {"architecture": name, "width": 8, "epochs": 40, "batch_size": 64, "learning_rate": 0.05}
    target = ImageTarget(name="dp", dp_epsilon=200.0, **how)
    rng = np.random.default_rng(0)
    y = np.arange(64) % 2
    x = (255 * y[:, None, None, None] * rng.random((64, 1, 2, 2))).astype(np.uint8)
    (module,) = image_models.train_target(target, x, y, 2, [40]).values()
    assert (image_logits(module, x).argmax(1).numpy() == y).mean() > 0.9
    built = build_image_model(ImageArchitecture(name=name, channels=1, side=2, outputs=2, width=8))
    kept = dict(module.named_buffers())
    assert all(values.equal(kept[key]) for key, values in built.named_buffers())
    assert [values.shape for values in module.parameters()] == [
        one.shape for one in built.parameters()
    ]


def test_every_rule_on_images_gets_its_samples(pools, results):
    sizes = over_training_size(
        pools, replace(AUDIT, form="paper"), [20, 30, 40], targets=["mlp-8 E30"]
    )
    sizes = sizes[sizes["search"] == AUDIT.searches[0]]
    made = generated_images(CONFIG, load_split(CONFIG))
    given = helper_games(pools, AUDIT), sizes, made.quality
    evidence = image_tables.evidence(results, *given, label_noise=0.3)
    found = {one.target.removeprefix("panoramia-"): one.values for one in evidence}
    assert len(found) == 13
    table = 100 * pools.table.set_index("target")[["train_metric", "test_metric"]]
    first, last = table.loc["mlp-8 E1"], table.loc["mlp-8 E30"]
    one = found["table-01"]
    assert one["test falls"] == [pytest.approx(first["test_metric"] - last["test_metric"])]
    rise = last["train_metric"] - first["train_metric"]
    assert one["gap grows"] == [pytest.approx(rise + one["test falls"][0])]
    assert one["clean labels"] == Estimate(0.3)
    assert found["table-05"]["real over none"] == [], "no helper on real non-members"
    bounds = sizes.pivot(index="seed", columns="train", values="c_plus_eps_lb")
    gains = (bounds[40] - bounds[30]) - (bounds[30] - bounds[20]) / 3
    assert "flattens" not in found["figure-11"]
    assert len(found["figure-02"]["flattens"]) == len(gains)
    assert found["figure-11"]["rises"] == (bounds[40] - bounds[20]).tolist()
    assert found["figure-11"]["enough training"] == Estimate(40.0)
    rise = gap(pools, "mlp-8 E30") - gap(pools, "mlp-8 E1")
    assert found["figure-13"]["losses separate"] == [pytest.approx(rise)]
    assert found["figure-15"]["sizes apart"].value == 1242 / 562
    null = by_game(results.forms["paper"], "null mlp-8 E30").tolist()
    for one in ("table-03", "figure-04", "figure-06"):
        assert found[one]["null"] == {"null mlp-8 E30": null}, one
    assert image_tables.series(results) == ["mlp-8 E1", "mlp-8 E30"]
    assert list(image_tables.model_sizes(results)["parameters"]) == [562, 1242]
    one = (
        image_tables.table_one(results, "mnist5k")
        .set_index("target")["paper_test_accuracy"]
        .dropna()
    )
    assert one.to_dict() == {"mlp-8 E1": 91.61, "mlp-8 E30": 90.18}, (
        "of the same degree of over-training"
    )


def test_curves_are_read_at_low_recall_and_at_one_half():
    """Of 200 members the attack finds 40 without an error in game 0 and 150 in game 1, the baseline
    none.
    """
    target, games = Target("a", "trained", 1), []
    for seed, found in enumerate((40, 150)):
        rest = 200 - found
        members = np.repeat([True, False, True, False], [found, rest, rest, found])
        order = -np.arange(400.0)
        mixed = -np.where(members, 2.0 * np.cumsum(members), 2.0 * np.cumsum(~members) - 1)
        games.append(TargetScores(target, "panoramia", seed, mixed, order, members))
    audits = TargetAudits(tuple(games), AuditConfig(train=2, validation=2, test=400, repetitions=2))
    pool = Pool(np.zeros((2, 1)), {}, {"a": np.zeros((2, 1))})
    results = PanoramiaResults(Pools(pool, pool, None, (target,)), {"paper": audits}, "paper")
    three, four = (one.values for one in image_tables.figures_three_and_four(results, "a", []))
    assert three["room above"] == {"recall 0.1": [0.5, 0.5], "recall 0.25": [0.5, 0.5]}
    # Game 0 reaches a recall of 0.25 with 50 members after 40 right and 160 wrong guesses.
    assert three["attack more precise"] == {
        "recall 0.1": [0.5, 0.5],
        "recall 0.25": [50 / 210 - 0.5, 0.5],
    }
    assert four["maximum at low recall"] == [1.0, 0.0]
    bounds = [game.panoramia("union", 0.95).c_plus_epsilon_lb for game in games]
    half = epsilon_from_counts(100, 100, 0.025 / 400)
    assert four["falls to recall 0.5"] == [bounds[0], pytest.approx(bounds[1] - half)]
    assert four["null"] == {}
    blind = replace(games[0], attack=games[0].baseline)
    nothing = replace(results, forms={"paper": replace(audits, judged=(blind,))})
    _, four = image_tables.figures_three_and_four(nothing, "a", [])
    assert four.values["maximum at low recall"] == [0.0]


def test_what_a_comparison_with_real_nonmembers_needs_stands_in_one_row(pools, results):
    table = image_tables.above_real(results).set_index("target")
    assert table["null"].tolist() == [False, False, True, False, True]
    name = "mlp-16 E30"
    assert table.loc[name, "eps_tilde"] == results.value(name)
    assert table.loc[name, "rm_rn_auc"] == results.means_of(name, "rm_rn")["mia_auc"]
    losses = {kind: pool.targets[name][:, 0] for kind, pool in pools.by_kind().items()}
    for kind, auc in (("generated", "auc_generated"), ("nonmembers", "auc_real")):
        wins = (losses["members"][:, None] < losses[kind]) + (
            losses["members"][:, None] == losses[kind]
        ) / 2
        assert table.loc[name, auc] == pytest.approx(wins.mean())


def test_speed_is_measured_on_the_targets_data():
    target = CONFIG.targets[
        0
    ]  # an MLP of 49, 8, 8 and 10 units: two products back for each one forward
    table = image_models.training_speed(target, load_split(CONFIG), peak=1e-3).set_index("loop")
    assert list(table.index) == ["here", "dataloader"]
    flops = 2 * (3 * (49 * 8 + 8 * 8 + 8 * 10) - 49 * 8)  # none back to the pixels
    np.testing.assert_allclose(table["TFLOP/s"] * 1e12 / table["images per second"], flops)
    np.testing.assert_allclose(table["share"], table["TFLOP/s"] / 1e-3)


def test_figure_six_has_games_of_its_own(results):
    name = "mlp-8 E30"
    assert image_tables.figure_six_games(results, AUDIT, {}, target=name) is results
    changes = {"train": 10, "validation": 10, "test": 110, "repetitions": 2}
    larger = image_tables.figure_six_games(results, AUDIT, changes, target=name)
    assert {game.membership.size for game in larger.decisive.select("panoramia")} == {110}
    # Of 80 real non-members, as many as the coins may need.
    [most] = {game.membership.size for game in larger.decisive.select("o1")}
    assert most + 1 > 100 or smallest_pool(2, 2, most) <= 80 < smallest_pool(2, 2, most + 1)
    rows = image_tables.over_test_size(larger, [50, 110], target=name)
    assert len(rows) == 2 * 2 * 2  # sizes, games, targets
    assert set(shared.figure_six(larger, name).values["null"]) == {f"null {name}"}


def test_evidence_is_of_what_the_paper_shows_on_the_data_set():
    assert {f"panoramia-{item}" for item in image_tables.ON_CELEBA} <= set(rules())
    found = [SimpleNamespace(target=f"panoramia-figure-{number}") for number in ("07", "15")]
    assert image_tables.printed_on("celeba", found) == found[:1]
    assert image_tables.printed_on("cifar10", found) == found
    shown = {
        (data, item): image_tables.level(data, f"panoramia-{item}")
        for data in ("mnist5k", "cifar10", "celeba")
        for item in ("table-01", "figure-13")
    }
    near = {pair for pair, level in shown.items() if level == "paper's data"}
    assert near == {("cifar10", "table-01"), ("celeba", "table-01"), ("celeba", "figure-13")}


def notebook_settings(name, seed):
    """What the cells of parameters and of settings of a notebook define."""
    text = (Path(__file__).parents[4] / f"notebooks/{name}.ipynb").read_text()
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(text)["cells"]}
    given, settings = cells["cell-01"], cells["cell-02"]
    found = {}
    exec(given, found)
    found["seed"] = seed
    exec(settings, found)
    return found["config"], found["audit"]


@pytest.mark.parametrize("name", ["panoramia_images", "panoramia_dp"])
def test_runs_of_other_seeds_share_no_draw(name):
    def seeds(seed):
        config, audit = notebook_settings(name, seed)
        models = (
            config,
            config.split,
            config.generator,
            config.labeler,
            *config.helpers,
            *config.targets,
        )
        draws = range(audit.seed, audit.seed + audit.repetitions + audit.restarts)
        return {one.seed for one in models} | {*draws}

    assert min(seeds(0)) == 0
    assert not seeds(0) & seeds(1)
    config, _ = notebook_settings(name, 0)
    assert config.helper_images == config.split.others, "helpers are trained on equally many images"


def test_a_filter_that_drops_nearly_all_is_named_after_one_draw():
    drawn = []

    def sample(count, seed):
        drawn.append(count)
        return np.zeros((count, 1, 4, 4), np.uint8), np.zeros(count, np.int64)

    def kept(share):
        keeps = SimpleNamespace(keeps=lambda x: np.arange(len(x)) < share * len(x))
        return image_stages._kept(SimpleNamespace(sample=sample), keeps, 100, 0)

    refused(r"keeps only 4\.0% of the images", kept, 0.04)
    assert drawn == [100]
    x, labels, share = kept(0.5)
    assert (len(x), len(labels), share) == (100, 100, 0.5)
    assert sum(drawn[1:]) < 300
