"""One model at a time: seeds, checkpoints that resume to the same bits, and errors that say what is
wrong.
"""

import errno
import os
import pickle
import resource
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from paperlib.io.files import OutputError
from paperlib.training import TrainingConfig, fit, fit_dp, fit_ensemble
from paperlib.training.ensembles import DivergenceWarning
from paperlib.training.fitting import CheckpointError, TrainingDiverged, save_checkpoint
from tests.interrupts import stopping
from tests.refusals import refused

WIDTHS = (5, 7, 3)
QUIET = {"device": "cpu", "progress": False}


def task(n=40):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 5)).astype(np.float32)
    return x, x[:, :3].argmax(axis=1)


def config(**changes):
    return TrainingConfig(
        **{"epochs": 4, "batch_size": 16, "learning_rate": 0.1, "momentum": 0.9, **changes}
    )


def network(seed=0):
    """With dropout, whose random numbers a resumed run has to find again."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Dropout(0.5), nn.Linear(7, 3))


def bits(module):
    return [tensor.numpy().tobytes() for tensor in module.state_dict().values()]


def trained(n=40, **changes):
    x, y = task(n)
    options = {"config": config(), **QUIET, **changes}
    return fit(options.pop("module", None) or network(), x, y, **options)


def test_equal_seeds_give_equal_bits_leave_the_global_state_alone_and_read_only_arrays_teach():
    before = torch.get_rng_state()
    first, second, other = trained(), trained(), trained(config=config(seed=1))
    assert bits(first.module) == bits(second.module) != bits(other.module)
    assert first.losses == second.losses
    assert torch.equal(before, torch.get_rng_state())
    x, y = task()
    x.flags.writeable = y.flags.writeable = False
    assert fit_ensemble([config(widths=WIDTHS)], x, y, **QUIET).margin_losses(x, y).shape == (1, 40)
    fitted = fit(network(), x, y, config=config(epochs=60, learning_rate=0.05), **QUIET)
    assert (fitted.logits(x).argmax(1).numpy() == y).mean() > 0.9
    assert fitted.losses[-1] < 0.6 * fitted.losses[0]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("train", [fit, fit_dp], ids=["plain", "private"])
def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(
    tmp_path, monkeypatch, optimizer, train
):
    """Interrupted in the middle of the fourth epoch, with checkpoints of every second epoch."""
    dp = {"clip_norm": 1.0, "noise_multiplier": 0.5} if train is fit_dp else {}
    given = config(
        optimizer=optimizer, momentum=0.9 if optimizer == "sgd" else 0.0, learning_rate=0.01, **dp
    )
    x, y = task()

    def run(**options):
        return train(network(), x, y, config=given, **QUIET, **options)

    expected = run()
    path = tmp_path / "run.pt"
    stopping(monkeypatch, torch.Tensor, "backward", 11)
    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=path, checkpoint_every=2)
    monkeypatch.undo()
    assert len(torch.load(path, weights_only=True)["state"]["losses"]) == 2
    resumed = run(checkpoint=path)
    assert bits(resumed.module) == bits(expected.module)
    assert resumed.losses == expected.losses
    assert sorted(os.listdir(tmp_path)) == ["run.pt"]


def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path):
    path = tmp_path / "run.pt"
    trained(config=config(epochs=2), checkpoint=path)
    assert bits(trained(checkpoint=path).module) == bits(trained().module)
    with pytest.raises(CheckpointError, match=r"already has 4 epochs, and config\.epochs is 2"):
        trained(config=config(epochs=2), checkpoint=path)
    again = trained(config=config(epochs=2), checkpoint=path, resume=False)
    assert bits(again.module) == bits(trained(config=config(epochs=2)).module)


def test_a_damaged_checkpoint_is_named_and_kept(tmp_path):
    path = tmp_path / "run.pt"
    trained(config=config(epochs=1), checkpoint=path)
    whole = path.read_bytes()
    flipped = whole[:200] + bytes(255 - byte for byte in whole[200:600]) + whole[600:]
    for broken in (
        whole[: len(whole) // 2],
        flipped,
        b"",
        b"not a checkpoint",
        pickle.dumps(os.getcwd),
    ):
        path.write_bytes(broken)
        with pytest.raises(
            CheckpointError, match=r"run\.pt .*remove the file, or pass resume=False"
        ):
            trained(checkpoint=path)
        assert path.read_bytes() == broken
    assert len(trained(checkpoint=path, resume=False).losses) == 4


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    trained(checkpoint=path, config=config(epochs=1))
    for different, changes in (
        ("config", {"config": config(seed=5)}),
        ("config", {"precision": "bfloat16"}),
        ("module", {"module": nn.Sequential(nn.Linear(5, 3))}),
        ("data", {"n": 39}),
    ):
        with pytest.raises(
            CheckpointError, match=f"belongs to another run \\(different: {different}\\)"
        ):
            trained(checkpoint=path, **changes)
    for at in range(2):  # one number is another one
        data = task()
        data[at].flat[3] = (data[at].flat[3] + 1) % 3
        with pytest.raises(CheckpointError, match="different: data"):
            fit(network(), *data, config=config(), checkpoint=path, **QUIET)


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    trained(config=config(epochs=1), checkpoint=path)
    before = path.read_bytes()

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    refused("the disk is full", trained, checkpoint=path, error=OutputError)
    assert path.read_bytes() == before


@pytest.mark.parametrize("most", [0, 100, 700, 2_000, 20_000])
def test_a_checkpoint_that_the_disk_does_not_hold_is_one_line(tmp_path, most):
    """The system refuses more than so many bytes: at the start, midway and at the end."""
    path = tmp_path / "run.pt"
    save_checkpoint(path, {}, {"epoch": 1})
    before = path.read_bytes()
    state = {"numbers": list(range(5_000)), "tensor": torch.zeros(3_000)}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        with pytest.raises(OutputError) as caught:
            save_checkpoint(path, {}, state)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "larger than is allowed" in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["run.pt"]
    assert path.read_bytes() == before
    save_checkpoint(path, {}, state)
    assert path.stat().st_size > most


def test_bfloat16_is_near_float32():
    x, y = task()
    given = config(widths=WIDTHS, epochs=2)
    exact = fit(WIDTHS, x, y, config=given, **QUIET).logits(x)
    rounded = fit(WIDTHS, x, y, config=given, **QUIET, precision="bfloat16").logits(x)
    stacked = fit_ensemble([given], x, y, **QUIET, precision="bfloat16").logits(x)[0]
    for logits in (rounded, stacked):
        assert 0 < (logits - exact).abs().max() < 0.1


BAD_DATA = [
    (np.zeros((0, 5)), [], "x: expected at least one record, got none"),
    (np.zeros((3, 5)), [0, 1], "y: expected 3 labels, one for each record of x, got 2"),
    (np.zeros((3, 5)), [0, 1, 3], "labels: expected whole numbers from 0 to 2, got 3 at index 2"),
    (np.zeros((3, 5)), [0, -1, 1], "got -1 at index 1"),
    (np.zeros((3, 5)), [0, 0.5, 1], "got 0.5 at index 1"),
    (np.full((3, 5), np.nan), [0, 1, 2], "15 values are not finite"),
    (np.zeros(3), [0, 1, 2], r"x: expected shape \(n, features...\), got \(3,\)"),
    (np.zeros((3, 4)), [0, 1, 2], "x: "),
]


@pytest.mark.parametrize(("x", "y", "message"), BAD_DATA)
@pytest.mark.parametrize("train", ["fit", "fit_dp", "fit_ensemble"])
def test_bad_data_are_refused(x, y, message, train):
    plain, private = config(widths=WIDTHS), config(widths=WIDTHS, clip_norm=1.0)
    call = {
        "fit": partial(fit, WIDTHS, config=plain),
        "fit_dp": partial(fit_dp, WIDTHS, config=private),
        "fit_ensemble": partial(fit_ensemble, [plain]),
    }[train]
    refused(message, call, x=x, y=y, **QUIET)


def test_bad_configs_are_refused_also_from_files():
    refused("activation: expected one of 'relu', 'tanh'", config, activation="gelu")
    refused("optimizer: expected one of 'sgd', 'adam', got 'adamw'", config, optimizer="adamw")
    refused("epochs: expected 0 or more, got -1", config, epochs=-1)
    refused("batch_size: expected 1 or more, got 0", config, batch_size=0)
    refused("learning_rate", config, learning_rate=0.0)
    refused(r"learning_rate: expected a number in \(0, inf\)", config, learning_rate=float("nan"))
    refused("momentum", config, momentum=1.0)
    refused("0 with adam", config, momentum=0.9, optimizer="adam")
    refused("seed", config, seed=-1)
    refused("clip_norm", config, clip_norm=0.0)
    refused("clip_norm: expected a number with noise_multiplier", config, noise_multiplier=1.0)
    refused("noise_multiplier", config, clip_norm=1.0, noise_multiplier=-1.0)
    refused("microbatches", config, clip_norm=1.0, microbatches=0)
    assert TrainingConfig.from_dict(config(widths=[5, 3], clip_norm=2.0).to_dict()).widths == (5, 3)
    refused("unknown lr; known are activation, batch_size", TrainingConfig.from_dict, {"lr": 1})
    refused("epochs missing", TrainingConfig.from_dict, {"batch_size": 1, "learning_rate": 1})


def test_calls_that_do_not_fit_together_are_refused():
    x, y = task()
    private = config(widths=WIDTHS, clip_norm=1.0)
    refuses = partial(refused, **QUIET)
    refuses("train with DP-SGD through fit_dp", fit, WIDTHS, x, y, config=private)
    refuses("expected clip_norm for DP-SGD", fit_dp, WIDTHS, x, y, config=config())
    refuses("microbatches None", fit_dp, WIDTHS, x, y, config=config(clip_norm=1.0, microbatches=2))
    mixing = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))
    refuses("keep records apart", fit_dp, mixing, x, y, config=private)
    refuses("do not fit the module", fit, (4, 3), x, y, config=config())
    refuses("widths: expected those of config", fit, (5, 3), x, y, config=config(widths=WIDTHS))
    refuses(r"expected logits of shape \(B, outputs\)", fit, nn.Flatten(0), x, y, config=config())
    refuses("checkpoint_every", fit, WIDTHS, x, y, config=config(), checkpoint_every=0)
    refuses("precision: expected one of", fit, WIDTHS, x, y, config=config(), precision="half")
    refuses("configs: expected one or more", fit_ensemble, [], x, y)
    for other in ({"widths": (5, 3)}, {"widths": WIDTHS, "activation": "tanh"}):
        refuses(
            "same widths and activation",
            fit_ensemble,
            [config(widths=WIDTHS), config(**other)],
            x,
            y,
        )
    refuses("chunk: expected 1 or more", fit_ensemble, [private], x, y, chunk=0)
    refuses("float32 with DP-SGD", fit_ensemble, [private], x, y, precision="bfloat16")
    refuses("threads: expected 1 or more", fit_ensemble, [private], x, y, threads=0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused():
    refused(r"device: expected 'cpu', .*got 'cuda'", trained, device="cuda")


def test_a_diverged_model_is_reported_and_the_others_kept():
    x, y = task()
    rates = [0.1, 1e38, 0.05]
    configs = [config(widths=WIDTHS, seed=at, learning_rate=rate) for at, rate in enumerate(rates)]
    with pytest.warns(DivergenceWarning, match=r"1 of 3 models diverged: 1 \(epoch \d\)"):
        ensemble = fit_ensemble(configs, x, y, **QUIET)
    assert list(ensemble.diverged) == [1]
    logits = ensemble.logits(x)
    assert torch.isnan(logits[1]).any()
    for index in (0, 2):
        alone = fit(WIDTHS, x, y, config=configs[index], **QUIET)
        assert torch.allclose(logits[index], alone.logits(x), atol=1e-5)
    right = [(one.argmax(1).numpy() == y).mean() for one in logits]
    assert ensemble.accuracies(x, y).tolist() == right
    with pytest.raises(
        TrainingDiverged, match=r"loss is (nan|inf) in epoch \d+; lower learning_rate"
    ):
        trained(module=nn.Linear(5, 3), config=config(learning_rate=1e38, epochs=20))
