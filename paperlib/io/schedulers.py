"""Places where a sweep runs: processes of this machine, a Dask scheduler already there, or a batch system."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paperlib.core.logs import quiet
from paperlib.core.packages import optional_package

if TYPE_CHECKING:
    from distributed import Client

SCHEDULER_VARIABLE = "PAPERLIB_SCHEDULER"
"""``tcp://host:port`` of a running scheduler, or ``jobqueue:file.yaml``; unset for local processes."""

_ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_BATCH_SYSTEMS = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "lsf": "LSFCluster",
    "sge": "SGECluster",
    "moab": "MoabCluster",
    "oar": "OARCluster",
    "htcondor": "HTCondorCluster",
}
_SECONDS_TO_CONNECT = 20
# Of the scheduler's status page: the usual one may be taken by another sweep, which is a warning.
_FREE_PORT = "127.0.0.1:0"


@contextmanager
def sweep_client(*, workers: int, retries: int) -> Iterator["Client"]:
    """A Dask client for one sweep; what it started is closed at the end, what was there stays.

    Without ``PAPERLIB_SCHEDULER`` it has ``workers`` local processes of one thread each. Where this process
    starts the scheduler, a task may lose its worker ``retries`` times before it counts as failed.

    Raises:
        ModuleNotFoundError: Dask is not installed.
        ValueError: ``PAPERLIB_SCHEDULER`` is neither an address nor a job queue's file.
        ConnectionError: The scheduler of that address does not answer.
    """
    chosen = os.environ.get(SCHEDULER_VARIABLE, "").strip()
    purpose = "a sweep in processes (pass workers=0 to do without)"
    dask, distributed = (optional_package(name, "sweep", purpose) for name in ("dask", "distributed"))
    with dask.config.set({"distributed.scheduler.allowed-failures": retries}), ExitStack() as stack:
        if chosen.startswith(_ADDRESSES):
            client = _connected(distributed, chosen)
        elif chosen.startswith("jobqueue:"):
            cluster = stack.enter_context(_batch_cluster(Path(chosen.removeprefix("jobqueue:"))))
            client = distributed.Client(cluster)
        elif not chosen:
            # What matters of Dask's messages about its own processes is raised or reported.
            stack.enter_context(quiet("distributed", logging.CRITICAL))
            client = distributed.Client(stack.enter_context(_local_cluster(workers)))
        else:
            raise ValueError(
                f"{SCHEDULER_VARIABLE}: expected an address such as tcp://host:8786 or jobqueue:file.yaml, "
                f"got {chosen!r}"
            )
        yield stack.enter_context(closing(client))


def _connected(distributed: Any, address: str) -> "Client":
    try:
        return distributed.Client(address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(
            f"{SCHEDULER_VARIABLE}: no Dask scheduler answers at {address} ({error}); start one with "
            "'dask scheduler', or unset the variable to use processes of this machine"
        ) from None


def _local_cluster(workers: int) -> Any:
    from distributed import LocalCluster
    from distributed.system import MEMORY_LIMIT

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=_FREE_PORT,
        memory_limit=int(0.9 * MEMORY_LIMIT / workers),
        env=_ONE_THREAD,
        silence_logs=logging.CRITICAL,
    )


def _batch_cluster(path: Path) -> Any:
    """A dask-jobqueue cluster from its usual YAML, ``jobqueue: {slurm: {cores: …}}``, and ``jobs: N``."""
    system, options, jobs = _read_batch_file(path)
    import dask_jobqueue
    from dask_jobqueue.local import LocalCluster as LocalJobs

    made = LocalJobs if system == "local" else getattr(dask_jobqueue, _BATCH_SYSTEMS[system])
    given = {"scheduler_options": {"dashboard_address": _FREE_PORT}, **options}
    try:
        cluster = made(**{name.replace("-", "_"): value for name, value in given.items()})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{SCHEDULER_VARIABLE}: {path}: {system}: {error}") from None
    cluster.scale(jobs=jobs)
    return cluster


def _read_batch_file(path: Path) -> tuple[str, Mapping[str, Any], int]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(
            f"{SCHEDULER_VARIABLE}: {path} cannot be read: {' '.join(str(error).split())}"
        ) from None
    known = (*_BATCH_SYSTEMS, "local")
    systems = content.get("jobqueue") if isinstance(content, dict) else None
    if not isinstance(systems, dict) or len(systems) != 1 or next(iter(systems)) not in known:
        raise ValueError(
            f"{SCHEDULER_VARIABLE}: {path} must hold one batch system below 'jobqueue', "
            f"one of {', '.join(known)}"
        )
    jobs = content.get("jobs", 1)
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise ValueError(
            f"{SCHEDULER_VARIABLE}: {path}: jobs: expected a whole number of at least 1, got {jobs!r}"
        )
    ((system, options),) = systems.items()
    if not isinstance(options, dict):
        raise ValueError(f"{SCHEDULER_VARIABLE}: {path}: {system}: expected options such as cores and memory")
    return system, options, jobs
