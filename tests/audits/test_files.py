"""Members and targets from files, and the page about them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.torch import save_file

from paperlib.audits.document import checksums, report_facts
from paperlib.audits.panoramia.files import audit_files, load_target, load_training, read_images
from paperlib.audits.panoramia.results import NullCheck
from paperlib.core.facts import Refusal, RefusalCode
from paperlib.io.files import file_sha256
from paperlib.models.images import build_image_model
from paperlib.models.images.build import ImageArchitecture
from paperlib.reading import read_frames
from tests.audits.samples import table
from tests.refusals import refused


def test_text_from_a_folder(tmp_path):
    for at in range(60):
        (tmp_path / f"{at}.txt").write_text(
            f"page {at} " + "words of text about coins and models " * 8
        )
    (tmp_path / "mine.py").write_text(
        "def losses(texts):\n    return [len(text) for text in texts]\n"
    )
    texts, target = str(tmp_path), f"{tmp_path}/mine.py:losses"
    options = {"generated": texts, "tokens": 8, "repetitions": 1, "restarts": 1}
    assert audit_files("text", texts, target, **options).result.epsilon_tilde < 1
    refused("nonmembers: not used for text", audit_files, "text", texts, target, nonmembers=texts)


def test_weights_of_a_known_architecture_are_a_target(tmp_path):
    wanted = ImageArchitecture(name="cnn", channels=1, side=7, outputs=3, width=16, seed=4)
    path = tmp_path / "cnn.safetensors"
    save_file(build_image_model(wanted).state_dict(), path)
    images, labels = np.full((2, 1, 7, 7), 9, np.uint8), np.array([0, 2])
    losses = load_target("images", str(path), architecture="cnn", classes=3)(images, labels)
    assert losses.shape == (2,)
    with pytest.raises(ValueError, match="does not fit 'cnn'"):
        load_target("images", str(path), architecture="cnn", classes=5)(images, labels)


def test_rows_images_and_targets_that_are_something_else_are_refused(tmp_path):
    rows, path = tmp_path / "rows.csv", tmp_path / "images.npz"
    for text, words in (("a,b\n", "no rows"), ("", "the file is empty")):
        rows.write_text(text)
        refused(words, read_frames, [str(rows)])
    np.savez(path, images=np.zeros((4, 1, 3, 3), np.uint8), labels=np.zeros(4, int))
    assert [values.shape for values in read_images(str(path))] == [(4, 1, 3, 3), (4,)]
    for arrays, words in (
        ({"x": np.zeros(3)}, "expected the arrays images and labels, got x"),
        ({"images": np.array([{}], dtype=object), "labels": np.zeros(1)}, "expected an NPZ file"),
    ):
        np.savez(path, **arrays)
        refused(words, read_images, str(path))
    path.write_text("no archive")
    refused("expected an NPZ file", read_images, str(path))
    refused(
        "target: expected FILE.py:FUNCTION for table, got 'model.pkl'",
        load_target,
        "table",
        "model.pkl",
    )
    refused("or a .safetensors file for images", load_target, "images", "model.pt")
    refused("kind", load_target, "sound", "a.py:f")
    refused("there is no such file", load_target, "table", "nowhere.py:f")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows that a forest knows, others and generated ones, in a folder with spaces in its name."""
    folder = tmp_path_factory.mktemp("my data")
    table(seed=0).to_csv(folder / "my rows.csv", index=False)
    table(seed=5).to_csv(folder / "made.csv", index=False)
    table(seed=6).to_parquet(folder / "real.parquet")
    (folder / "mine.py").write_text(
        "import pandas as pd\nfrom pathlib import Path\n"
        "KNOWN = set(map(tuple, pd.read_csv(Path(__file__).with_name('my rows.csv')).to_numpy()))\n"
        "def losses(rows):\n    return [-(tuple(row) in KNOWN) - 0.1 * row[0] for row in "
        "rows.to_numpy()]\ndef again(rows, seed):\n    return lambda asked: [seed] * len(asked)\n"
    )
    return folder


def audited(folder, **options):
    options = {"generated": str(folder / "made.csv"), "repetitions": 1, "restarts": 1, **options}
    return audit_files("table", str(folder / "my rows.csv"), f"{folder}/mine.py:losses", **options)


