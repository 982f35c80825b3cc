"""From what was measured to hours, memory, disk and download."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paperlib.core.work import PROCESSOR
from paperlib.running import plan
from paperlib.running.cost.chips import CHIPS, LAUNCH_SECONDS, SHARES, seconds_on
from paperlib.running.cost.downloads import DOWNLOADS, download_bytes, named_data, unknown_sizes
from paperlib.running.cost.estimate import extrapolated, summary_row, table_of
from paperlib.running.cost.shortened import Measured
from paperlib.running.cost.stand_ins import model_bytes, stand_in, without_weights
from tests.running.toys import make_project

H100 = CHIPS[0]


def stage(**values: Any) -> dict[str, Any]:
    usual = {
        "label": "training", "known": ["training", "ResNet"], "steps": 1000.0, "work": 32_000.0,
        "seconds": 0.01, "flops": 1e12, "low_precision": 1e12, "moved": 0.0, "operations": 0,
        "by_kind": {"convolution": 1e12, "attention": 0.0, "product": 0.0}, "transformer": False,
        "memory": 9e9,
    }  # fmt: skip
    return {**usual, **values}


def test_the_slowest_limit_of_a_chip_counts():
    arithmetic = 32_000 * 1e12 / (H100.low_precision * 1e12 * SHARES["convolutions"])
    assert seconds_on(H100, stage()) == pytest.approx(arithmetic)
    assert seconds_on(H100, stage(operations=10**6)) == pytest.approx(1000 * 10**6 * LAUNCH_SECONDS)
    assert seconds_on(H100, stage(moved=1e13)) > arithmetic
    usual = seconds_on(H100, stage(low_precision=0.0))
    assert usual == pytest.approx(arithmetic * H100.low_precision / H100.tf32)


@pytest.fixture
def measured() -> Measured:
    stages = [
        stage(),
        stage(label="on losses", known=["on losses", PROCESSOR], memory=99e9),
        stage(label="answers", seconds=None, low_precision=0.0, flops=1e9, work=3600.0),
    ]
    rates = {"float32": 1e9, "bfloat16": 1e10}
    return Measured(stages, {"1": 3600.0}, 10**9, (), "some processor", {"gpt2": 5e8}, rates)


def test_hours_memory_disk_and_download(measured: Measured, tmp_path: Path):
    job = plan(make_project(tmp_path, toy="1"), "toy", profile="smoke", given={"file": "cifar10"})
    found = extrapolated(job, measured, seconds=60.0)
    assert found.hours["this machine"] == pytest.approx(1 + 320 / 3600 + 320 / 3600 + 1)
    on_chip = seconds_on(H100, measured.stages[0]) + seconds_on(H100, measured.stages[2])
    assert found.hours["H100"] == pytest.approx(1 + (on_chip + 320) / 3600)
    assert found.gpu_memory_gb == 10.0
    assert found.download_gb == pytest.approx((DOWNLOADS["cifar10"].bytes or 0) / 1e9 + 0.5)
    assert found.disk_gb == pytest.approx(found.download_gb + 1.0)
    assert found.pflop == pytest.approx(2 * 32 + 3.6e-3)
    assert summary_row(found)["notebook"] == "toy"
    assert [row[0] for row in table_of(found)][-2:] == ["code without a network", "total"]


def test_a_chip_with_too_little_memory_is_given_no_hours(measured: Measured, tmp_path: Path):
    job = plan(make_project(tmp_path, toy="1"), "toy", profile="smoke")
    found = extrapolated(job, replace(measured, stages=[stage(memory=24e9)]), seconds=1.0)
    assert found.gpu_memory_gb == 25.0
    assert [name for name, value in found.hours.items() if value is None] == ["RTX 4090"]
    assert summary_row(found)["hours, RTX 4090"] == ""
    assert table_of(found)[-1][-1] == "no room"


def test_hours_on_the_chip_itself_are_measured(measured: Measured, tmp_path: Path):
    job = plan(make_project(tmp_path, toy="1"), "toy", profile="smoke")
    here = extrapolated(job, replace(measured, device="NVIDIA H100 80GB HBM3", stages=[stage()]), seconds=1.0)
    assert here.hours["H100"] == here.hours["this machine"] == pytest.approx(1 + 320 / 3600)


def test_data_sets_are_found_in_lists_and_mappings():
    parameters = {"data": "adult", "more": [{"text": "wikitext103"}, "nothing"], "again": "adult"}
    assert named_data({"hub": ["org/model=pile_train,pile_test"]}) == ["pile_test", "pile_train"]
    assert unknown_sizes({"hub": ["org/model=pile_train,pile_test"]}) == ["pile_train"]
    expected = [DOWNLOADS[name].bytes for name in ("adult", "wikitext103")]
    assert None not in expected
    assert download_bytes(parameters, {"a model": 7.0}) == sum(expected) + 7  # pyright: ignore


def test_a_model_without_weights_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    import torch
    import transformers

    from paperlib.running.cost.counter import Counter

    shape = transformers.GPTNeoXConfig(
        hidden_size=16, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=300,
        dtype="float16",
    )  # fmt: skip
    shape.save_pretrained(tmp_path)
    model = without_weights(str(tmp_path), "auto")
    assert model_bytes(model) == 2 * model.num_parameters()
    tokens = torch.zeros(2, 10, dtype=torch.long)
    with Counter() as counter, torch.inference_mode():
        model(input_ids=tokens, attention_mask=torch.ones_like(tokens), use_cache=False)
    assert counter.flops > 2 * 20 * (2 * 12 * 16**2 + 16 * 300)
    assert stand_in(str(tmp_path), "auto") is None  # a folder is loaded
