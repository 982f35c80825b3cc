"""Places where a sweep runs: processes of this machine, a Dask scheduler already there, or a batch
system.

Batch systems are those of dask-jobqueue. Two things of it are done here: its temporary TLS keys
stay on the disk after the sweep, and its configuration reads a time such as 12:00:00 as a number.
"""

import logging
import math
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paperlib.core.packages import optional_package, quiet
from paperlib.io.files import user_cache_folder
from paperlib.io.temporary import temporary_folder

if TYPE_CHECKING:
    from distributed import Client

SCHEDULER_VARIABLE = "PAPERLIB_SCHEDULER"
"""``local``, ``tcp://host:port`` of a running scheduler, ``slurm``, ``slurm:file.yaml`` or
``jobqueue:file.yaml``; unset for local processes."""

_ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "wss://")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_BATCH_SYSTEMS = {
    name.lower(): f"{name}Cluster"
    for name in ("SLURM", "PBS", "LSF", "SGE", "Moab", "OAR", "HTCondor")
}
_SECONDS_TO_CONNECT = 20
_LONGEST_FILE = 100_000  # bytes of a batch system's file
_DEEPEST = 20  # of the levels of a batch system's file
_SECONDS_TO_REPLACE = 5  # between looks for jobs of a batch system that ended
_MEMORY_SHARE = 0.9  # of this machine's memory, for all local workers together
# Dask runs what it is sent, by whoever connects: local processes listen on this address alone.
_THIS_MACHINE = "127.0.0.1"
# Of the scheduler's status page: the usual one may be taken by another sweep, which is a warning.
_FREE_PORT = f"{_THIS_MACHINE}:0"
# A local worker's keeper starts it again, which can take a minute on a busy machine. After 15 s
# without the worker Dask would close the keeper too, and the sweep would lose that process.
_KEEP_KEEPERS = {"distributed.deploy.lost-worker-timeout": "1 hour"}
_DEVICES_VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Place:
    """Where a sweep runs, as `sweep_place` reads it: at the address of a scheduler, or on a batch
    system; with neither, in local processes.

    Attributes:
        named_by: The option or variable that named the place, for messages.
        address: Of a running Dask scheduler, or "".
        system: Name of a batch system, such as "slurm", or "".
        options: Of the batch system, as dask-jobqueue takes them.
        workers: Local processes, or jobs of the batch system at one time.
    """

    named_by: str = SCHEDULER_VARIABLE
    address: str = ""
    system: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    workers: int = 2


def sweep_place(chosen: str = "", *, workers: int | None = None, named_by: str = "") -> Place:
    """Read where a sweep shall run, without starting anything.

    Args:
        chosen: A word as in `SCHEDULER_VARIABLE`, from the option or variable ``named_by``; empty
            for what that variable says.
        workers: Local processes or batch jobs, 1 or more; None takes one process for each GPU, or
            else for each core, and the number of jobs in the batch system's file, or else 1.

    Raises:
        ValueError: No such place, a file that cannot be read, or one that shares a job's GPUs.
    """
    named_by = named_by if chosen else SCHEDULER_VARIABLE
    word = (chosen or os.environ.get(SCHEDULER_VARIABLE, "")).strip()
    if word in ("", "local"):
        return Place(named_by, workers=workers or len(visible_devices()) or _cores())
    if word.startswith(_ADDRESSES):
        return Place(named_by, address=word)
    if word == "slurm":
        return Place(named_by, "", "slurm", _options_of_jobs({}, named_by), workers or 1)
    kind, _, path = word.partition(":")
    if not path or kind not in ("slurm", "jobqueue"):
        raise ValueError(
            f"{named_by}: expected an address such as tcp://host:8786, local, slurm, "
            f"slurm:file.yaml or jobqueue:file.yaml, got {word!r}"
        )
    needed = "slurm" if kind == "slurm" else ""
    file = _read_batch_file(Path(path), named_by, needed)
    options = _options_of_jobs(file.options, named_by)
    return Place(named_by, "", file.system, options, workers or file.jobs)


def _cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _options_of_jobs(options: Mapping[str, Any], named_by: str) -> dict[str, Any]:
    """Options of a batch system, with one thread a process; a ValueError where several processes
    would share a job's GPUs.
    """
    processes = options.get("processes") or 1
    directives = " ".join(map(str, options.get("job_extra_directives") or []))
    if processes > 1 and ("gpu" in directives or "gres" in directives):
        raise ValueError(
            f"{named_by}: expected processes: 1 in a file that asks for GPUs, got {processes}: ask "
            "for one GPU a job, such as job_extra_directives: ['--gres=gpu:1'], and for more jobs"
        )
    # A process takes one call at a time, however many cores its job has.
    arguments = [*(options.get("worker_extra_args") or []), "--nthreads", "1"]
    return {**options, "processes": processes, "worker_extra_args": arguments}


