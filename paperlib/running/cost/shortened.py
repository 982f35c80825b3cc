"""Run a notebook with its long loops cut short, only to measure what it would cost; nothing is kept."""

import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from paperlib.core.work import measured_by
from paperlib.data.made_up import made_up_folder, made_up_variables
from paperlib.io.folders import DATA_VARIABLE, data_folder
from paperlib.running.cost.stages import rates_of_products
from paperlib.running.execute import Job, kernel_config, run_variables, variables_set, with_parameters

LOG = "work.json"
_ACCELERATORS = {"TORCHDYNAMO_DISABLE": "1"}  # to compile a network takes longer than a few steps

Say = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """What a shortened run measured.

    Attributes:
        stages: One mapping for each kind of loop, see `Stage`.
        rest: Seconds outside the measured loops, by the number of the code cell; imports before the first
            cell have an empty name.
        written: Bytes left in the cache and among the results.
        stopped: Errors of cells, which an untrained model can cause; what follows them may be missing.
        device: Processor or GPU.
        models: Name of each language model to the bytes of its weights.
        rates: Operations per second of matrix products here, by number format.
    """

    stages: list[dict[str, Any]]
    rest: dict[str, float]
    written: int
    stopped: tuple[str, ...]
    device: str
    models: dict[str, float]
    rates: dict[str, float]


def shortened_run(job: Job, *, made_up: bool, cell_seconds: float = 900.0, say: Say = print) -> Measured:
    """Run a notebook with its long loops cut short.

    Guarantee:
        Nothing is left behind: results, caches and checkpoints go to a temporary folder.

    Args:
        job: The run to estimate.
        made_up: True for made-up data of the official sizes, False for the data at hand.
        cell_seconds: Most seconds of a cell; one that takes longer is stopped, and named in ``stopped``.
        say: Function that receives each line of progress.
    """
    with tempfile.TemporaryDirectory(prefix="paperlib-estimate-") as name:
        folder, cache = Path(name) / "results", Path(name) / "cache"
        folder.mkdir()
        cache.mkdir()
        variables = {**run_variables(job, folder), **_places(cache, made_up), **_ACCELERATORS}
        with variables_set(variables), kernel_config(_first_lines(folder / LOG)) as config:
            stopped = _executed(with_parameters(job), config, cell_seconds, say)
        log = json.loads((folder / LOG).read_text(encoding="utf-8"))
        (folder / LOG).unlink()
        return Measured(**log, written=_size(Path(name)), stopped=stopped, rates=rates_of_products())


def _places(cache: Path, made_up: bool) -> dict[str, str]:
    """Variables that send caches to a temporary folder, while data and models are read where they are."""
    hub = Path(os.environ.get("HF_HOME", Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"))
    data = {DATA_VARIABLE: str(data_folder()), "HF_HOME": str(hub.expanduser())}
    if made_up:
        data = made_up_variables(made_up_folder(full=True))
    return {**data, "XDG_CACHE_HOME": str(cache)}


def _first_lines(log: Path) -> list[str]:
    return [f"from paperlib.running.cost.shortened import begin as _begin; _begin({str(log)!r})"]


def begin(log: str) -> None:
    """Install the meter in this kernel; it writes ``log`` after every cell."""
    from IPython.core.getipython import get_ipython

    warnings.simplefilter("ignore")  # of networks that nobody has trained
    shell = get_ipython()
    if shell is not None:
        context = _metered(Path(log), shell.events)
        context.__enter__()
        shell.user_ns["_meter_context"] = context  # for as long as the kernel runs


@contextmanager
def _metered(log: Path, events: Any) -> Generator[None]:
    from paperlib.running.cost.meter import RunMeter

    meter = RunMeter()
    meter.work.add_rest(time.process_time())  # imports, which a whole run makes too

    def before(*_: object) -> None:
        meter.tick(counts=False)
        meter.work.cell = str(int(meter.work.cell or 0) + 1)

    def after(*_: object) -> None:
        meter.tick()
        meter.work.write(log)

    events.register("pre_run_cell", before)
    events.register("post_run_cell", after)
    meter.work.write(log)
    with measured_by(meter):
        yield


def _executed(notebook: Any, config: Any, cell_seconds: float, say: Say) -> tuple[str, ...]:
    """Run all cells, past errors; returns the errors."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    stopped: list[str] = []

    def on_executed(cell: Any, cell_index: int, execute_reply: Any) -> None:
        number = code.index(cell) + 1
        say(f"  cell {number} of {len(code)}")
        for output in cell.outputs:
            if output.output_type == "error":
                first = f"{output.ename}: {output.evalue}".splitlines()[0][:300]
                long = output.ename == "KeyboardInterrupt"  # by which a cell is stopped
                stopped.append(f"cell {number}: {f'took longer than {cell_seconds:g} s' if long else first}")

    options: Any = {"kernel_name": "python3", "allow_errors": True, "config": config}
    options |= {"timeout": cell_seconds, "interrupt_on_timeout": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the kernel client warns about its own internals
        try:
            NotebookClient(notebook, on_cell_executed=on_executed, **options).execute()
        except DeadKernelError:
            stopped.append("the kernel died, most often for want of memory; later cells are missing")
    return tuple(stopped)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
