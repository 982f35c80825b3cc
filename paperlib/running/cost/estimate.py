"""What a run would cost on this machine and on some GPUs, from a shortened run."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from paperlib.core.work import PROCESSOR
from paperlib.running.cost.chips import CHIPS, OVERHEAD_BYTES, Chip, assumptions, seconds_on
from paperlib.running.cost.downloads import download_bytes, unknown_sizes
from paperlib.running.cost.shortened import Measured, Say, shortened_run
from paperlib.running.execute import Job

HOUR = 3600.0


@dataclass(frozen=True)
class Estimate:
    """The cost of one run.

    Attributes:
        notebook: Stem of the notebook.
        profile: Name of the profile.
        stages: One row per stage: stage, about, steps, seconds_per_step, hours_here, pflop, gpu_memory_gb,
            and hours on each chip.
        pflop: 10^15 floating-point operations of all networks.
        gpu_memory_gb: GB of the largest stage.
        disk_gb: GB written and downloaded.
        download_gb: GB of data and weights.
        hours: Hours on "this machine" and on each chip; None on a chip with less memory than is needed.
        rest_hours: Hours of code without a network, on this processor; part of all ``hours``.
        seconds: Seconds that the shortened run took.
        stopped: Errors of cells; what they would have cost is missing.
        device: Device the steps were measured on, and the processor's threads.
        date: Day of the measurement, UTC.
        notes: What is measured and what is assumed, one sentence each.
    """

    notebook: str
    profile: str
    stages: tuple[Mapping[str, Any], ...]
    pflop: float
    gpu_memory_gb: float
    disk_gb: float
    download_gb: float
    hours: Mapping[str, float | None]
    rest_hours: float
    seconds: float
    stopped: tuple[str, ...]
    device: str
    date: str
    notes: tuple[str, ...]


def estimate(job: Job, *, made_up: bool = True, cell_seconds: float = 900.0, say: Say = print) -> Estimate:
    """Run a notebook shortened, and extrapolate.

    Args:
        job: The run to estimate.
        made_up: True for made-up data of the official sizes, False for the data at hand.
        cell_seconds: Most seconds of a cell of the shortened run.
        say: Function that receives each line of progress.
    """
    started = time.monotonic()
    measured = shortened_run(job, made_up=made_up, cell_seconds=cell_seconds, say=say)
    return extrapolated(job, measured, seconds=time.monotonic() - started)


def extrapolated(job: Job, measured: Measured, *, seconds: float) -> Estimate:
    """The cost of the whole run from what a shortened run measured in ``seconds``."""
    rows = [_row(stage, measured) for stage in measured.stages]
    rest = sum(measured.rest.values()) / HOUR
    download = download_bytes(job.parameters, measured.models) / 1e9
    memory = max((row["gpu_memory_gb"] for row in rows), default=0.0)
    hours = {name: rest + sum(row["hours"][name] for row in rows) for name in _places()}
    return Estimate(
        notebook=job.stem,
        profile=job.profile,
        stages=tuple(sorted(rows, key=lambda row: -row["hours"]["this machine"])),
        pflop=sum(row["pflop"] for row in rows),
        gpu_memory_gb=memory,
        disk_gb=measured.written / 1e9 + download,
        download_gb=download,
        hours={**hours, **{chip.name: None for chip in CHIPS if chip.memory < memory}},
        rest_hours=rest,
        seconds=seconds,
        stopped=measured.stopped,
        device=measured.device,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        notes=(*_notes(measured), *_unknown(job)),
    )


def _places() -> tuple[str, ...]:
    return ("this machine", *(chip.name for chip in CHIPS))


def _row(stage: Mapping[str, Any], measured: Measured) -> dict[str, Any]:
    per_unit = stage["seconds"]
    if per_unit is None:  # nothing could be run: at the rate of matrix products
        low = stage["low_precision"] / measured.rates["bfloat16"]
        per_unit = low + (stage["flops"] - stage["low_precision"]) / measured.rates["float32"]
    here = per_unit * stage["work"]
    on_processor = PROCESSOR in stage["known"]
    hours = {chip.name: here if on_processor else _seconds(chip, stage, here, measured) for chip in CHIPS}
    return {
        "stage": stage["label"],
        "about": ", ".join(part for part in stage["known"][1:] if part),
        "steps": round(stage["steps"]),
        "seconds_per_step": here / max(stage["steps"], 1),
        "measured": stage["seconds"] is not None,
        "pflop": stage["flops"] * stage["work"] / 1e15,
        "gpu_memory_gb": 0.0 if on_processor else (stage["memory"] + OVERHEAD_BYTES) / 1e9,
        "hours": {name: value / HOUR for name, value in {"this machine": here, **hours}.items()},
    }


def _seconds(chip: Chip, stage: Mapping[str, Any], here: float, measured: Measured) -> float:
    """As measured where the run was on this chip."""
    return here if chip.known_as in measured.device and stage["seconds"] else seconds_on(chip, stage)


def _notes(measured: Measured) -> list[str]:
    notes = [
        f"Steps were measured on: {measured.device}. Each stage's time is the least of up to three steps, "
        "times the number of steps; slow steps were measured on a part of the batch. One process.",
        *assumptions(),
        "Disk: what the run writes to the cache and as results, and the downloads as they come.",
    ]
    if any(stage["seconds"] is None for stage in measured.stages):
        notes.append(
            "Models without weights here were counted, not timed; on this machine they are taken to run at "
            f"the rate of matrix products, {measured.rates['float32'] / 1e9:.0f} GFLOP/s in float32 and "
            f"{measured.rates['bfloat16'] / 1e9:.0f} in bfloat16."
        )
    return notes


def _unknown(job: Job) -> list[str]:
    names = ", ".join(unknown_sizes(job.parameters))
    return [f"Not in the download of {job.stem}: {names}, of which a part is enough."] if names else []


def summary_row(one: Estimate) -> dict[str, Any]:
    """One row of the table of all notebooks."""
    places = [*(chip.name for chip in CHIPS), "this machine"]
    return {
        "notebook": one.notebook,
        "profile": one.profile,
        "PFLOP": _short(one.pflop),
        "GPU memory, GB": _short(one.gpu_memory_gb),
        "disk, GB": _short(one.disk_gb),
        "download, GB": _short(one.download_gb),
        **{f"hours, {name}": _short(one.hours[name]) for name in places},
        "measured on": one.device,
        "date": one.date,
        "not counted": "; ".join(one.stopped),
    }


def _short(value: float | None) -> str:
    """Three digits; nothing for None, 0 for what is below a thousandth."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 1e-3 else "0"


def table_of(one: Estimate) -> list[Sequence[str]]:
    """The stages as text, a header first."""
    header = ["stage", "steps", "s/step", "hours here", "PFLOP", "GB", *(f"h {chip.name}" for chip in CHIPS)]
    rows: list[Sequence[str]] = [header]
    for row in one.stages:
        hours = [f"{row['hours'][name]:.3g}" for name in _places()]
        rows.append(
            [
                f"{row['stage']} ({row['about'][:60]})",
                f"{row['steps']:,}",
                f"{row['seconds_per_step']:.3g}" + ("" if row["measured"] else "*"),
                hours[0],
                f"{row['pflop']:.3g}",
                f"{row['gpu_memory_gb']:.1f}",
                *hours[1:],
            ]
        )
    rest = f"{one.rest_hours:.3g}"
    rows.append(["code without a network", "", "", rest, "", "", *[rest] * len(CHIPS)])
    total = ["no room" if value is None else f"{value:.3g}" for value in map(one.hours.get, _places())]
    rows.append(["total", "", "", total[0], f"{one.pflop:.3g}", f"{one.gpu_memory_gb:.1f}", *total[1:]])
    return rows
