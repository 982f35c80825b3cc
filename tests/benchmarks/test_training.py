"""Speed of training: ``make bench``. The reference of each group is timed in the same run.

The paper's Adult model on 2,000 synthetic rows, batch 64, one epoch; a round trains ``models`` models.
"""

import pytest
import torch

from paperlib.papers.epsilon_star.training_speed import PLAIN, PRIVATE, SpeedConfig, arms, measure_throughput

CONFIG = SpeedConfig(models=(1, 4, 16, 32), epochs=1, device="cpu")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize(
    "arm", list(arms(CONFIG, PLAIN, "cpu")), ids=lambda arm: f"{arm[0]}, {arm[1]} models"
)
@pytest.mark.benchmark(group="plain training with Adam")
def test_plain(benchmark, arm):
    benchmark(arms(CONFIG, PLAIN, "cpu")[arm])


@pytest.mark.parametrize(
    "arm", list(arms(CONFIG, PRIVATE, "cpu")), ids=lambda arm: f"{arm[0]}, {arm[1]} models"
)
@pytest.mark.benchmark(group="DP-SGD")
def test_private(benchmark, arm):
    benchmark(arms(CONFIG, PRIVATE, "cpu")[arm])


@pytest.mark.parametrize("device", DEVICES)
def test_stacks_are_faster_than_their_references(device):
    """Far below what is measured when the machine is quiet, so that a busy one does not fail it."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    models = 16 if device == "cpu" else 256
    config = SpeedConfig(models=(models,), examples=1000, epochs=1, repeats=2, device=device)
    table = measure_throughput(config).set_index(["task", "method"])
    column = "speedup_per_core" if device == "cpu" else "speedup"
    assert table.loc[(PLAIN, "ensemble"), column] > (1.5 if device == "cpu" else 20)
    assert table.loc[(PRIVATE, "ensemble"), column] > (4 if device == "cpu" else 50)
