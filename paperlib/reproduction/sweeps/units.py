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

from paperlib.core.checks import check_at_least
from paperlib.io.budget import BudgetSpent, stop_if_spent
from paperlib.io.cache import Arrays, Cache
from paperlib.io.files import OutputError, config_hash
from paperlib.io.progress import progress_bar
from paperlib.io.sources import code_tag
from paperlib.reproduction.sweeps.schedulers import Place, sweep_client, sweep_place

if TYPE_CHECKING:
    from distributed import Client
    from tqdm.std import tqdm

C = TypeVar("C", bound=Hashable)
"""A configuration."""
Result = dict[str, Any]
"""What was computed for one configuration: numbers, text and arrays by name."""
Function = Callable[[list[C]], Sequence[Mapping[str, Any]]]
"""Takes some configurations, and returns the result of each in their order."""

_LOG = logging.getLogger(__name__)
_SHOWN = 5  # failures that the message of an error names


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
    items = list(configs)
    _check_different(items)
    where = client or (sweep_place() if workers else None)
    if isinstance(where, Place) and not (where.address or where.system):
        where = replace(where, workers=workers)
    function_name = getattr(function, "__qualname__", None)
    if function_name is None:
        raise ValueError(f"function: expected a plain function, which has a name, got {function!r}")
    cache = Cache(Path(folder))
    origin = {
        "function": f"{function.__module__}.{function_name}",
        "version": version or _source_tag(function),
    }

    def key(config: C) -> dict[str, Any]:
        """All that the result of a configuration depends on, under whose hash it is kept."""
        kind = type(config)
        return {**origin, "type": f"{kind.__module__}.{kind.__qualname__}", "config": config}

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


def _check_different(configs: Sequence[Hashable]) -> None:
    """Refuse (ValueError) configurations that are no frozen dataclasses, and two that are equal."""
    first_index: dict[str, int] = {}
    for index, config in enumerate(configs):
        if not getattr(getattr(type(config), "__dataclass_params__", None), "frozen", False):
            raise ValueError(
                f"configs: expected frozen dataclasses, got {config!r} at index {index}"
            )
        digest = config_hash({"type": type(config).__qualname__, "config": config})
        if digest in first_index:
            raise ValueError(
                f"configs: index {index} is the same as index {first_index[digest]}: {config!r}"
            )
        first_index[digest] = index


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
    """Compute ``function`` for each configuration that is not on disk, and yield all of them with
    their results, those on disk first, the others as they finish.

    Args:
        function: Takes a list of configurations and returns a mapping of names to numbers, truth
            values, text or arrays for each, in their order.
        configs: The configurations, all different.
        find: What is on disk of a configuration; None if it is still to be computed.
        keep: Writes what the function returned for a configuration; None where the function does
            so.
        batch_key: Configurations with equal keys may share a call; None gives each a call of its
            own.
        max_batch: Most configurations in one call.
        where: A Dask client to use, or where to run; None computes in this process, without Dask.
        retries: New attempts after a call lost its worker, 0 or more; none for a given client.
        progress: Show a bar on standard error.

    Raises:
        SweepError: At the end, if configurations failed; earlier, if the scheduler was lost.
        OutputError: A result cannot be written; what was finished is kept.
        BudgetSpent: The minutes of the run are over; what was finished is kept.
    """
    waiting: list[C] = []
    for config in configs:
        arrays = find(config)
        if arrays is None:
            waiting.append(config)
        else:
            yield config, _python_numbers(arrays)
    if not waiting:
        return
    calls = _divided_into_calls(waiting, batch_key, max_batch)
    done = len(configs) - len(waiting)
    failures: list[tuple[C, BaseException]] = []
    with (
        progress_bar(len(configs), label="sweep", initial=done, show=progress) as bar,
        closing(_outcomes(partial(_run_call, function), calls, where, retries)) as outcomes,
    ):
        yield from _results_of_calls(outcomes, keep, bar, failures)
    if failures:
        raise _sweep_error(failures, len(configs)) from failures[0][1]


def _results_of_calls(
    outcomes: Iterable[tuple[list[C], list[Arrays] | Exception]],
    keep: Callable[[C, Arrays], None] | None,
    bar: "tqdm[Any]",
    failures: list[tuple[C, BaseException]],
) -> Iterator[tuple[C, Result]]:
    """Keep and yield the results of each call as it ends, a pair for each of its configurations.

    ``outcomes`` has each call with the results of its configurations, or with its error: a failed
    call adds its configurations to ``failures``, but an OutputError is raised.
    """
    for call, outcome in outcomes:
        if isinstance(outcome, OutputError):
            raise outcome
        bar.update(len(call))
        if isinstance(outcome, Exception):
            failures += [(config, outcome) for config in call]
            _log_failed_call(call, outcome)
            continue
        # All are kept before the first is handed out: the caller may stop there.
        if keep is not None:
            for config, arrays in zip(call, outcome, strict=True):
                keep(config, arrays)
        yield from zip(call, map(_python_numbers, outcome), strict=True)


