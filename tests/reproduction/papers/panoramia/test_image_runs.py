"""Runs on images: means over models, and the profiles at the paper's size."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paperlib.audits.panoramia.game import AuditConfig, smallest_pool
from paperlib.io import read_result
from paperlib.reproduction.papers.panoramia.dp import DpPlan
from paperlib.reproduction.papers.panoramia.images.data import PARTS, ImageSplit
from paperlib.reproduction.papers.panoramia.images.models import dp_training, parse_targets
from paperlib.reproduction.papers.panoramia.images.tables import MeasuredRun, measured_run
from paperlib.reproduction.running import find_project, plan

ROOT = Path(__file__).parents[4]
KEPT = "book/measured/panoramia_cifar10.csv"
FURTHER = "book/measured/cifar10"
AUDITS = {
    "panoramia (paper form)": ("c_lb", "c+eps_lb", "baseline auc", "ceiling"),
    "panoramia (helpers form)": ("c_lb", "c+eps_lb"),
    "rm_rn (paper form)": ("value",),
    "o1 (paper form)": ("value",),
}


def run(*gains):
    """Two targets and a null in runs whose last target's attack beats the baseline by these
    nats.
    """
    rows = [
        {f"{audit} {column}": 0.5 for audit, columns in AUDITS.items() for column in columns}
        | {"target": target, "epochs": epochs, "null": target == "null", "seed": seed}
        | {"train_metric": 0.5, "test_metric": 0.25, "rm_rn (paper form) value": 0.75}
        | {"panoramia (paper form) c+eps_lb": 0.5 + more}
        for seed, gain in enumerate(gains)
        for target, epochs, more in (("E10", 10, 0), ("E40", 40, gain), ("null", 40, -0.1))
    ]
    return MeasuredRun(
        pd.DataFrame(rows), "measured then", {}, np.zeros((11, 8, 3), dtype=np.uint8)
    )


def test_rows_are_means_over_models_in_per_cent_and_clipped_last():
    rows = run(-0.2, 0.6, 0.8).means
    assert list(rows["target"]) == ["E10", "E40", "null"]
    assert list(rows["test_accuracy"]) == [25.0] * 3
    assert rows.loc[0, ["rm_rn", "o1"]].tolist() == [0.75, 0.5]
    np.testing.assert_allclose(
        rows["eps_tilde"], [0, 0.4, 0]
    )  # clipped before the mean, E40 would have 0.47
    np.testing.assert_allclose(
        rows["eps_tilde_sd"], [0, np.std([-0.2, 0.6, 0.8], ddof=1), 0], atol=1e-12
    )


def test_the_kept_run_is_whole_and_the_page_shows_all_runs_of_the_file(monkeypatch):
    monkeypatch.chdir(ROOT / "book")
    kept = measured_run(KEPT)
    assert kept is not None
    result = read_result((ROOT / KEPT).with_suffix(".json"))
    given = result.parameters
    wanted = parse_targets([*given["targets"], *given["compared"]], **given["target_settings"])
    assert list(kept.means["target"]) == [target.name for target in wanted]
    assert list(kept.means["null"]) == [target.null for target in wanted]
    assert not kept.means.isna().any(axis=None)
    assert (kept.table["games"] == given["repetitions"]).all()
    others = [one for one in result.records if one["target"] != "panoramia-figure-13"]
    assert {one["level"] for one in others} == {"paper's data"}
    seeds = sorted(kept.table["seed"].unique())
    assert seeds == [
        0,
        *(int(path.stem[5:]) for path in sorted((ROOT / FURTHER).glob("seed_*.json"))),
    ]


HERE = find_project(Path(__file__).parent)
RUNS = [
    ("panoramia_images", "paper", 50_000, 10_000),
    ("panoramia_dp", "paper", 50_000, 10_000),
    ("panoramia_images", "paper_celeba", 194_599, 39_829),
]


def parameters(stem, profile):
    return plan(HERE, stem, profile=profile).parameters


@pytest.mark.parametrize(("stem", "profile", "trained_on", "held_out"), RUNS)
def test_targets_see_as_many_images_as_the_paper_says_and_games_enough(
    stem, profile, trained_on, held_out
):
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


def test_targets_are_those_of_table_one_and_figure_fifteen_and_keep_their_epsilon():
    given = parameters("panoramia_images", "paper")
    targets = parse_targets([*given["targets"], *given["compared"]], **given["target_settings"])
    found = {(one.architecture, one.epochs, one.batch_size) for one in targets if not one.null}
    assert found == {
        ("resnet101", 20, 32),
        ("resnet101", 50, 32),
        ("resnet101", 100, 32),
        ("wrn-28-10", 150, 128),
        ("wrn-28-10", 300, 128),
        ("vit-small", 35, 128),
        ("wrn-28-2", 100, 32),
        ("resnet50", 100, 32),
    }
    runs = {
        one.run
        for one in targets
        if one.architecture in ("resnet101", "wrn-28-10") and not one.null
    }
    assert len(runs) == 3, "one run of ResNet101, two of WRN-28-10"
    assert [one.pretrained for one in targets if one.architecture == "vit-small"] == [True]
    given = parameters("panoramia_dp", "paper")
    families = {name: tuple(given[name]) for name in ("architectures", "widths", "epsilons")}
    tried = DpPlan(**families, delta=given["delta"], choices=tuple(given["dp_choices"])).tried()
    assert len(tried) == 2 * 7
    noise = [dp_training(one, 50_000).noise_multiplier for one in tried["wrn-16-4 eps 1"]]
    assert min(noise) > 1