@pytest.fixture(scope="module")
def measured(folder):
    return audited(folder, delta=0.01)


def test_an_audit_from_files_is_an_answer_with_its_condition(measured):
    document = measured.document(claimed_epsilon=1.0)
    content = document.to_dict()
    fields = ("epsilon", "kind", "delta", "null")
    assert [content[name] for name in fields] == [None, "measurement", 0.01, None]
    result = measured.result
    assert content["epsilon_tilde"] == result.epsilon_tilde > 0
    assert content["condition"].startswith("a measurement")
    assert "not a lower bound" in document.verdict.sentences[0]
    assert document.limits == ((result.epsilon_tilde, result.ceiling - result.c_lb),)
    json.dumps(content, allow_nan=False)


def test_a_lower_bound_is_the_main_number_and_a_known_c_makes_one(folder, tmp_path):
    audit = audited(folder, nonmembers=str(folder / "real.parquet"))
    document = audit.document(claimed_epsilon=0.1)
    content = document.to_dict()
    assert [one.kind for one in document.audits] == ["lower bound", "measurement"]
    assert content["epsilon"] == audit.real.epsilon > 0.3
    assert content["claim"] == audit.real.claim
    assert document.verdict.refuted
    assert document.limits[0] == (audit.real.epsilon, audit.real.ceiling)
    assert document.judged(1e9)[0].epsilon == audit.real.epsilon, (
        "the main number, where none is above"
    )
    document.write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.index(audit.real.headline) < page.index(audit.result.headline)
    for text in (
        "coins tossed by this audit",
        "check it with a null model",
        "RM;RN",
        "; null not checked",
        "ceiling of a perfect attack",
        audit.result.claim.split("PANORAMIA")[0],
    ):
        assert text in page
    audit = audited(folder, known_c=0.5)
    document = audit.document()
    assert [one.kind for one in document.audits] == ["lower bound"]
    assert document.limits == ((audit.result.epsilon, audit.result.ceiling - 0.5),)


def test_a_weak_attack_or_a_reversed_direction_gives_a_limit_nothing_to_judge(measured):
    weak = replace(measured, null=NullCheck(mean=-0.5, low=-0.6, high=-0.4, games=5))
    assert weak.document().limits[0][0] is None
    strong = replace(measured, null=NullCheck(mean=0.5, low=0.4, high=0.6, games=5))
    assert strong.document().limits[0][0] == measured.result.epsilon_tilde
    assert measured.document().judged(0.1)[1] is not None
    refusal = Refusal(code=RefusalCode.REVERSED, sentence="any words")
    turned = replace(measured, result=replace(measured.result, refusals=(refusal,)))
    assert turned.document().judged(0.1)[1] is None


def test_a_report_names_its_machine_and_the_checksums_of_files_functions_and_folders(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.txt").write_text("one")
    (tmp_path / "mine.py").write_text("def f(): pass")
    paths = [str(tmp_path / "deep"), f"{tmp_path}/mine.py:f", "", "gpt2"]
    before = checksums(paths)
    assert set(before) == {"deep", "mine.py:f"}
    assert before["mine.py:f"] == file_sha256(tmp_path / "mine.py")
    (tmp_path / "deep" / "a.txt").write_text("two")
    assert checksums(paths)["deep"] != before["deep"]
    path = str(tmp_path / "mine.py")
    facts = report_facts({"Members": path, "Generated": ""}, seed=3)
    wanted = {"Members": path, "SHA-256 of mine.py": before["mine.py:f"], "Seed": "3"}
    assert wanted.items() <= facts.items()
    assert set(facts) == {*wanted, "Date", "Versions", "Hardware"}


def test_functions_come_from_a_file_and_a_typo_says_what_was_meant(folder):
    rows = table(4)
    path = f"{folder}/mine.py"
    assert load_training(f"{path}:again")(rows, 3)(rows[:2]) == [3, 3]
    assert load_training("") is None
    refused("train_again: expected FILE.py:FUNCTION, got 'again'", load_training, "again")
    refused("train_again: .* has no function 'more'", load_training, f"{path}:more")
    refused("has no function 'loses'; did you mean 'losses'", load_target, "table", f"{path}:loses")
    refused("got 'labl'; did you mean 'label'", audited, folder, label="labl")
