"""The profiles on images at the paper's size: every image has a place, and every game has enough of them."""

from pathlib import Path

import pytest

from paperlib.audits.panoramia.game import AuditConfig, smallest_pool
from paperlib.papers.panoramia.dp import DpPlan
from paperlib.papers.panoramia.images.data import PARTS, ImageSplit
from paperlib.papers.panoramia.images.models import dp_training, parse_targets
from paperlib.running import find_project, plan

HERE = find_project(Path(__file__).parent)
RUNS = [("panoramia_images", "paper", 50_000, 10_000), ("panoramia_dp", "paper", 50_000, 10_000),
        ("panoramia_images", "paper_celeba", 194_599, 39_829)]  # fmt: skip


def parameters(stem, profile):
    return plan(HERE, stem, profile=profile).parameters


@pytest.mark.parametrize(("stem", "profile", "trained_on", "held_out"), RUNS)
def test_targets_see_as_many_images_as_the_paper_says_and_games_enough(stem, profile, trained_on, held_out):
    given = parameters(stem, profile)
    sizes = dict(zip(PARTS, given["sizes"], strict=True))
    split = ImageSplit(dataset=given["dataset"], parts=given["parts"], **sizes)
    assert sum(sizes[part] for part in split.trained_on()) == trained_on
    assert sizes["nonmembers"] <= held_out
    assert sum(sizes.values()) in (60_000, 202_599)
    members = sizes["members"]
    game = {name: given[name] for name in ("train", "validation", "test")}
    assert smallest_pool(**game) <= min(members, sizes["nonmembers"], given["generated"][0])
    six = {name: given.get("figure_six", {}).get(name, size) for name, size in game.items()}
    largest = smallest_pool(**{**game, "train": max(given.get("train_sizes", [game["train"]]))})
    assert max(largest, smallest_pool(**six)) <= min(members, given["generated"][0])
    assert max(given["test_sizes"]) <= six["test"]
    assert AuditConfig(**game, **given["games"]).same_test


def test_targets_are_those_of_table_one_and_figure_fifteen():
    given = parameters("panoramia_images", "paper")
    targets = parse_targets([*given["targets"], *given["compared"]], **given["target_settings"])
    found = {(one.architecture, one.epochs, one.batch_size) for one in targets if not one.null}
    assert found == {
        ("resnet101", 20, 32), ("resnet101", 50, 32), ("resnet101", 100, 32), ("wrn-28-10", 150, 128),
        ("wrn-28-10", 300, 128), ("vit-small", 35, 128), ("wrn-28-2", 100, 32), ("resnet50", 100, 32),
    }  # fmt: skip
    runs = {one.run for one in targets if one.architecture in ("resnet101", "wrn-28-10") and not one.null}
    assert len(runs) == 3, "one run of ResNet101, two of WRN-28-10"
    assert [one.pretrained for one in targets if one.architecture == "vit-small"] == [True]


def test_every_setting_tried_with_dp_keeps_its_epsilon():
    given = parameters("panoramia_dp", "paper")
    families = {name: tuple(given[name]) for name in ("architectures", "widths", "epsilons")}
    tried = DpPlan(**families, delta=given["delta"], choices=tuple(given["dp_choices"])).tried()
    assert len(tried) == 2 * 7
    for one in tried["wrn-16-4 eps 1"]:
        found = dp_training(one, 50_000)
        assert found is not None
        assert found.noise_multiplier > 1
