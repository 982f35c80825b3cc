"""Links in a folder of others: those that lead out of it are refused, those of the hub pass."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from safetensors import safe_open

from paperlib.audits.language.chat_templates import ChatTemplate
from paperlib.data.text.corpora import corpus_files, read_documents
from paperlib.io.records import open_records
from paperlib.models.folders import check_model_folder
from paperlib.models.language import (
    LanguageModelConfig,
    load_language_model,
    model_stamp,
    new_language_model,
    parameter_count,
    train_tokenizer,
)
from paperlib.reading.folders import LINKS_VARIABLE, visible_files

SECRET = "the secret 83a5ef2c9d0b3e71f6a8c3d25b190e47 of the user"
LEADING_OUT: dict[str, tuple[str, str]] = {
    "a file by an absolute path": ("brought/notes.txt", "{here}/own/secret.txt"),
    "a file by a relative path": ("brought/notes.txt", "../own/secret.txt"),
    "a file below": ("brought/a/b/notes.txt", "../../../own/secret.txt"),
    "a folder": ("brought/notes", "../own"),
    "a folder of the system": ("brought/notes", "/proc/self"),
    "a file of the system": ("brought/notes.txt", "/etc/passwd"),
    "a link to a link": ("brought/notes.txt", "../own/link.txt"),
    "a folder whose name begins alike": ("brought/notes", "../brought-own"),
    "a name of the hub": ("brought/snapshots/x/notes.txt", "../../../own/secret.txt"),
}
"""Where a link stands, and where it leads."""


@pytest.fixture
def folders(here) -> Path:
    for name in ("own/secret.txt", "brought-own/secret.txt"):
        Path(name).parent.mkdir()
        Path(name).write_text(SECRET)
    Path("own/link.txt").symlink_to("secret.txt")
    Path("brought").mkdir()
    Path("brought/sound.txt").write_text("a sound text")
    return here


def link(place: str, target: str) -> None:
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    Path(place).symlink_to(target.format(here=Path.cwd()))


READERS: dict[str, Callable[[], object]] = {
    "a corpus": lambda: list(read_documents("brought")),
    "records": lambda: open_records("brought"),
}


@pytest.mark.parametrize("name", LEADING_OUT)
@pytest.mark.parametrize("reader", READERS)
def test_a_link_that_leads_out_of_a_folder_is_one_line(folders, reader, name):
    link(*LEADING_OUT[name])
    with pytest.raises(ValueError) as caught:
        READERS[reader]()
    assert "leads out of its folder" in str(caught.value)
    assert LINKS_VARIABLE in str(caught.value)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("command_name", ["audit-lm", "audit-chat"])
def test_no_command_reads_what_a_link_leads_to(folders, command, command_name):
    link("brought/notes.txt", "../own/secret.txt")
    words = ["model", "brought"]
    if command_name == "audit-chat":
        words = ["http://127.0.0.1:9/v1", "brought", "--model", "m", "--dry-run"]
    code, output, errors = command(command_name, *words)
    assert code == 2
    assert "leads out of its folder" in errors
    assert len(errors.splitlines()) == 1
    assert SECRET not in output + errors


def test_links_within_a_folder_and_of_a_snapshot_of_the_hub_are_followed(folders):
    Path("brought/below").mkdir()
    link("brought/below/again.txt", "../sound.txt")
    link("brought/linked", "below")
    link("brought/dead.txt", "../nowhere.txt")
    names = ["below/again.txt", "linked/again.txt", "sound.txt"]
    assert list(map(str, visible_files("brought"))) == names
    Path("hub/data/blobs").mkdir(parents=True)
    Path("hub/data/blobs/83a5ef2c").write_text("a text of the hub")
    link("hub/data/snapshots/abc/train/part.txt", "../../../blobs/83a5ef2c")
    link("by_name", "hub/data/snapshots/abc")
    for root in ("hub/data/snapshots/abc", "hub/data/snapshots/abc/train", "by_name", "hub"):
        assert "a text of the hub" in [document.text for document in read_documents(root)]


def test_blobs_that_are_themselves_a_link_lead_out(folders):
    link("hub/blobs", "../own")
    link("hub/snapshots/abc/notes.txt", "../../blobs/secret.txt")
    with pytest.raises(ValueError, match="leads out of its folder"):
        corpus_files("hub/snapshots/abc")


def test_links_are_followed_where_the_user_says_so(folders, monkeypatch):
    link("brought/notes.txt", "../own/secret.txt")
    monkeypatch.setenv(LINKS_VARIABLE, "1")
    assert SECRET in [document.text for document in read_documents("brought")]


WEIGHTS = "model.safetensors"


@pytest.fixture
def model(folders) -> Path:
    """The folder of a model that can be loaded."""
    shape = LanguageModelConfig(width=16, heads=2, context=16)
    new_language_model(shape, 260).save_pretrained("a_model")
    train_tokenizer(["to be or not to be"], 260, context=16).save_pretrained("a_model")
    return Path("a_model")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", WEIGHTS, "more/notes.txt"])
def test_a_link_out_of_the_folder_of_a_model_is_one_line(model, command, monkeypatch, name):
    file = model / name
    if file.exists():
        file.replace(Path("own", file.name))
    else:
        Path("own", file.name).write_text(SECRET)
    link(str(file), "{here}/own/" + file.name)
    calls: list[Callable[[], object]] = [
        lambda: load_language_model(model),
        lambda: parameter_count(model),
        lambda: model_stamp(model),
        lambda: ChatTemplate(str(model)).text({"messages": []}, "messages"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"^[^\n]*leads out of its folder[^\n]*$"):
            call()
    draw = Random(0)
    digits = [f"{draw.getrandbits(128):032x}" for _ in range(40)]
    Path("brought/sound.txt").write_text("\n".join(f"the sum is {text}" for text in digits))
    code, _, errors = command("audit-lm", "a_model", "brought")
    assert (code, len(errors.splitlines())) == (2, 1)
    assert "leads out of its folder" in errors
    monkeypatch.setenv(LINKS_VARIABLE, "1")
    assert load_language_model(model)[0].num_parameters() == parameter_count(model)


def test_the_snapshot_of_a_model_is_loaded_from_its_blobs(model):
    Path("hub/blobs").mkdir(parents=True)
    for file in model.iterdir():
        file.replace(Path("hub/blobs", f"83a5{file.name}"))
        link(f"hub/snapshots/abc/{file.name}", f"../../blobs/83a5{file.name}")
    assert load_language_model("hub/snapshots/abc")[0].num_parameters() > 0


@pytest.mark.parametrize("place", ["../own/stolen.safetensors", "{here}/own/stolen.safetensors"])
def test_a_list_of_weights_names_files_of_its_folder_alone(model, place):
    """The libraries below open whatever the list names."""
    named = place.format(here=Path.cwd())
    (model / WEIGHTS).replace("own/stolen.safetensors")
    with safe_open("own/stolen.safetensors", "pt") as file:
        weights = dict.fromkeys(file.keys(), named)
    index = {"metadata": {}, "weight_map": weights}
    Path(model, f"{WEIGHTS}.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=r"^[^\n]*names weights outside of its folder[^\n]*$"):
        load_language_model(model)


def test_the_base_of_an_adapter_leads_out_of_its_own_folder_no_more_than_a_model(model):
    """An adapter names its base in a file that came with it."""
    adapter = Path("adapter")
    adapter.mkdir()
    config = adapter / "adapter_config.json"
    config.write_text(json.dumps({"base_model_name_or_path": str(model)}))
    check_model_folder(adapter)
    config.write_text(json.dumps({"base_model_name_or_path": "adapter"}))
    with pytest.raises(ValueError, match=r"^[^\n]*is an adapter too[^\n]*$"):
        check_model_folder(adapter)
    config.write_text(json.dumps({"base_model_name_or_path": str(model)}))
    (model / WEIGHTS).replace("own/weights")
    link(str(model / WEIGHTS), "{here}/own/weights")
    for call in (check_model_folder, parameter_count):
        with pytest.raises(ValueError, match=r"^[^\n]*leads out of its folder[^\n]*$"):
            call(adapter)
