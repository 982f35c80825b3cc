"""Helpers that start from pretrained weights, on a file as timm publishes them."""

import pickle
from dataclasses import replace
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
import torch

from paperlib.audits.panoramia import image_models
from paperlib.models.images.build import pretrained_classifier
from tests.refusals import refused

timm = pytest.importorskip("timm")
MODEL = "test_resnet"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """``model.safetensors`` of a small model with its own 1,000 classes."""
    from safetensors.torch import save_file

    torch.manual_seed(5)
    path = tmp_path_factory.mktemp("hub") / "model.safetensors"
    state = timm.create_model(MODEL).state_dict()
    save_file({name: values.contiguous() for name, values in state.items()}, path, {"format": "pt"})
    return path


def test_all_layers_but_the_last_come_from_the_file_and_images_arrive_in_its_size_and_colours(
    published,
):
    theirs = image_models.read_weights(str(published))
    module, other = (pretrained_classifier(MODEL, 7, weights=theirs, seed=seed) for seed in (0, 1))
    state = module.model.state_dict()
    own = {name for name, values in theirs.items() if not torch.equal(values, state[name])}
    assert own == {"fc.weight", "fc.bias"}
    assert not torch.equal(module.model.fc.weight, other.model.fc.weight), (
        "the new layer follows the seed"
    )
    grey = torch.linspace(-1, 1, 2 * 8 * 8).reshape(2, 1, 8, 8)
    module.eval()
    torch.testing.assert_close(module(grey), module(grey.expand(-1, 3, -1, -1)))
    assert module(grey).shape == (2, 7)
    seen = []
    module.model.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    module(torch.full((1, 3, 4, 4), 1.0))
    config = module.model.pretrained_cfg
    assert seen[0].shape[1:] == config["input_size"]
    white = (1 - torch.tensor(config["mean"])) / torch.tensor(config["std"])
    torch.testing.assert_close(seen[0].mean(dim=(0, 2, 3)), white)


def test_a_helper_is_tuned_from_the_weights_and_others_make_another_helper(published, tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (12, 1, 8, 8), dtype=np.uint8)
    y, how = np.arange(12) % 2, {"epochs": 1, "batch_size": 12}
    helper = image_models.ImageHelper(
        name="imagenet", data="real", timm=MODEL, weights=str(published), **how
    )
    module = image_models.train_helper(helper, x, y, 2)
    start, end = (
        image_models.read_weights(str(published))["conv1.0.weight"],
        module.model.conv1[0].weight,
    )
    moved = (end - start).abs().max()
    assert 0 < moved <= 2 * helper.learning_rate, "one step of Adam away from the file"
    assert image_models.answers(module, x, y).shape == (12, 2)
    path = tmp_path / "moved.safetensors"
    path.write_bytes(published.read_bytes())
    assert helper.about() == replace(helper, weights=str(path)).about(), (
        "the content counts, not the place"
    )
    path.write_bytes(published.read_bytes() + b" ")
    assert helper.about() != replace(helper, weights=str(path)).about()


def test_files_of_torch_are_read_as_tensors_alone(published, tmp_path):
    state = image_models.read_weights(str(published))
    for name, content in (("plain.pth", state), ("nested.pth", {"state_dict": state})):
        torch.save(content, tmp_path / name)
        assert image_models.read_weights(str(tmp_path / name)).keys() == state.keys()

    class Harmful:
        def __reduce__(self):
            return (open, (str(tmp_path / "written"), "w"))

    (tmp_path / "harm.bin").write_bytes(pickle.dumps(Harmful()))
    torch.save({"model": [1, 2]}, tmp_path / "list.pth")
    (tmp_path / "cut.safetensors").write_bytes(published.read_bytes()[:5000])
    for name in ("harm.bin", "list.pth", "cut.safetensors"):
        refused(f"weights: .*{name}", image_models.read_weights, str(tmp_path / name))
    assert not (tmp_path / "written").exists()
    for act in (image_models.read_weights, image_models.weights_tag):
        refused(
            "weights: no file", act, str(tmp_path / "nowhere.safetensors"), error=FileNotFoundError
        )


def test_weights_that_unfold_beyond_the_limit_of_memory_are_one_line(tmp_path, monkeypatch):
    plain, folded = tmp_path / "plain.pth", tmp_path / "folded.pth"
    torch.save({"weight": torch.zeros(500_000)}, plain)
    with ZipFile(plain) as archive, ZipFile(folded, "w", ZIP_DEFLATED) as smaller:
        for name in archive.namelist():
            smaller.writestr(name, archive.read(name))
    assert folded.stat().st_size < 20_000
    assert image_models.read_weights(str(folded))["weight"].shape == (500_000,)
    monkeypatch.setenv("PAPERLIB_READ_LIMIT", "1MB")
    for path in (plain, folded):
        refused(rf"weights: {path.name}: 2 MB would take", image_models.read_weights, str(path))


def test_wrong_names_and_weights_are_named(published, monkeypatch):
    with pytest.raises(
        ValueError, match=r"timm: no model 'test_resnat'; close names: .*test_resnet"
    ):
        pretrained_classifier("test_resnat", 2)
    with pytest.raises(ValueError, match="weights: these are not the weights of timm's test_vit"):
        pretrained_classifier("test_vit", 2, weights=image_models.read_weights(str(published)))
    with pytest.raises(ValueError, match="weights: expected the name of their model"):
        image_models.ImageHelper(name="imagenet", data="real", weights=str(published))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        RuntimeError, match=r"the weights of test_resnet cannot be downloaded .* 'weights'"
    ):
        pretrained_classifier(MODEL, 2)
