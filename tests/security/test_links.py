"""Links in a folder of others: those that lead out of it are refused, those of the hub pass."""

from collections.abc import Callable
from pathlib import Path

import pytest

from paperlib.data.text.corpora import corpus_files, read_documents
from paperlib.io.files import LINKS_VARIABLE, visible_files
from paperlib.io.records import open_records

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
