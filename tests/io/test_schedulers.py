"""Where a sweep runs: read from one word, with GPUs shared out and one call at a time in a job."""

import json
from pathlib import Path
from typing import Any

import pytest

from paperlib.io import Place, job_script, sweep_place, visible_devices


def queue_file(folder: Path, **options: Any) -> str:
    path = folder / "queue.yaml"
    path.write_text(json.dumps({"jobs": 3, "jobqueue": {"slurm": {"cores": 8, "memory": "4GB", **options}}}))
    return f"slurm:{path}"


def test_gpus_are_those_that_this_process_may_see_and_each_gets_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for listed, devices in {"0,2": ["0", "2"], "GPU-a, GPU-b": ["GPU-a", "GPU-b"], "": [], "-1": []}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
        assert visible_devices() == devices
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf '0\\n1\\n2\\n'\n")
    tool.chmod(0o755)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert sweep_place("local").workers == 3
    assert sweep_place("local", workers=2).workers == 2
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert visible_devices() == []


def test_a_word_names_the_place_and_an_option_goes_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERLIB_SCHEDULER", "tcp://there:8786")
    assert sweep_place().address == "tcp://there:8786"
    assert sweep_place("local", workers=4) == Place("", workers=4)
    given = queue_file(tmp_path)
    assert (sweep_place(given).system, sweep_place(given).workers) == ("slurm", 3)
    assert sweep_place(given, workers=9).workers == 9


def test_a_job_takes_one_call_at_a_time_on_one_gpu(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    gpu = {"job-extra-directives": ["--gres=gpu:1"]}
    script = job_script(sweep_place(queue_file(tmp_path, **gpu)))
    command = script.strip().splitlines()[-1]
    assert command.endswith("--nthreads 1")
    assert "--nworkers" not in command
    assert "#SBATCH --gres=gpu:1" in script
    with pytest.raises(ValueError, match="expected processes: 1 in a file that asks for GPUs, got 4"):
        sweep_place(queue_file(tmp_path, processes=4, **gpu))
    assert job_script(sweep_place("local", workers=1)) == ""


def test_a_time_without_quotes_is_no_number(tmp_path: Path) -> None:
    file = tmp_path / "queue.yaml"
    for written in ('"12:00:00"', "12:00:00"):
        file.write_text(f"jobs: 2\njobqueue:\n  slurm: {{queue: gpu, cores: 2, walltime: {written}}}\n")
        place = sweep_place(f"slurm:{file}")
        assert [place.options[name] for name in ("queue", "cores", "walltime")] == ["gpu", 2, "12:00:00"]
        assert place.workers == 2


@pytest.mark.parametrize(
    ("word", "text", "message"),
    [
        ("jobqueue:", "jobqueue: {slurm: {cores: 1}, pbs: {}}", "one batch system below 'jobqueue'"),
        ("jobqueue:", "jobqueue: {lrs: {cores: 1}}", "one of slurm, pbs"),
        ("jobqueue:", "- 1", "one batch system"),
        ("jobqueue:", "jobqueue: {slurm: {cores: 1}}\njobs: 0", "jobs: expected a whole number"),
        ("jobqueue:", "jobqueue: {slurm: }", "slurm: expected options"),
        ("jobqueue:", "jobqueue: {", "cannot be read"),
        ("slurm:", "jobqueue: {pbs: {cores: 1}}", "one of slurm"),
        ("jobqueue:/no/such", "", "cannot be read"),
        ("my-cluster:", "", "expected an address such as tcp://host:8786"),
    ],
)
def test_a_bad_word_or_file_is_refused(tmp_path: Path, word: str, text: str, message: str) -> None:
    path = tmp_path / "queue.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        sweep_place(f"{word}{path}")
