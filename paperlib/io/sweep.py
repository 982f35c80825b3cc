"""Sweeps: one function over hundreds of configurations, each computed once and kept."""

import hashlib
import inspect
import itertools
import logging
import math
import os
import sys
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from paperlib.core import check_at_least
from paperlib.io.cache import Arrays, Cache
from paperlib.io.files import OutputError, config_hash
from paperlib.io.progress import progress_bar
from paperlib.io.schedulers import Place, sweep_client, sweep_place
from paperlib.io.sources import code_tag

if TYPE_CHECKING:
    from distributed import Client

C = TypeVar("C", bound=Hashable)
Result = dict[str, Any]
Function = Callable[[list[C]], Sequence[Mapping[str, Any]]]

_LOG = logging.getLogger(__name__)
_SHOWN = 5


class SweepError(RuntimeError):
    """Some configurations could not be computed, ``failures`` with their errors; the others are
    kept.
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
        yielded is on disk before: after a kill, a full disk or an error the same call goes on where
        it was. A unit on disk is never computed again; a damaged one is.

    Args:
        function: Takes a list of configurations and returns one mapping of names to numbers, truth
            values, text or arrays for each, in their order. Must be importable by the workers. A
            result must not depend on which configurations share its call.
        configs: Frozen dataclasses, all different.
        batch_key: Configurations with equal keys may share a call; None gives each a call of its
            own.
        max_batch: Most configurations in one call.
        client: A Dask client, which stays open; None starts local processes, or what
            ``PAPERLIB_SCHEDULER`` says.
        workers: Local processes with one thread each; 0 computes in this process, without Dask.
        retries: New attempts after a call lost its worker, where this process starts the scheduler.
            A call that fails with an error is not tried again: all its configurations failed.
        version: Part of every unit's name; units of another version are left alone and computed
            again. None takes `code_tag` of the module that ``function`` is defined in.

    Returns:
        Pairs of a configuration and its result, those on disk first; numbers come back as Python
        numbers, lists as arrays.

    Raises:
        SweepError: At the end, if configurations failed; earlier, if the scheduler was lost.
        OutputError: A unit cannot be written, such as on a full disk; what was finished is kept.

    >>> import tempfile
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Square:
    ...     side: float
    >>> def area(batch):
    ...     return [{"area": config.side**2} for config in batch]
    >>> squares, folder = [Square(1.0), Square(3.0)], tempfile.mkdtemp()
    >>> done = run_sweep(area, squares, folder=folder, workers=0, version="1")
    >>> sorted(result["area"] for _, result in done)
    [1.0, 9.0]
    """
    check_at_least(0, workers=workers, retries=retries)
    check_at_least(1, max_batch=max_batch)
    items, seen = list(configs), dict[str, int]()
    for at, one in enumerate(items):
        if not getattr(getattr(type(one), "__dataclass_params__", None), "frozen", False):
            raise ValueError(f"configs: expected frozen dataclasses, got {one!r} at index {at}")
        if (mark := config_hash({"type": type(one).__qualname__, "config": one})) in seen:
            raise ValueError(f"configs: index {at} is the same as index {seen[mark]}: {one!r}")
        seen[mark] = at
    where = client or (sweep_place() if workers else None)
    if isinstance(where, Place) and not (where.address or where.system):
        where = replace(where, workers=workers)
    if (name := getattr(function, "__qualname__", None)) is None:
        raise ValueError(f"function: expected a plain function, which has a name, got {function!r}")
    cache = Cache(Path(folder))
    about = {
        "function": f"{function.__module__}.{name}",
        "version": version or _source_tag(function),
    }

    def key(config: C) -> dict[str, Any]:
        kind = type(config)
        return {**about, "type": f"{kind.__module__}.{kind.__qualname__}", "config": config}

    return run_units(
        function,
        items,
        find=lambda config: cache.find(key(config)),
        keep=lambda config, arrays: cache.put(key(config), arrays),
        batch_key=batch_key,
        max_batch=max_batch,
        where=where,
        retries=retries,
        progress=progress,
    )


