"""Where a sweep runs: read from one word, GPUs shared out, and batch jobs as many as there are calls."""

import json
from pathlib import Path
from typing import Any

import pytest

from paperlib.io import Place, job_script, sweep_place, visible_devices
from paperlib.io.schedulers import _Jobs


def queue_file(folder: Path, **options: Any) -> str:
    path = folder / "queue.yaml"
    path.write_text(json.dumps({"jobs": 3, "jobqueue": {"slurm": {"cores": 8, "memory": "4GB", **options}}}))
    return f"slurm:{path}"


@pytest.mark.parametrize(
    ("listed", "devices"), [("0,2", ["0", "2"]), ("GPU-a, GPU-b", ["GPU-a", "GPU-b"]), ("", []), ("-1", [])]
)
def test_gpus_are_those_that_this_process_may_see(
    listed: str, devices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert visible_devices() == devices


def test_gpus_are_counted_by_the_driver_and_each_gets_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf '0\\n1\\n2\\n'\n")
    tool.chmod(0o755)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert visible_devices() == ["0", "1", "2"]
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
    given = queue_file(tmp_path, **{"job-extra-directives": ["--gres=gpu:1"]})
    assert (sweep_place(given).system, sweep_place(given).workers) == ("slurm", 3)
    assert sweep_place(given, workers=9).workers == 9
    path = tmp_path / "pbs.yaml"
    path.write_text("jobqueue: {pbs: {cores: 1}}")
    with pytest.raises(ValueError, match="one of slurm"):
        sweep_place(f"slurm:{path}")


def test_a_job_takes_one_call_at_a_time_on_one_gpu(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    gpu = {"job-extra-directives": ["--gres=gpu:1"]}
    script = job_script(sweep_place(queue_file(tmp_path, **gpu), one_call_each=True))
    command = script.strip().splitlines()[-1]
    assert command.endswith("--nthreads 1")
    assert "--nworkers" not in command
    assert "#SBATCH --gres=gpu:1" in script
    with pytest.raises(ValueError, match="expected processes: 1 in a file that asks for GPUs, got 4"):
        sweep_place(queue_file(tmp_path, processes=4, **gpu), one_call_each=True)
    assert job_script(sweep_place("local", workers=1)) == ""


class Cluster:
    """A batch system that starts and ends jobs at once."""

    def __init__(self) -> None:
        self.worker_spec: dict[str, Any] = {}
        self.joined: set[str] = set()
        self.busy: set[str] = set()

    @property
    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {f"tcp://{name}": {"name": name} for name in sorted(self.joined)}}

    def processing(self) -> dict[str, list[str]]:
        return {f"tcp://{name}": ["call"] if name in self.busy else [] for name in self.joined}

    def scale(self, jobs: int) -> None:
        assert jobs >= len(self.worker_spec), "this would end jobs that are busy"
        self.worker_spec |= {f"job-{at}": {} for at in range(jobs)}

    def sync(self, function: Any, *words: Any) -> None:
        function(*words)

    def scale_down(self, names: list[str]) -> None:
        for name in names:
            del self.worker_spec[name]


def test_jobs_are_as_many_as_calls_and_only_idle_ones_end() -> None:
    cluster: Any = Cluster()
    jobs = _Jobs(cluster, cluster, Place(system="slurm", workers=4))
    jobs.resize(2)
    assert list(cluster.worker_spec) == ["job-0", "job-1"]
    jobs.resize(50)
    assert len(cluster.worker_spec) == 4
    cluster.joined, cluster.busy = {"job-0", "job-1", "job-2"}, {"job-0", "job-2"}
    jobs.resize(3)
    assert list(cluster.worker_spec) == ["job-0", "job-1", "job-2"], (
        "one that still waits in the queue ends first"
    )
    jobs.resize(2)
    assert list(cluster.worker_spec) == ["job-0", "job-2"]
    jobs.resize(1)
    assert list(cluster.worker_spec) == ["job-0", "job-2"], "both are busy"


@pytest.mark.parametrize("written", ['"12:00:00"', "'12:00:00'", "12:00:00"])
def test_a_time_without_quotes_is_no_number(tmp_path: Path, written: str) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text(f"jobs: 2\njobqueue:\n  slurm: {{queue: gpu, cores: 2, walltime: {written}}}\n")
    place = sweep_place(f"slurm:{file}")
    assert place.options == {"queue": "gpu", "cores": 2, "walltime": "12:00:00"}
    assert place.workers == 2
