"""Sweeps: one function over hundreds of configurations, each computed once and kept."""

import hashlib
import inspect
import itertools
import logging
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from paperlib.core import check_at_least
from paperlib.io.cache import Arrays, Cache
from paperlib.io.files import OutputError, config_hash
from paperlib.io.progress import progress_bar
from paperlib.io.schedulers import Place, leave_size, sweep_client, sweep_place
from paperlib.io.sources import code_tag

if TYPE_CHECKING:
    from distributed import Client, Future

C = TypeVar("C", bound=Hashable)
Result = dict[str, Any]
Function = Callable[[list[C]], Sequence[Mapping[str, Any]]]
Outcomes = Generator[tuple[list[C], list[Arrays] | Exception]]


class Units(Protocol):
    """Where finished units are found and kept."""

    @property
    def folder(self) -> Path:
        """The folder of finished units, for messages."""
        ...

    def find(self, config: Any) -> Result | None:
        """What is kept of a configuration; None if it is still to be computed."""
        ...

    def keep(self, config: Any, arrays: Arrays) -> Result:
        """Keep what the function returned for a configuration, and say what is kept."""
        ...


_LOG = logging.getLogger(__name__)
_SHOWN = 5
_POLL_SECONDS = 1.0


class SweepError(RuntimeError):
    """Some configurations could not be computed; the others are kept.

    Attributes:
        failures: Each failed configuration with its error.
    """

    def __init__(self, message: str, failures: Sequence[tuple[Any, BaseException]] = ()) -> None:
        super().__init__(message)
        self.failures = tuple(failures)


def run_sweep(
    function: Function[C],
    configs: Iterable[C],
    *,
    folder: str | os.PathLike[str],
    batch_key: Callable[[C], Hashable] | None = None,
    max_batch: int = 32,
    client: "Client | None" = None,
    workers: int = 2,
    retries: int = 3,
    version: str | None = None,
    progress: bool = True,
) -> Iterator[tuple[C, Result]]:
    """Compute ``function`` for every configuration and yield results as they finish.

    Guarantee:
        Every configuration is yielded exactly once or named in the error raised at the end. What is
        yielded is on disk before: after a kill, a full disk or an error the same call goes on where it
        was. A unit on disk is never computed again; a damaged one is.

    Args:
        function: Takes a list of configurations and returns one mapping of names to numbers, truth values,
            text or arrays for each, in their order. Must be importable by the workers. A result must not
            depend on which configurations share its call.
        configs: Frozen dataclasses, all different.
        folder: Folder in which finished units are kept.
        batch_key: Configurations with equal keys may share a call, such as networks of one
            shape; None gives each a call of its own.
        max_batch: Most configurations in one call; a group is cut into calls of about equal size.
        client: A Dask client to use, which stays open; None makes one for this sweep: local processes,
            or what ``PAPERLIB_SCHEDULER`` says.
        workers: Local processes with one thread each; 0 computes in this process, without Dask.
        retries: Number of new attempts elsewhere after a call lost its worker. A call that
            fails is then cut in half, until the configuration at fault stands alone.
        version: Part of every unit's name; units of another version are left alone and computed again.
            None takes `code_tag` of the module that ``function`` is defined in.
        progress: Show a bar with an estimate of the time left; silent too when ``PAPERLIB_PROGRESS=0``.

    Returns:
        Pairs of a configuration and its result, those on disk first; numbers come back as
        Python numbers, lists as arrays.

    Raises:
        ValueError: A configuration that is no frozen dataclass or is given twice, or an option out
            of range.
        SweepError: At the end, if configurations failed; earlier, if the scheduler was lost.
        OutputError: A unit cannot be written, such as on a full disk; what was finished is kept.

    >>> import tempfile
    >>> @dataclass(frozen=True)
    ... class Square:
    ...     side: float
    >>> def area(batch):
    ...     return [{"area": config.side**2} for config in batch]
    >>> done = run_sweep(area, [Square(1.0), Square(3.0)], folder=tempfile.mkdtemp(), workers=0, version="1")
    >>> sorted(result["area"] for _, result in done)
    [1.0, 9.0]
    """
    check_at_least(0, workers=workers)
    units = _Units(Cache(Path(folder)), _name(function), version or _source_tag(function))
    place = sweep_place() if workers and client is None else None
    if place and place.is_local:
        place = replace(place, workers=workers)
    return run_units(
        function,
        configs,
        units,
        batch_key=batch_key,
        max_batch=max_batch,
        client=client,
        place=place,
        retries=retries,
        progress=progress,
    )


