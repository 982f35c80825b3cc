"""What killed processes leave goes at the next start; what a living process or another user makes
stays.
"""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from paperlib.io.files import atomic_file, atomic_folder, write_text
from paperlib.io.temporary import remove_leftovers, temporary_folder
from tests.refusals import refused

SPAWN = multiprocessing.get_context("spawn")


def write_and_wait(folder: str, connection: object) -> None:
    """Begin a file and two folders, say so, and wait for the end."""
    with (
        atomic_file(Path(folder) / "result.json") as file,
        atomic_folder(Path(folder) / "images") as images,
        temporary_folder(Path(folder), "nb-") as sockets,
    ):
        file.write(b"half")
        (images / "a.png").touch()
        (sockets / "k-1").touch()
        connection.send(os.getpid())
        connection.recv()


@pytest.fixture
def started(tmp_path):
    """A process that is writing to the folder, and its end of the line."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=write_and_wait, args=(str(tmp_path), theirs))
    process.start()
    assert ours.recv() == process.pid
    yield process
    process.kill()
    process.join()


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def test_leftovers_of_a_killed_process_go_with_the_next_file(tmp_path, started):
    mine = [
        tmp_path / name for name in (".result.json.part", "nb-mine", ".other.0123abcd-1-x.part")
    ]
    for path in mine:
        path.touch()
    assert len(list(tmp_path.iterdir())) == 6
    kill(started)
    write_text(tmp_path / "other.json", "x")
    assert sorted(tmp_path.iterdir()) == sorted([*mine, tmp_path / "other.json"])


def test_what_a_living_process_writes_stays(tmp_path, started):
    write_text(tmp_path / "other.json", "x")
    assert len(list(tmp_path.iterdir())) == 4
    kill(started)
    write_text(tmp_path / "other.json", "y")  # this process has looked before
    assert len(list(tmp_path.iterdir())) == 4


def test_links_are_not_followed_and_other_users_keep_theirs(tmp_path, started, monkeypatch):
    kill(started)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    left = next(path for path in tmp_path.glob("nb-*"))
    (left / "k-1").unlink()
    left.rmdir()
    left.symlink_to(tmp_path / "mine")
    with monkeypatch.context() as patched:
        patched.setattr(os, "getuid", lambda: -1)
        remove_leftovers(tmp_path)
    assert len(list(tmp_path.glob("*.part"))) + len(list(tmp_path.glob(".images*"))) == 2
    monkeypatch.setattr("paperlib.io.temporary._cleaned", set())
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "file").exists()


def test_a_folder_takes_its_place_whole_or_not_at_all(tmp_path):
    def fill(error=None):
        with atomic_folder(tmp_path / "new" / "images") as folder:
            (folder / "a.png").touch()
            if error is not None:
                raise error

    with pytest.raises(KeyboardInterrupt):
        fill(KeyboardInterrupt())
    refused("cannot write .*images: the disk is full", fill, OSError(28, "x"), error=OSError)
    assert list((tmp_path / "new").iterdir()) == []
    fill()
    assert [path.name for path in (tmp_path / "new" / "images").iterdir()] == ["a.png"]
    (tmp_path / "usual").mkdir()
    assert (tmp_path / "new" / "images").stat().st_mode == (tmp_path / "usual").stat().st_mode
    refused("cannot write .*images", fill, error=OSError)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["images"]