def visible_devices() -> list[str]:
    """Names of the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` lists them."""
    devices = os.environ.get(_DEVICES_VARIABLE)
    if devices is not None:
        names = [name.strip() for name in devices.split(",")]
        return [] if names[0] in ("", "-1", "NoDevFiles") else names
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return listed.stdout.split()


@contextmanager
def sweep_client(scheduler: Place, *, calls: int, retries: int) -> Iterator["Client"]:
    """A Dask client for so many calls at this place; what it started is closed at the end, what was
    there stays.

    A call that lost its worker is tried ``retries`` times more. Raises ConnectionError where no
    scheduler answers, ValueError for wrong options of a batch system, and ModuleNotFoundError
    without Dask.
    """
    purpose = "a sweep in processes (pass workers=0 to do without)"
    dask = optional_package("dask", "sweep", purpose)
    distributed = optional_package("distributed", "sweep", purpose)
    settings = {
        "distributed.scheduler.allowed-failures": retries,
        # Every call that waits at a worker gets the blame for its death, so that calls wait at the
        # scheduler.
        "distributed.scheduler.worker-saturation": 1.0,
    }
    with dask.config.set(settings), ExitStack() as stack:
        if scheduler.address:
            client = _connected(distributed, scheduler)
        elif scheduler.system:
            cluster = stack.enter_context(_batch_cluster(scheduler))
            processes = scheduler.options.get("processes") or 1
            _keep_jobs(cluster, min(scheduler.workers, math.ceil(calls / processes)))
            client = distributed.Client(cluster)
        else:
            stack.enter_context(dask.config.set(_KEEP_KEEPERS))
            # What matters of Dask's messages about its own processes is raised or reported.
            stack.enter_context(quiet("distributed", logging.CRITICAL))
            cluster = stack.enter_context(_local_cluster(min(scheduler.workers, calls)))
            client = distributed.Client(cluster)
        yield stack.enter_context(closing(client))


def _connected(distributed: Any, scheduler: Place) -> Any:
    """A client of the scheduler at an address; a ConnectionError where none answers."""
    try:
        return distributed.Client(scheduler.address, timeout=_SECONDS_TO_CONNECT)
    except (OSError, TimeoutError) as error:
        raise ConnectionError(
            f"{scheduler.named_by}: no Dask scheduler answers at {scheduler.address} ({error}); "
            "start one with 'dask scheduler', or use processes of this machine"
        ) from None


def _keep_jobs(cluster: Any, jobs: int) -> None:
    """Submit ``jobs`` jobs to a batch system, and every few seconds anew those that ended before
    the sweep, such as at their walltime.
    """
    from tornado.ioloop import PeriodicCallback

    cluster.scale(jobs=jobs)
    again = PeriodicCallback(lambda: cluster.scale(jobs=jobs), 1000 * _SECONDS_TO_REPLACE)
    cluster.periodic_callbacks["jobs"] = again  # which the cluster stops
    cluster.loop.add_callback(again.start)


def _local_cluster(workers: int) -> Any:
    """Processes of this machine; process i sees GPU i alone, also after it was replaced.

    The scheduler, its status page, the workers and their keepers (Nanny) listen on 127.0.0.1 alone.
    """
    from distributed import Nanny, Scheduler, SpecCluster
    from distributed.system import MEMORY_LIMIT

    devices = visible_devices()
    silent = {"silence_logs": logging.CRITICAL}
    memory = int(_MEMORY_SHARE * MEMORY_LIMIT / workers)  # bytes of each
    options = {"host": _THIS_MACHINE, "nthreads": 1, "memory_limit": memory, **silent}

    def process(index: int) -> dict[str, Any]:
        """Class and options of the worker of this number, with its GPU in the environment."""
        # GPUs are counted as nvidia-smi counts them.
        env = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **_ONE_THREAD}
        if devices:
            env[_DEVICES_VARIABLE] = devices[index % len(devices)]
        return {"cls": Nanny, "options": {**options, "env": env}}

    scheduler = {
        "cls": Scheduler,
        "options": {"host": _THIS_MACHINE, "dashboard_address": _FREE_PORT},
    }
    processes = {index: process(index) for index in range(workers)}
    cluster: Any = SpecCluster
    return cluster(workers=processes, scheduler=scheduler, **silent)


def job_script(place: Place) -> str:
    """The script of a batch system's jobs; empty without one, a ValueError where its options are
    wrong.
    """
    if not place.system:
        return ""
    with _batch_cluster(place) as cluster:
        return cluster.job_script()


