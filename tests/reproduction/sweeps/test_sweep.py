"""A sweep in one process: every result once, nothing lost; and where a sweep runs, read from one
word.
"""

import importlib
import json
import linecache
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from paperlib.io.budget import UNTIL_VARIABLE, BudgetSpent
from paperlib.io.files import OutputError
from paperlib.report.provenance import gpu_name
from paperlib.reproduction.sweeps import (
    Place,
    SweepError,
    job_script,
    run_sweep,
    sweep_place,
    visible_devices,
)
from tests.refusals import refused
from tests.reproduction.sweeps.sweep_jobs import Job, executions, group, square, squares


def sweep(configs, folder, function=square, **options):
    return run_sweep(function, configs, folder=folder, **{"workers": 0, "version": "1", **options})


def test_every_config_is_yielded_once_and_never_computed_again(tmp_path, trace):
    jobs = [Job(number, trace) for number in range(6)]
    first = list(sweep(jobs[:4], tmp_path / "u"))
    again = list(sweep(jobs, tmp_path / "u"))
    assert executions(trace) == dict.fromkeys(range(6), 1)
    assert len(again) == 6
    assert squares(again) == {number: number**2 for number in range(6)}
    assert first == again[:4]
    assert list(sweep([], tmp_path / "u")) == []


def test_a_sweep_whose_time_is_over_begins_no_call_and_goes_on_later(tmp_path, monkeypatch):
    jobs = [Job(number) for number in range(3)]
    first = list(sweep(jobs[:2], tmp_path))
    monkeypatch.setenv(UNTIL_VARIABLE, "1")
    assert list(sweep(jobs[:2], tmp_path)) == first
    with pytest.raises(BudgetSpent):
        list(sweep(jobs, tmp_path))

    def cut(_):
        raise BudgetSpent

    monkeypatch.delenv(UNTIL_VARIABLE)
    with pytest.raises(BudgetSpent):  # no failure of the configuration
        list(sweep(jobs, tmp_path / "cut", cut))
    assert squares(sweep(jobs, tmp_path)) == {number: number**2 for number in range(3)}


def test_compatible_configs_share_calls_of_about_equal_size(tmp_path):
    jobs = [Job(number, group="ab"[number % 3 == 0]) for number in range(15)]
    pairs = sweep(jobs, tmp_path, batch_key=group, max_batch=4)
    calls = {config.number: result["calls"] for config, result in pairs}
    # Five of group b in calls of 2 and 3, ten of group a in calls of 3, 4 and 3.
    assert sorted(calls[number] for number in range(0, 15, 3)) == [2, 2, 3, 3, 3]
    assert sorted(calls[number] for number in range(15) if number % 3) == [3] * 6 + [4] * 4
    alone = sweep([replace(job, seconds=1e-9) for job in jobs], tmp_path)
    assert {result["calls"] for _, result in alone} == {1}


def test_results_come_back_the_same_from_memory_and_from_disk(tmp_path):
    def mixed(batch):
        values = {"f": 0.1, "i": 3, "b": True, "s": "é", "nan": float("nan"), "list": [1.5, 2.5]}
        return [{**values, "array": np.arange(6).reshape(2, 3)} for _ in batch]

    (fresh,), (stored,) = (list(sweep([Job(1)], tmp_path, mixed)) for _ in range(2))
    for _, result in (fresh, stored):
        assert [(result[name], type(result[name])) for name in "fibs"] == [
            (0.1, float),
            (3, int),
            (True, bool),
            ("é", str),
        ]
        assert np.isnan(result["nan"])
        np.testing.assert_array_equal(result["list"], [1.5, 2.5])
        np.testing.assert_array_equal(result["array"], np.arange(6).reshape(2, 3))


def test_another_version_function_or_kind_of_config_is_another_unit(tmp_path, trace):
    @dataclass(frozen=True)
    class Other(Job):
        pass

    def cube(batch):
        return [{"square": job.number**3} for job in batch]

    list(sweep([Job(2, trace)], tmp_path / "u"))
    list(sweep([Job(2, trace)], tmp_path / "u", version="2"))
    list(sweep([Other(2, trace)], tmp_path / "u"))
    assert executions(trace) == {2: 3}
    assert squares(sweep([Job(2, trace)], tmp_path / "u", cube)) == {2: 8}


