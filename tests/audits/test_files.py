"""Members and targets from files, and the page about them."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from safetensors.torch import save_file

from paperlib.attacks.learned import BoostedTrees
from paperlib.audits.document import checksums, report_facts
from paperlib.audits.panoramia.audit import AuditData, audit_model
from paperlib.audits.panoramia.files import (
    audit_files,
    bring_files,
    load_target,
    load_training,
    read_images,
    read_table,
)
from paperlib.audits.panoramia.results import NullCheck
from paperlib.io import file_sha256
from paperlib.models.images import ImageArchitecture, build_image_model
from tests.audits.samples import table


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.normal(size=200), "z": rng.normal(size=200)})


def test_a_table_from_csv_and_parquet(tmp_path, rows):
    rows.to_csv(tmp_path / "m.csv", index=False)
    rows.to_parquet(tmp_path / "g.parquet")
    brought = bring_files("table", str(tmp_path / "m.csv"), generated=str(tmp_path / "g.parquet"))
    assert len(brought.members[0]) == 200
    assert len(brought.generated[0]) == 100


def test_images_from_npz(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, images=np.zeros((4, 1, 3, 3), np.uint8), labels=np.zeros(4, int))
    images, labels = read_images(str(path))
    assert images.shape == (4, 1, 3, 3)
    assert labels.shape == (4,)


def test_text_from_a_folder(tmp_path):
    for at in range(60):
        (tmp_path / f"{at}.txt").write_text(f"page {at} " + "words of text about coins and models " * 8)
    brought = bring_files("text", str(tmp_path), tokens=8)
    assert len(brought.members[0]) >= 30


def test_your_function_is_the_target(tmp_path, rows):
    (tmp_path / "mine.py").write_text("def losses(rows):\n    return rows['x'] ** 2\n")
    target = load_target("table", f"{tmp_path}/mine.py:losses")
    np.testing.assert_allclose(target(rows), rows["x"] ** 2)
    with pytest.raises(ValueError, match="has no function 'loss'"):
        load_target("table", f"{tmp_path}/mine.py:loss")


def test_a_text_target_is_given_texts_alone(tmp_path):
    (tmp_path / "mine.py").write_text("def losses(texts):\n    return [len(text) for text in texts]\n")
    assert list(load_target("text", f"{tmp_path}/mine.py:losses")(["ab", "c"], None)) == [2, 1]


def test_weights_of_a_known_architecture_are_a_target(tmp_path):
    wanted = ImageArchitecture(name="cnn", channels=1, side=7, outputs=3, width=16, seed=4)
    path = tmp_path / "cnn.safetensors"
    save_file(build_image_model(wanted).state_dict(), path)
    images, labels = np.full((2, 1, 7, 7), 9, np.uint8), np.array([0, 2])
    losses = load_target("images", str(path), architecture="cnn", classes=3)(images, labels)
    assert losses.shape == (2,)
    with pytest.raises(ValueError, match="does not fit 'cnn'"):
        load_target("images", str(path), architecture="cnn", classes=5)(images, labels)


@pytest.mark.parametrize(
    ("kind", "target", "words"),
    [
        ("table", "model.pkl", "target: expected FILE.py:FUNCTION for table, got 'model.pkl'"),
        ("images", "model.pt", "or a .safetensors file for images"),
        ("sound", "a.py:f", "kind"),
        ("table", "nowhere.py:f", "there is no such file"),
    ],
)
def test_targets_that_cannot_be_loaded_are_refused(kind, target, words):
    with pytest.raises(ValueError, match=words):
        load_target(kind, target)


def test_files_that_hold_something_else_are_refused(tmp_path, rows):
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_table(str(tmp_path / "none.csv"))
    (tmp_path / "empty.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="no rows"):
        read_table(str(tmp_path / "empty.csv"))
    (tmp_path / "void.csv").write_text("")
    with pytest.raises(ValueError, match="the file is empty"):
        read_table(str(tmp_path / "void.csv"))
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="expected the arrays images and labels, got x"):
        read_images(str(tmp_path / "other.npz"))
    np.savez(tmp_path / "objects.npz", images=np.array([{}], dtype=object), labels=np.zeros(1))
    with pytest.raises(ValueError, match="expected an NPZ file"):
        read_images(str(tmp_path / "objects.npz"))
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(ValueError, match="expected an NPZ file"):
        read_images(str(tmp_path / "text.npz"))
    with pytest.raises(ValueError, match="nonmembers: not used for text"):
        bring_files("text", str(tmp_path), nonmembers=str(tmp_path))


def test_a_report_says_which_files_and_machine_its_numbers_come_from(tmp_path, rows):
    path = tmp_path / "m.csv"
    rows.to_csv(path, index=False)
    facts = report_facts({"Members": str(path), "Generated": ""}, seed=3)
    assert facts["Members"] == str(path)
    assert len(facts["SHA-256 of m.csv"]) == 64
    assert facts["Seed"] == "3"
    assert "Generated" not in facts
    assert {"Date", "Versions", "Hardware"} <= set(facts)


def test_the_page_holds_the_number_its_sentence_and_both_curves(tmp_path):
    rng = np.random.default_rng(0)
    members, made, real = rng.normal(size=(3, 300, 1))
    brought = AuditData(
        members=(members,), generated=(made,), nonmembers=(real,), examples=lambda x: x,
        attacks=(BoostedTrees(rounds=20, smallest_leaf=10),),
    )  # fmt: skip
    audit = audit_model(
        lambda x: rng.normal(size=300) - 3 * np.isin(x[:, 0], members), brought, repetitions=1, restarts=1
    )
    audit.document(facts={"Input": json.dumps("made up")}).write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert audit.result.claim.split("PANORAMIA")[0] in page
    assert "check it with a null model" in page
    assert "RM;RN" in page
    assert "; null not checked" in page
    assert "ceiling of a perfect attack" in page


def audited(tmp_path, **options):
    """A forest that knows its rows, audited from files in a folder with spaces in its name."""
    folder = tmp_path / "my data"
    folder.mkdir()
    for name, seed in (("my rows", 0), ("real", 6), ("made", 5)):
        table(seed=seed).to_csv(folder / f"{name}.csv", index=False)
    (folder / "mine.py").write_text(
        "import pandas as pd\nfrom pathlib import Path\n"
        "KNOWN = set(map(tuple, pd.read_csv(Path(__file__).with_name('my rows.csv')).to_numpy()))\n"
        "def losses(rows):\n    return [-(tuple(row) in KNOWN) - 0.1 * row[0] for row in rows.to_numpy()]\n"
    )
    quick = {"repetitions": 1, "restarts": 1, **options}
    return audit_files("table", str(folder / "my rows.csv"), f"{folder}/mine.py:losses", **quick)


def test_an_audit_from_files_is_an_answer_with_its_condition(tmp_path):
    audit = audited(tmp_path, generated=str(tmp_path / "my data" / "made.csv"), delta=0.01)
    document = audit.document(claimed_epsilon=1.0)
    content = document.to_dict()
    assert (content["epsilon"], content["kind"]) == (None, "measurement")
    assert content["epsilon_tilde"] == audit.result.epsilon_tilde > 0
    assert content["delta"] == 0.01
    assert content["condition"].startswith("a measurement")
    assert content["null"] is None
    assert "not a lower bound" in document.verdict.sentences[0]
    assert document.limits == ((audit.result.epsilon_tilde, audit.result.ceiling - audit.result.c_lb),)
    json.dumps(content, allow_nan=False)


def test_a_lower_bound_with_real_nonmembers_is_the_main_number(tmp_path):
    folder = tmp_path / "my data"
    audit = audited(tmp_path, generated=str(folder / "made.csv"), nonmembers=str(folder / "real.csv"))
    document = audit.document(claimed_epsilon=0.1)
    content = document.to_dict()
    assert [one.kind for one in document.audits] == ["lower bound", "measurement"]
    assert content["epsilon"] == audit.real.epsilon > 0.3
    assert content["claim"] == audit.real.claim
    assert document.verdict.refuted
    assert document.limits[0] == (audit.real.epsilon, audit.real.ceiling)
    assert document.judged(1e9)[0].epsilon == audit.real.epsilon, "the main number, where none is above"
    page = document.html()
    assert page.index(audit.real.headline) < page.index(audit.result.headline)
    assert "coins tossed by this audit" in page


def test_a_known_c_makes_a_lower_bound_that_a_limit_judges(tmp_path):
    audit = audited(tmp_path, generated=str(tmp_path / "my data" / "made.csv"), known_c=0.5)
    document = audit.document()
    assert [one.kind for one in document.audits] == ["lower bound"]
    assert document.limits == ((audit.result.epsilon, audit.result.ceiling - 0.5),)


def test_an_attack_weaker_than_the_baseline_gives_a_limit_nothing_to_judge(tmp_path):
    audit = audited(tmp_path, generated=str(tmp_path / "my data" / "made.csv"))
    weak = replace(audit, null=NullCheck(mean=-0.5, low=-0.6, high=-0.4, games=5))
    assert weak.document().limits[0][0] is None
    strong = replace(audit, null=NullCheck(mean=0.5, low=0.4, high=0.6, games=5))
    assert strong.document().limits[0][0] == audit.result.epsilon_tilde


def test_a_reversed_direction_gives_a_limit_nothing_to_judge(tmp_path):
    document = audited(tmp_path, generated=str(tmp_path / "my data" / "made.csv")).document()
    first = replace(document.answers[0], warnings=("direction or membership is probably reversed",))
    assert replace(document, answers=(first,)).judged(0.1)[1] is None


def test_checksums_are_of_files_functions_and_folders(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.txt").write_text("one")
    (tmp_path / "mine.py").write_text("def f(): pass")
    paths = [str(tmp_path / "deep"), f"{tmp_path}/mine.py:f", "", "gpt2"]
    before = checksums(paths)
    assert set(before) == {"deep", "mine.py:f"}
    assert before["mine.py:f"] == file_sha256(tmp_path / "mine.py")
    (tmp_path / "deep" / "a.txt").write_text("two")
    assert checksums(paths)["deep"] != before["deep"]


def test_a_typo_in_a_function_or_a_column_says_what_was_meant(tmp_path, rows):
    (tmp_path / "mine.py").write_text("def losses(rows):\n    return rows['x']\n")
    with pytest.raises(ValueError, match="has no function 'loses'; did you mean 'losses'"):
        load_target("table", f"{tmp_path}/mine.py:loses")
    rows.assign(income=1).to_csv(tmp_path / "m.csv", index=False)
    with pytest.raises(ValueError, match="got 'incom'; did you mean 'income'"):
        bring_files("table", str(tmp_path / "m.csv"), label="incom")


def test_your_training_comes_from_a_file(tmp_path, rows):
    (tmp_path / "mine.py").write_text(
        "def again(given, seed):\n    return lambda asked: [seed] * len(asked)\n"
    )
    assert load_training("table", f"{tmp_path}/mine.py:again")(rows, 3)(rows[:2]) == [3, 3]
    assert load_training("text", f"{tmp_path}/mine.py:again")(["a"], None, 4)(["b", "c"], None) == [4, 4]
    assert load_training("table", "") is None
    with pytest.raises(ValueError, match=r"train_again: expected FILE.py:FUNCTION, got 'again'"):
        load_training("table", "again")
    with pytest.raises(ValueError, match=r"train_again: .* has no function 'more'"):
        load_training("table", f"{tmp_path}/mine.py:more")
