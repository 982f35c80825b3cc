"""Places where a sweep runs: processes of this machine, a Dask scheduler already there, or a batch system."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    dask = _dask()
    with dask.config.set({"distributed.scheduler.allowed-failures": retries}):
        if chosen.startswith(_ADDRESSES):
            yield from _closing(_connected(chosen))
        elif chosen.startswith("jobqueue:"):
            yield from _with_cluster(_batch_cluster(Path(chosen.removeprefix("jobqueue:"))))
        elif not chosen:
            with _quiet():
                yield from _with_cluster(_local_cluster(workers))
        else:
            raise ValueError(
                f"{SCHEDULER_VARIABLE}: expected an address such as tcp://host:8786 or jobqueue:file.yaml, "
                f"got {chosen!r}"
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's messages about its own processes off the page; what matters is raised or reported."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _dask() -> Any:
    try:
        import dask  # optional, and slow to import
        import distributed  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"sweeps in processes need {error.name}: pip install 'paperlib[sweep]', or pass workers=0",
            name=error.name,
        ) from None
    return dask


def _with_cluster(cluster: Any) -> Iterator["Client"]:
    from distributed import Client

    with cluster:
        yield from _closing(Client(cluster))


def _closing(client: "Client") -> Iterator["Client"]:
    try:
        yield client
    finally:
        client.close()


def _connected(address: str) -> "Client":
    from distributed import Client

    try:
        return Client(address, timeout=_SECONDS_TO_CONNECT)
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
