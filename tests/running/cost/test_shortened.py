"""A shortened run measures, and leaves nothing behind."""

from pathlib import Path

import pytest

from paperlib.running import keep_run, plan
from paperlib.running.cost.shortened import Measured, shortened_run
from tests.running.toys import make_project

BODY = """from pathlib import Path
import torch
import pandas as pd
from paperlib.core.work import steps
from paperlib.io import Cache, user_cache_folder
from paperlib.report import show_table
turns = [len(item) for item in steps(torch.ones(100, 30).split(1), "a loop", "of a toy")]
cache = Cache(user_cache_folder() / "toys")
kept = cache.get({"m": m}, lambda: {"x": [0.0] * 10_000})
show_table(pd.DataFrame({"turns": [len(turns)]}), name="turns", caption="Turns")"""
FAILING = "raise ValueError('no such thing')"


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("checkout")


@pytest.fixture(scope="module")
def measured(places: tuple[Path, Path]) -> tuple[Measured, set[str], set[str]]:
    cache, root = places
    project = make_project(root, toy=BODY, bad=FAILING)
    before = everything(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        found = shortened_run(plan(project, "toy", profile="smoke"), made_up=False, say=lambda _: None)
    return found, everything(root) - before, everything(cache)


def test_nothing_is_left_behind(measured: tuple[Measured, set[str], set[str]]):
    found, in_checkout, in_cache = measured
    assert not in_checkout
    assert not in_cache
    assert found.written > 80_000  # what a whole run keeps in its cache


def test_steps_and_time_are_those_of_the_whole_loop(measured: tuple[Measured, set[str], set[str]]):
    [stage] = measured[0].stages
    assert (stage["label"], stage["steps"]) == ("a loop", 100)
    assert stage["seconds"] > 0
    assert measured[0].rest[""] > 1.0  # imports
    assert measured[0].rest["2"] > 0
    assert not measured[0].stopped


def test_the_same_notebook_runs_whole_without_a_meter(
    measured: tuple[Measured, set[str], set[str]], places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(places[0]))
    folder = keep_run(plan(make_project(places[1] / "again", toy=BODY), "toy", profile="smoke"))
    assert (folder / "turns.csv").read_text() == "turns\n100\n"
    assert everything(places[0])


def test_a_failing_cell_is_named(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(places[0]))
    project = make_project(places[1] / "failing", bad=FAILING)
    found = shortened_run(plan(project, "bad", profile="smoke"), made_up=False, say=lambda _: None)
    assert found.stopped == ("cell 2: ValueError: no such thing",)


def test_a_cell_that_takes_too_long_is_stopped_and_named(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(places[0]))
    project = make_project(places[1] / "slow", slow="import time\nfor _ in range(600): time.sleep(0.1)")
    job = plan(project, "slow", profile="smoke")
    found = shortened_run(job, made_up=False, cell_seconds=5.0, say=lambda _: None)
    assert found.stopped == ("cell 2: took longer than 5 s",)


def test_what_was_measured_before_the_kernel_died_is_kept(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(places[0]))
    project = make_project(places[1] / "dead", dead="import os\nos._exit(1)")
    found = shortened_run(plan(project, "dead", profile="smoke"), made_up=False, say=lambda _: None)
    assert "kernel died" in found.stopped[0]
    assert "1" in found.rest