def test_a_failed_call_is_named_at_the_end_with_all_its_configs_and_the_rest_goes_on(
    tmp_path, trace, caplog
):
    jobs = [Job(number, trace, deed="raise" if number in (3, 9) else "") for number in range(12)]
    seen = []
    with pytest.raises(SweepError) as caught:
        seen.extend(sweep(jobs, tmp_path / "u", batch_key=group, max_batch=2))
    rest = [number for number in range(12) if number not in (2, 3, 8, 9)]
    assert sorted(squares(seen)) == rest
    assert executions(trace) == dict.fromkeys(rest, 1)
    assert [config.number for config, _ in caught.value.failures] == [2, 3, 8, 9]
    for words in ("4 of 12", "other 8 are kept", "number=3", "ValueError: 9 is a bad number"):
        assert words in str(caught.value)
    assert "3 is a bad number" in caplog.text
    mended = [replace(job, deed="") for job in jobs]
    assert len(squares(sweep(mended, tmp_path / "u"))) == 12


def test_a_sweep_that_is_interrupted_or_left_keeps_what_is_finished(tmp_path, trace):
    jobs = [Job(number, trace) for number in range(6)]
    for _ in sweep(jobs, tmp_path / "u", batch_key=group, max_batch=3):
        break
    with pytest.raises(KeyboardInterrupt):
        list(sweep([*jobs[:5], Job(6, deed="interrupt"), jobs[5]], tmp_path / "u"))
    list(sweep(jobs, tmp_path / "u"))
    assert executions(trace) == dict.fromkeys(range(6), 1)


def test_a_call_that_cannot_write_its_files_ends_the_sweep(tmp_path):
    called = []

    def full(batch):
        called.extend(batch)
        if batch[0].number == 1:
            raise OutputError("cannot write there: the disk is full")
        return square(batch)

    with pytest.raises(OutputError, match="the disk is full"):
        list(sweep([Job(number) for number in range(4)], tmp_path / "u", full))
    assert [job.number for job in called] == [0, 1]
    assert len(list((tmp_path / "u").iterdir())) == 1


@dataclass
class Thawed:
    number: int


def test_bad_arguments_words_files_and_what_a_function_should_not_return_are_refused(tmp_path):
    for configs, options, message in (
        ([Thawed(1)], {}, "expected frozen dataclasses, got Thawed.* at index 0"),
        ([Job], {}, "expected frozen dataclasses"),
        ([Job(1), Job(2), Job(1)], {}, "index 2 is the same as index 0"),
        ([Job(1)], {"max_batch": 0}, "max_batch: expected 1 or more, got 0"),
        ([Job(1)], {"workers": -1}, "workers: expected 0 or more"),
        ([Job(1, trace=object())], {}, "configs|expected numbers"),
    ):
        refused(message, sweep, configs, tmp_path, **options)
        assert list(tmp_path.iterdir()) == []
    for returned, message in (
        ([], "expected a list of 1 results, got 0"),
        ([3.0], "expected results that are mappings, got float"),
        ([{"a": None}], "result 'a': expected numbers"),
    ):
        with pytest.raises(SweepError, match=message):
            list(sweep([Job(1)], tmp_path / "u", lambda batch, returned=returned: returned))
        assert not (tmp_path / "u").exists()
    for word, text, message in (
        (
            "jobqueue:",
            "jobqueue: {slurm: {cores: 1}, pbs: {}}",
            "one batch system below 'jobqueue'",
        ),
        ("jobqueue:", "jobqueue: {lrs: {cores: 1}}", "one of slurm, pbs"),
        ("jobqueue:", "jobqueue: {slurm: {cores: 1}}\njobs: 0", "jobs: expected a whole number"),
        ("jobqueue:", "jobqueue: {slurm: }", "slurm: expected options"),
        ("jobqueue:", "jobqueue: {", "cannot be read"),
        ("slurm:", "jobqueue: {pbs: {cores: 1}}", "one of slurm"),
        ("my-cluster:", "", "expected an address such as tcp://host:8786"),
    ):
        path = tmp_path / "queue.yaml"
        path.write_text(text)
        refused(message, sweep_place, f"{word}{path}")