def _divided_into_calls(
    configs: Sequence[C], batch_key: Callable[[C], Hashable] | None, max_batch: int
) -> list[list[C]]:
    """The configurations in calls, each of equal key and of at most ``max_batch``, cut to about
    equal size; keys come in the order of their first configuration. No key: a call for each.
    """
    if batch_key is None:
        return [[config] for config in configs]
    groups: dict[Hashable, list[C]] = {}
    for config in configs:
        groups.setdefault(batch_key(config), []).append(config)
    calls: list[list[C]] = []
    for group in groups.values():
        count = math.ceil(len(group) / max_batch)  # calls of this group
        edges = [round(index * len(group) / count) for index in range(count + 1)]
        calls += [group[low:high] for low, high in itertools.pairwise(edges)]
    return calls


def _log_failed_call(call: Sequence[Any], error: Exception) -> None:
    """Name the first configuration of the call, how many shared it, and the error."""
    others = f" and {len(call) - 1} that shared its call" if len(call) > 1 else ""
    _LOG.error("%r%s failed: %s", call[0], others, _first_line(error))


def _sweep_error(failures: Sequence[tuple[Any, BaseException]], total: int) -> SweepError:
    """The error that ends a sweep: how many configurations failed, and the first of them."""
    kept = total - len(failures)
    lines = [f"{len(failures)} of {total} configurations failed; the other {kept} are kept"]
    lines += [f"  {config!r}: {_first_line(error)}" for config, error in failures[:_SHOWN]]
    if len(failures) > _SHOWN:
        lines.append(f"  and {len(failures) - _SHOWN} more")
    return SweepError("\n".join(lines), failures)


def _python_numbers(arrays: Arrays) -> Result:
    """Arrays without axes as Python numbers, truth values or text; the others as they are."""
    return {name: values.item() if values.ndim == 0 else values for name, values in arrays.items()}


def _first_line(error: BaseException) -> str:
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first}"


def _outcomes(
    run: Callable[[list[C]], list[Arrays]],
    calls: list[list[C]],
    where: "Client | Place | None",
    retries: int,
) -> Generator[tuple[list[C], list[Arrays] | Exception]]:
    """Yield each call as it ends, with the results of its configurations or with its error.

    ``where`` and ``retries`` are those of `run_units`. Raises BudgetSpent where the minutes of the
    run are over, and SweepError where the scheduler was lost.
    """
    if where is None:
        for call in calls:
            stop_if_spent()
            try:
                outcome = run(call)
            except BudgetSpent:  # no failure: it goes on in the next run
                raise
            except Exception as error:
                outcome = error
            yield call, outcome
        return
    client_context: Any = nullcontext(where)
    if isinstance(where, Place):
        client_context = sweep_client(where, calls=len(calls), retries=retries)
    with client_context as client:
        yield from _dask_outcomes(client, run, calls)


def _dask_outcomes(
    client: "Client", run: Callable[[list[C]], list[Arrays]], calls: list[list[C]]
) -> Generator[tuple[list[C], list[Arrays] | Exception]]:
    """Yield each call as it ends on a worker of Dask, with the results of its configurations or
    with its error; calls that still go on when the caller stops are cancelled.

    Raises SweepError where the scheduler was lost.
    """
    from distributed import as_completed

    dask: Any = client
    running = dict(zip(dask.map(run, calls, pure=False), calls, strict=True))
    try:
        ended: Any = as_completed(
            list(running), loop=dask.loop, with_results=True, raise_errors=False
        )
        for future, result in ended:
            call = running.pop(future)
            # held any longer, it would be computed again if its worker died now
            future.release()
            yield call, result if isinstance(result, list) else _dask_error(result)
    finally:
        dask.cancel(list(running))


def _dask_error(result: Any) -> Exception:
    """The error of a call that Dask reports, as type, error and traceback; a SweepError where it
    reports none, which means that the scheduler was lost.
    """
    from distributed import KilledWorker

    if not isinstance(result, tuple):
        goes_on = "what is finished is kept, and the same call goes on with the rest"
        raise SweepError(f"the scheduler was lost; {goes_on}")
    if isinstance(result[1], KilledWorker):
        return RuntimeError("its process died at every attempt (out of memory, or killed)")
    return result[1]


def _run_call(function: Function[C], batch: list[C]) -> list[Arrays]:
    """Run one call on its worker: the arrays of each configuration, by name.

    Raises ValueError for results of another form here, where the error is that of this call alone.
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
    for arrays in as_arrays:
        _check_kinds(arrays)
    return as_arrays


def _check_kinds(arrays: Arrays) -> None:
    """Refuse (ValueError) what cannot be kept: all but numbers, truth values and text."""
    for name, values in arrays.items():
        if values.dtype.kind not in "biufcSU":  # bool, integers, floats, complex, bytes, text
            raise ValueError(
                f"function: result {name!r}: expected numbers, truth values or text, got {values!r}"
            )


def _source_tag(function: Callable[..., Any]) -> str:
    """Checksum of the code that a function depends on, or, where it is of no module of the import
    path, of the text of its module or of its own; a ValueError where no text can be found.
    """
    try:
        return code_tag(function.__module__)
    except ValueError:
        pass  # defined in a notebook or a shell, or no module of the import path
    for source_of in (sys.modules.get(function.__module__), function):
        try:
            text = inspect.getsource(cast(Any, source_of))
        except (OSError, TypeError):
            continue
        return hashlib.sha256(text.encode()).hexdigest()[:16]
    raise ValueError(f"version: the source of {function!r} cannot be found; pass a version")
