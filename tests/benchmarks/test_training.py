"""Speed of training: ``make bench``. The paper's Adult model on made-up rows, beside its references."""

import pytest
import torch

from paperlib.papers.epsilon_star.training_speed import PLAIN, PRIVATE, SpeedConfig, arms, measure_throughput

CONFIG = SpeedConfig(models=(1, 4, 16, 32), epochs=1, device="cpu")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize(
    ("task", "arm"), [(task, arm) for task in (PLAIN, PRIVATE) for arm in arms(CONFIG, task, "cpu")], ids=str
)
def test_training(benchmark, task, arm):
    benchmark(arms(CONFIG, task, "cpu")[arm])


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
