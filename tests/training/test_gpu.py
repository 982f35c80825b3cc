"""The same models on a GPU: run where there is one."""

from functools import partial

import numpy as np
import pytest
import torch

from paperlib.training import TrainingConfig, fit, fit_dp, fit_ensemble

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
stacked = partial(fit_ensemble, progress=False)
single, private_single = partial(fit, progress=False), partial(fit_dp, progress=False)
WIDTHS = (6, 8, 3)


def task(n=60):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    return x, x[:, :3].argmax(1)


def configs(**changes):
    values = {"widths": WIDTHS, "epochs": 3, "batch_size": 8, "learning_rate": 0.05, "momentum": 0.9}
    return [TrainingConfig(**{**values, **changes, "seed": seed}) for seed in range(5)]


@pytest.mark.parametrize(
    "changes",
    [{}, {"optimizer": "adam", "momentum": 0.0}, {"clip_norm": 0.3}, {"clip_norm": 0.3, "microbatches": 4}],
    ids=["sgd", "adam", "clipped", "microbatches"],
)
def test_gpu_and_cpu_train_the_same_models(changes):
    x, y = task()
    here, there = (stacked(configs(**changes), x, y, device=device) for device in ("cpu", "cuda"))
    assert torch.allclose(here.parameters, there.parameters.cpu(), atol=2e-4)


def test_gpu_noise_has_the_right_scale_and_is_each_models_own():
    x, y = task()
    noisy = configs(
        clip_norm=1.0, noise_multiplier=2.0, momentum=0.0, epochs=1, batch_size=60, learning_rate=1.0
    )
    silent = configs(clip_norm=1.0, momentum=0.0, epochs=1, batch_size=60, learning_rate=1.0)
    together = stacked(noisy, x, y, device="cuda").parameters
    noise = (together - stacked(silent, x, y, device="cuda").parameters) * 60 / 2
    assert 0.8 < noise.std().item() < 1.2
    alone = torch.cat([stacked([config], x, y, device="cuda").parameters for config in noisy])
    assert torch.allclose(together, alone, atol=1e-4)


def test_single_models_train_on_the_gpu():
    x, y = task()
    plain, private = configs()[0], configs(clip_norm=1.0, noise_multiplier=0.1)[0]
    expected = single(WIDTHS, x, y, config=plain, device="cpu").logits(x)
    for precision, limit in (("float32", 1e-3), ("bfloat16", 0.3)):
        got = single(WIDTHS, x, y, config=plain, device="cuda", precision=precision).logits(x)
        assert (got.cpu() - expected).abs().max() < limit
    assert torch.isfinite(private_single(WIDTHS, x, y, config=private, device="cuda").logits(x)).all()