def test_version_defaults_to_the_file_the_function_stands_in(tmp_path, monkeypatch):
    module = tmp_path / "my_sweep_jobs.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    for value in (1, 22):
        module.write_text(f"def f(batch):\n    return [{{'x': {value}}} for _ in batch]\n")
        sys.modules.pop("my_sweep_jobs", None)
        linecache.checkcache()
        function = importlib.import_module("my_sweep_jobs").f
        ((_, result),) = sweep([Job(1)], tmp_path / "u", function, version=None)
        assert result["x"] == value


def test_bar_shows_an_estimate_and_can_be_silenced(tmp_path, capsys, monkeypatch):
    jobs = [Job(number, seconds=0.06) for number in range(4)]
    monkeypatch.setenv("PAPERLIB_PROGRESS", "0")
    list(sweep(jobs, tmp_path / "a"))
    monkeypatch.setenv("PAPERLIB_PROGRESS", "1")
    list(sweep(jobs, tmp_path / "b", progress=False))
    assert capsys.readouterr().err == ""
    list(sweep(jobs, tmp_path / "c"))
    shown = capsys.readouterr().err
    assert "4/4" in shown or "3/4" in shown
    assert "<00:0" in shown


def test_without_dask_the_error_says_what_to_install(tmp_path, monkeypatch):
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(ModuleNotFoundError, match=r"pass workers=0 .* install the extra 'sweep'"):
        list(sweep([Job(1)], tmp_path, workers=2))
    assert len(list(sweep([Job(1)], tmp_path))) == 1


def queue_file(folder, **options):
    path = folder / "queue.yaml"
    path.write_text(
        json.dumps({"jobs": 3, "jobqueue": {"slurm": {"cores": 8, "memory": "4GB", **options}}})
    )
    return f"slurm:{path}"


def test_gpus_are_those_that_this_process_may_see_and_each_gets_a_process(tmp_path, monkeypatch):
    for listed, devices in {
        "0,2": ["0", "2"],
        "GPU-a, GPU-b": ["GPU-a", "GPU-b"],
        "": [],
        "-1": [],
    }.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
        assert visible_devices() == devices
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf '0\\n1\\n2\\n'\n")
    tool.chmod(0o755)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert sweep_place("local").workers == 3
    assert sweep_place("local", workers=2).workers == 2
    assert gpu_name() == "0"
    tool.write_text('#!/bin/sh\n[ "$4" = 2 ] && echo small || echo large\n')
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    assert gpu_name() == "small", "not that of the first GPU of the machine"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpu_name() is None, "a run that may not use the GPU does not name it"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert visible_devices() == []


def test_a_word_names_the_place_an_option_goes_before_the_file_and_a_time_is_no_number(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PAPERLIB_SCHEDULER", "tcp://there:8786")
    assert sweep_place().address == "tcp://there:8786"
    assert sweep_place("local", workers=4) == Place("", workers=4)
    given = queue_file(tmp_path)
    assert (sweep_place(given).system, sweep_place(given).workers) == ("slurm", 3)
    assert sweep_place(given, workers=9).workers == 9
    file = tmp_path / "queue.yaml"
    for written in ('"12:00:00"', "12:00:00"):
        file.write_text(
            f"jobs: 2\njobqueue:\n  slurm: {{queue: gpu, cores: 2, walltime: {written}}}\n"
        )
        place = sweep_place(f"slurm:{file}")
        assert [place.options[name] for name in ("queue", "cores", "walltime")] == [
            "gpu",
            2,
            "12:00:00",
        ]
        assert place.workers == 2


def test_a_job_takes_one_call_at_a_time_on_one_gpu(tmp_path):
    pytest.importorskip("dask_jobqueue")
    gpu = {"job-extra-directives": ["--gres=gpu:1"]}
    script = job_script(sweep_place(queue_file(tmp_path, **gpu)))
    command = script.strip().splitlines()[-1]
    assert command.rpartition("--nthreads ")[2].split()[0] == "1"  # the last one counts
    assert "tls://" in command
    assert "--nworkers" not in command
    assert "#SBATCH --gres=gpu:1" in script
    with pytest.raises(
        ValueError, match="expected processes: 1 in a file that asks for GPUs, got 4"
    ):
        sweep_place(queue_file(tmp_path, processes=4, **gpu))
    assert job_script(sweep_place("local", workers=1)) == ""