@contextmanager
def _batch_cluster(scheduler: Place) -> Iterator[Any]:
    """A dask-jobqueue cluster, still without jobs, which is closed at the end.

    Its machines talk over TLS with credentials that are made for this sweep, unless the file of the
    batch system says otherwise by ``security`` or ``protocol``. Raises ValueError for options that
    the batch system does not take.
    """
    dask_jobqueue = optional_package("dask_jobqueue", "sweep", f"a sweep on {scheduler.system}")
    if scheduler.system == "local":
        from dask_jobqueue.local import LocalCluster as cluster_type
    else:
        cluster_type: Any = getattr(dask_jobqueue, _BATCH_SYSTEMS[scheduler.system])
    options = {"scheduler_options": {"dashboard_address": _FREE_PORT}, **scheduler.options}
    with ExitStack() as stack:
        if not {"security", "protocol"} & options.keys():
            options["security"] = stack.enter_context(_temporary_credentials(scheduler.system))
        try:
            cluster = cluster_type(**options)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{scheduler.named_by}: {scheduler.system}: {error}") from None
        yield stack.enter_context(cluster)


@contextmanager
def _temporary_credentials(system: str) -> Iterator[Any]:
    """Dask's ``Security`` with a key that was made for one sweep.

    The key lies in a folder of the user's cache, which the machines of a sweep share; only the user
    can read it, and it goes when the sweep ends.
    """
    optional_package("cryptography", "sweep", f"a sweep on {system}")
    from distributed import Security

    made = Security.temporary()
    cache = user_cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with temporary_folder(cache, "sweep-credentials-") as folder:
        paths: dict[str, str] = {}
        for name, text in (
            ("ca_file", made.tls_ca_file),
            ("cert", made.tls_worker_cert),
            ("key", made.tls_worker_key),
        ):
            path = folder / f"{name}.pem"
            path.write_text(text, encoding="ascii")
            paths[name] = str(path)
        # All roles of a temporary Security hold the same certificate.
        by_role = {
            f"tls_{role}_{name}": paths[name]
            for role in ("client", "scheduler", "worker")
            for name in ("cert", "key")
        }
        yield Security(require_encryption=True, tls_ca_file=paths["ca_file"], **by_role)


class _BatchFile(NamedTuple):
    """What a file says of a batch system."""

    system: str  # its name, such as "slurm"
    options: dict[str, Any]  # as dask-jobqueue takes them
    jobs: int  # at one time


def _read_batch_file(path: Path, named_by: str, needed: str) -> _BatchFile:
    """What dask-jobqueue's usual YAML, ``jobqueue: {slurm: …}``, says, and beside it ``jobs: N``, 1
    by default.

    ``needed`` is the only batch system that it may name, "" for any. Raises ValueError, which
    begins with ``named_by``, the option or variable that named the file, for another content.
    """
    content = _yaml_without_base_60(path, named_by)
    allowed = (needed,) if needed else (*_BATCH_SYSTEMS, "local")
    systems = content.get("jobqueue") if isinstance(content, dict) else None
    if not isinstance(systems, dict) or len(systems) != 1 or next(iter(systems)) not in allowed:
        raise ValueError(
            f"{named_by}: {path} must hold one batch system below 'jobqueue', one of "
            f"{', '.join(allowed)}"
        )
    jobs = content.get("jobs", 1)
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise ValueError(
            f"{named_by}: {path}: jobs: expected a whole number of at least 1, got {jobs!r}"
        )
    ((system, options),) = systems.items()
    if not isinstance(options, dict):
        raise ValueError(f"{named_by}: {path}: {system}: expected options such as cores and memory")
    with_underscores = {name.replace("-", "_"): value for name, value in options.items()}
    return _BatchFile(system, with_underscores, jobs)


def _yaml_without_base_60(path: Path, named_by: str) -> Any:
    """The content of a YAML file where 12:00:00 is the text that it says, not a number to base 60.

    Raises ValueError, which begins with ``named_by``, for a file that cannot be read, is too long
    or nests too deeply, or holds a reference.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    # YAML 1.1 reads a walltime as a number to base 60: here this form is text, before all others.
    base_60 = ("tag:yaml.org,2002:str", re.compile(r"^[-+]?[0-9_]+(:[0-9]+)+(\.[0-9_]*)?$"))
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    Loader.yaml_implicit_resolvers = {
        first: [base_60, *pairs] for first, pairs in resolvers.items()
    }
    try:
        if path.stat().st_size > _LONGEST_FILE:
            raise ValueError(f"{named_by}: {path} holds more than {_LONGEST_FILE:,} bytes")
        text = path.read_text(encoding="utf-8")
        depth = 0
        for event in yaml.parse(text, Loader=Loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:  # building lists within lists takes ever longer
                raise ValueError(f"{named_by}: {path} holds lists within lists; write them out")
            if isinstance(event, yaml.AliasEvent):  # a few of which swell to a text without end
                raise ValueError(f"{named_by}: {path} holds a reference; write out what it means")
        return yaml.load(text, Loader=Loader)
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(
            f"{named_by}: {path} cannot be read: {' '.join(str(error).split())}"
        ) from None