def run_units(
    function: Function[C],
    configs: Iterable[C],
    units: Units,
    *,
    batch_key: Callable[[C], Hashable] | None = None,
    max_batch: int = 32,
    client: "Client | None" = None,
    place: Place | None = None,
    retries: int = 3,
    progress: bool = True,
) -> Iterator[tuple[C, Result]]:
    """As `run_sweep`, for units that are kept in another way.

    Args:
        function: As for `run_sweep`.
        configs: As for `run_sweep`.
        units: Finds and keeps finished units.
        batch_key: As for `run_sweep`.
        max_batch: As for `run_sweep`.
        client: A Dask client to use, which stays open; None makes one for ``place``.
        place: Where to run; None computes in this process, without Dask.
        retries: As for `run_sweep`.
        progress: As for `run_sweep`.

    Raises:
        ValueError, SweepError: As for `run_sweep`.
        OutputError: A unit cannot be written, here or by a worker; what was finished is kept.
    """
    items = _checked_configs(configs)
    check_at_least(1, max_batch=max_batch)
    check_at_least(0, retries=retries)
    batches = partial(_batches, batch_key=batch_key, max_batch=max_batch)
    if place is None and client is None:
        run = partial(_in_process, function)
    else:
        run = partial(_on_dask, function, client, place or Place(), retries)
    return _sweep(items, units, batches, run, progress)


@dataclass(frozen=True)
class _Units:
    """Finished units on disk, found by function, version and configuration."""

    cache: Cache
    function: str
    version: str

    @property
    def folder(self) -> Path:
        return self.cache.folder

    def _about(self, config: Any) -> dict[str, Any]:
        kind = type(config)
        return {
            "function": self.function,
            "version": self.version,
            "type": f"{kind.__module__}.{kind.__qualname__}",
            "config": config,
        }

    def find(self, config: Any) -> Result | None:
        arrays = self.cache.find(self._about(config))
        return None if arrays is None else _plain(arrays)

    def keep(self, config: Any, arrays: Arrays) -> Result:
        self.cache.put(self._about(config), arrays)
        return _plain(arrays)


def _plain(arrays: Arrays) -> Result:
    return {name: values.item() if values.ndim == 0 else values for name, values in arrays.items()}


def _sweep(
    items: list[C],
    units: Units,
    batches: Callable[[list[C]], list[list[C]]],
    run: Callable[[deque[list[C]]], Outcomes[C]],
    progress: bool,
) -> Iterator[tuple[C, Result]]:
    """Yield what is kept, then what ``run`` makes of a queue of calls; a call that fails is cut in half."""
    failures: list[tuple[C, BaseException]] = []
    kept_before = [(config, units.find(config)) for config in items]
    waiting = [config for config, result in kept_before if result is None]
    with progress_bar(len(items), label="sweep", initial=len(items) - len(waiting), show=progress) as bar:
        yield from ((config, result) for config, result in kept_before if result is not None)
        del kept_before
        if not waiting:
            return
        calls = deque(batches(waiting))
        with closing(run(calls)) as outcomes:
            for batch, outcome in outcomes:
                if isinstance(outcome, OutputError):
                    raise outcome
                if isinstance(outcome, Exception) and len(batch) > 1:
                    half = len(batch) // 2
                    calls.extend([batch[:half], batch[half:]])
                elif isinstance(outcome, Exception):
                    failures.append((batch[0], outcome))
                    bar.update()
                    _LOG.error("%r failed: %s", batch[0], _said(outcome))
                else:
                    # All are kept before the first is handed out: the caller may stop there.
                    kept = [units.keep(config, arrays) for config, arrays in zip(batch, outcome, strict=True)]
                    bar.update(len(batch))
                    yield from zip(batch, kept, strict=True)
    if failures:
        raise _sweep_error(failures, len(items), units.folder) from failures[0][1]


def _sweep_error(failures: list[tuple[C, BaseException]], total: int, folder: Path) -> SweepError:
    listed = [f"  {config!r}: {_said(error)}" for config, error in failures[:_SHOWN]]
    more = [f"  and {len(failures) - _SHOWN} more"] if len(failures) > _SHOWN else []
    good = total - len(failures)
    head = f"{len(failures)} of {total} configurations failed; the other {good} are kept in {folder}"
    return SweepError("\n".join([head, *listed, *more]), failures)


def _said(error: BaseException) -> str:
    if type(error).__name__ == "KilledWorker":
        return "its process died at every attempt (out of memory, or killed)"
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first}"