def run_units(
    function: Function[C],
    configs: Sequence[C],
    *,
    find: Callable[[C], Arrays | None],
    keep: Callable[[C, Arrays], None] | None = None,
    batch_key: Callable[[C], Hashable] | None = None,
    max_batch: int = 1,
    where: "Client | Place | None" = None,
    retries: int = 3,
    progress: bool = True,
) -> Iterator[tuple[C, Result]]:
    """As `run_sweep`, for units that are kept in another way.

    Args:
        find: What is on disk of a configuration; None if it is still to be computed.
        keep: Writes what the function returned for a configuration; None where the function does
            so.
        where: A Dask client to use, or where to run; None computes in this process, without Dask.
    """
    waiting: list[C] = []
    for config in configs:
        if (arrays := find(config)) is None:
            waiting.append(config)
        else:
            yield config, _plain(arrays)
    if not waiting:
        return
    # Groups of equal key in the order of their first member, each cut into parts of about equal
    # size.
    groups: dict[Hashable, list[C]] = {}
    for at, config in enumerate(waiting):
        groups.setdefault(at if batch_key is None else batch_key(config), []).append(config)
    calls: list[list[C]] = []
    for group in groups.values():
        parts = math.ceil(len(group) / max_batch)
        edges = [round(at * len(group) / parts) for at in range(parts + 1)]
        calls += [group[low:high] for low, high in itertools.pairwise(edges)]
    failures: list[tuple[C, BaseException]] = []
    with (
        progress_bar(
            len(configs), label="sweep", initial=len(configs) - len(waiting), show=progress
        ) as bar,
        closing(_outcomes(partial(_call, function), calls, where, retries)) as outcomes,
    ):
        for call, outcome in outcomes:
            if isinstance(outcome, OutputError):
                raise outcome
            bar.update(len(call))
            if isinstance(outcome, Exception):
                failures += [(config, outcome) for config in call]
                more = f" and {len(call) - 1} that shared its call" if len(call) > 1 else ""
                _LOG.error("%r%s failed: %s", call[0], more, _first_line(outcome))
            else:
                # All are kept before the first is handed out: the caller may stop there.
                for config, arrays in zip(call, outcome, strict=True):
                    if keep is not None:
                        keep(config, arrays)
                yield from zip(call, map(_plain, outcome), strict=True)
    if failures:
        rest = len(configs) - len(failures)
        lines = [
            f"{len(failures)} of {len(configs)} configurations failed; the other {rest} are kept"
        ]
        lines += [f"  {config!r}: {_first_line(error)}" for config, error in failures[:_SHOWN]]
        lines += [f"  and {len(failures) - _SHOWN} more"] if len(failures) > _SHOWN else []
        raise SweepError("\n".join(lines), failures) from failures[0][1]


def _plain(arrays: Arrays) -> Result:
    return {name: values.item() if values.ndim == 0 else values for name, values in arrays.items()}


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _outcomes(
    run: Callable[[list[C]], list[Arrays]],
    calls: list[list[C]],
    where: "Client | Place | None",
    retries: int,
) -> Generator[tuple[list[C], list[Arrays] | Exception]]:
    """Each call with its results or its error, as they end."""
    if where is None:
        for call in calls:
            try:
                outcome = run(call)
            except Exception as error:
                outcome = error
            yield call, outcome
        return
    given: Any = nullcontext(where)
    if isinstance(where, Place):
        given = sweep_client(where, calls=len(calls), retries=retries)
    with given as dask:
        from distributed import KilledWorker, as_completed

        running = dict(zip(dask.map(run, calls, pure=False), calls, strict=True))
        try:
            ended: Any = as_completed(
                list(running), loop=dask.loop, with_results=True, raise_errors=False
            )
            for future, result in ended:
                call = running.pop(future)
                # held any longer, it would be computed again if its worker died now
                future.release()
                if isinstance(result, list):
                    yield call, result
                elif not isinstance(result, tuple):
                    goes_on = "what is finished is kept, and the same call goes on with the rest"
                    raise SweepError(f"the scheduler was lost; {goes_on}")
                elif isinstance(result[1], KilledWorker):
                    yield (
                        call,
                        RuntimeError(
                            "its process died at every attempt (out of memory, or killed)"
                        ),
                    )
                else:
                    yield call, result[1]
        finally:
            dask.cancel(list(running))


def _call(function: Function[C], batch: list[C]) -> list[Arrays]:
    """Run one call, and make sure of the form of its results where the error can still be told
    apart.
    """
    results = function(list(batch))
    if not isinstance(results, Sequence) or len(results) != len(batch):
        size = len(results) if isinstance(results, Sequence) else type(results).__name__
        raise ValueError(f"function: expected a list of {len(batch)} results, got {size}")
    for result in results:
        if not isinstance(result, Mapping):
            raise ValueError(
                f"function: expected results that are mappings, got {type(result).__name__}"
            )
    as_arrays = [
        {str(name): np.asarray(value) for name, value in result.items()} for result in results
    ]
    for name, values in (pair for arrays in as_arrays for pair in arrays.items()):
        if values.dtype.kind not in "biufcSU":
            raise ValueError(
                f"function: result {name!r}: expected numbers, truth values or text, got {values!r}"
            )
    return as_arrays


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
