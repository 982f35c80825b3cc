"""What the meter reports is what the whole run does."""

import numpy as np
import pytest
import torch
from torch import nn

from paperlib.core.work import alike, answers, measured_by, steps
from paperlib.models.images import image_logits
from paperlib.running.cost.counter import Counter
from paperlib.running.cost.meter import TIMED_STEPS, RunMeter
from paperlib.running.cost.stages import Stage
from paperlib.running.cost.stand_ins import made_up
from paperlib.training.images import ImageTraining, fit_images

IMAGES, LABELS = torch.zeros(50, 1, 8, 8, dtype=torch.uint8), torch.zeros(50, dtype=torch.long)


class Counted(nn.Module):
    """A network that counts how often it is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        self.calls = self.rows = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls, self.rows = self.calls + 1, self.rows + len(x)
        return self.layers(x)


def train(module: nn.Module) -> None:
    fit_images(module, IMAGES, LABELS, config=ImageTraining(epochs=6, batch_size=16), progress=False)


def only_stage(meter: RunMeter) -> Stage:
    [stage] = meter.work.stages.values()
    return stage


def test_a_shortened_training_reports_the_steps_and_the_arithmetic_of_the_whole_one():
    whole, short, meter = Counted(), Counted(), RunMeter()
    with Counter() as counter:
        train(whole)
    with measured_by(meter):
        train(short)
    stage = only_stage(meter)
    assert (stage.steps, stage.work) == (whole.calls, whole.rows) == (6 * 4, 6 * 50)
    assert stage.flops * stage.work == pytest.approx(counter.flops, rel=1e-12)
    assert short.calls <= 3 + TIMED_STEPS
    assert stage.seconds is not None
    assert stage.seconds > 0
    parameters = 4 * (64 * 10 + 10)
    assert stage.parameter_bytes == parameters
    assert stage.memory >= 4 * parameters  # weights, gradients and two moments


def test_memory_is_that_of_the_largest_batch():
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(64, 1000)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x.flatten(1)).relu()[:, :10]

    meter = RunMeter()
    config = ImageTraining(epochs=2, batch_size=50)
    with measured_by(meter):
        fit_images(Wide(), IMAGES, LABELS, config=config, progress=False)
    whole = Wide()
    with Counter() as counter:
        fit_images(whole, IMAGES, LABELS, config=config, progress=False)
    stage = only_stage(meter)
    assert stage.memory - stage.parameter_bytes == pytest.approx(max(counter.course), rel=0.1)


def test_other_batches_and_other_models_are_measured_again():
    meter = RunMeter()
    with measured_by(meter):
        train(Counted())
        train(Counted())
        assert len(meter.work.stages) == 1
        fit_images(Counted(), IMAGES, LABELS, config=ImageTraining(epochs=1, batch_size=8), progress=False)
        train(nn.Sequential(nn.Flatten(), nn.Linear(64, 10)))
    assert [stage.steps for stage in meter.work.stages.values()] == [48, 7, 24]


def test_answers_that_were_left_out_look_like_those_that_were_given():
    module, meter = Counted().eval(), RunMeter()
    nn.init.normal_(module.layers.get_parameter("1.weight"))
    images = torch.randint(0, 256, (300, 1, 8, 8), dtype=torch.uint8)
    true = image_logits(module, images, batch=32)
    calls = module.calls
    with measured_by(meter):
        found = image_logits(module, images, batch=32)
    assert module.calls - calls <= 3 + TIMED_STEPS
    assert found.shape == true.shape
    assert found.dtype == true.dtype
    assert true.min() <= found.min() < found.max() <= true.max()
    assert len(np.unique(found[:, 0])) > 200
    assert only_stage(meter).work == 300


def test_what_is_repeated_runs_once_and_counts_as_often_as_its_weights_say():
    meter = RunMeter()

    def work(size: int) -> int:
        return sum(int(item) for item in steps(torch.ones(10 * size), "inside", 1, weight=lambda _: 1))

    with measured_by(meter):
        found = alike(work, [1, 2, 3], "sizes", weight=lambda size: size)
    assert len(found) == 3
    assert only_stage(meter).steps == 10 * (1 + 2 + 3)


def test_a_loop_without_items_is_no_stage():
    meter = RunMeter()
    with measured_by(meter):
        assert list(steps([], "nothing")) == []
        assert answers(len, [], "nothing") == []
        assert alike(len, [], "nothing") == []
    assert not meter.work.stages


def test_made_up_tokens_are_tokens():
    sample = np.array([[3, 4], [5, 6]])
    found = made_up(sample, 100, 0)
    assert found.dtype == sample.dtype
    assert {tuple(row) for row in found} == {(3, 4), (5, 6)}