def _batches(items: list[C], batch_key: Callable[[C], Hashable] | None, max_batch: int) -> list[list[C]]:
    """Groups of equal key in the order of their first member, each cut into parts of about equal size."""
    groups: dict[Hashable, list[C]] = {}
    for at, config in enumerate(items):
        groups.setdefault(at if batch_key is None else batch_key(config), []).append(config)
    batches: list[list[C]] = []
    for group in groups.values():
        parts = math.ceil(len(group) / max_batch)
        edges = [round(at * len(group) / parts) for at in range(parts + 1)]
        batches += [group[low:high] for low, high in itertools.pairwise(edges)]
    return batches


def _call(function: Function[C], batch: list[C]) -> list[Arrays]:
    """Run one call, and make sure of the form of its results where the error can still be told apart."""
    results = function(list(batch))
    if not isinstance(results, Sequence) or len(results) != len(batch):
        size = len(results) if isinstance(results, Sequence) else type(results).__name__
        raise ValueError(f"function: expected a list of {len(batch)} results, got {size}")
    return [_as_arrays(result) for result in results]


def _as_arrays(result: Mapping[str, Any]) -> Arrays:
    if not isinstance(result, Mapping):
        raise ValueError(f"function: expected results that are mappings, got {type(result).__name__}")
    arrays = {str(name): np.asarray(value) for name, value in result.items()}
    for name, values in arrays.items():
        if values.dtype.kind not in "biufcSU":
            raise ValueError(
                f"function: result {name!r}: expected numbers, truth values or text, got {values!r}"
            )
    return arrays


def _in_process(function: Function[C], calls: deque[list[C]]) -> Outcomes[C]:
    while calls:
        batch = calls.popleft()
        try:
            outcome = _call(function, batch)
        except Exception as error:
            outcome = error
        yield batch, outcome


def _on_dask(
    function: Function[C], client: "Client | None", place: Place, retries: int, calls: deque[list[C]]
) -> Outcomes[C]:
    """Keeps as many calls on the cluster as it has threads.

    More would wait on the workers, and Dask blames a worker's death on every call that waits there.
    """
    running: dict[Future, list[C]] = {}
    given = nullcontext((client, leave_size)) if client else sweep_client(place, retries=retries)
    with given as (cluster, resize):
        from distributed import wait

        try:
            while calls or running:
                resize(len(calls) + len(running))
                _fill(function, cluster, calls, running)
                try:
                    ended: Any = wait(list(running), timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED")
                except TimeoutError:
                    continue  # workers may have joined in the meantime
                # All are fetched, and workers have new calls, before the caller gets the first one.
                outcomes = [(running.pop(future), _outcome(future)) for future in ended.done]
                _fill(function, cluster, calls, running)
                yield from outcomes
        finally:
            cluster.cancel(list(running))


def _fill(
    function: Function[C], client: "Client", calls: deque[list[C]], running: "dict[Future, list[C]]"
) -> None:
    if client.status != "running":
        raise SweepError(
            "the scheduler was lost; what is finished is kept, and the same call goes on with the rest"
        )
    workers: Any = client.nthreads()
    threads = sum(workers.values())
    while calls and len(running) < max(1, threads):
        batch = calls.popleft()
        running[client.submit(_call, function, batch, pure=False)] = batch


def _outcome(future: "Future") -> list[Arrays] | Exception:
    try:
        return future.result()
    except Exception as error:
        return error
    finally:
        # Held any longer, it would be computed again if its worker died now.
        future.release()


def _checked_configs(configs: Iterable[C]) -> list[C]:
    items = list(configs)
    seen: dict[str, int] = {}
    for at, config in enumerate(items):
        if not getattr(getattr(type(config), "__dataclass_params__", None), "frozen", False):
            raise ValueError(f"configs: expected frozen dataclasses, got {config!r} at index {at}")
        key = config_hash({"type": type(config).__qualname__, "config": config})
        if key in seen:
            raise ValueError(f"configs: index {at} is the same as index {seen[key]}: {config!r}")
        seen[key] = at
    return items


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", None)
    if name is None:
        raise ValueError(f"function: expected a plain function, which has a name, got {function!r}")
    return f"{function.__module__}.{name}"


def _source_tag(function: Callable[..., Any]) -> str:
    try:
        return code_tag(function.__module__)
    except ValueError:
        pass  # defined in a notebook or a shell, or no module of the import path
    for what in (sys.modules.get(function.__module__), function):
        try:
            return hashlib.sha256(inspect.getsource(cast(Any, what)).encode()).hexdigest()[:16]
        except (OSError, TypeError):
            continue
    raise ValueError(f"version: the source of {function!r} cannot be found; pass a version")
