"""What a shortened run measured: one line for each kind of loop, and the seconds of all the rest."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paperlib.report.provenance import gpu_name, hardware
from paperlib.running.cost.counter import Counter

KINDS = ("convolution", "attention", "product")


@dataclass
class Stage:
    """One kind of loop: the same code on a model of the same size.

    Work is counted in units: rows of a batch, tokens, or turns of the loop.
    """

    label: str
    known: tuple[str, ...]
    parameter_bytes: int = 0
    parameters: int = 0
    transformer: bool = False
    is_meta: bool = False
    steps: float = 0.0
    work: float = 0.0
    largest: float = 0.0  # units in a step
    seen: bool = False  # whether a step was run
    seconds: float | None = None  # per unit; None where nothing can be timed, as on the meta device
    flops: float = 0.0  # per unit, as the next two
    low_precision: float = 0.0
    moved: float = 0.0
    by_kind: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))
    operations: int = 0  # of a step
    courses: list[tuple[float, list[int]]] = field(default_factory=list[tuple[float, list[int]]])
    """Units of counted steps, and the bytes held after each operation."""
    sample: Any = None

    def add(self, *, steps: float, work: float, largest: float) -> None:
        """Count a loop, of which nothing needs to be run."""
        self.steps += steps
        self.work += work
        self.largest = max(self.largest, largest)

    def counted(self, counter: Counter, units: float) -> None:
        """Keep what one step of so many units did."""
        units = max(units, 1e-9)
        self.seen, self.operations = True, counter.operations
        self.flops, self.moved = counter.flops / units, counter.moved / units
        self.low_precision = counter.low_precision / units
        self.by_kind = {kind: value / units for kind, value in counter.by_kind.items()}
        self.courses.append((units, counter.course))

    def timed(self, seconds: float | None) -> None:
        """Keep the least seconds of a unit: whatever else the machine did can only have added to it."""
        if seconds is not None:
            self.seconds = min(seconds, self.seconds or seconds)

    @property
    def memory(self) -> float:
        """Bytes on the device during a step."""
        return self.parameter_bytes + _peak(self.courses[-2:], self.largest)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {name: value for name, value in vars(self).items() if name not in ("sample", "courses")}
        return {**values, "memory": self.memory}


@dataclass
class Work:
    """All of a run."""

    stages: dict[tuple[str, ...], Stage] = field(default_factory=dict[tuple[str, ...], Stage])
    rest: dict[str, float] = field(default_factory=dict[str, float])  # seconds by cell
    cell: str = ""
    device: str = field(default_factory=lambda: gpu_name() or _processor())
    models: dict[str, float] = field(default_factory=dict[str, float])  # bytes of weights by name

    def stage(self, label: str, about: tuple[object, ...], alike: str) -> Stage:
        """The stage of a loop, a new one if there is none like it."""
        known = (label, *map(_described, about), alike)
        if known not in self.stages:
            values = _tensors(about)
            self.stages[known] = Stage(
                label,
                known,
                parameter_bytes=sum(one.numel() * one.element_size() for one in values),
                parameters=sum(one.numel() for one in values),
                transformer=any(isinstance(one, nn.Module) and hasattr(one, "config") for one in about),
                is_meta=any(one.is_meta for one in values),
            )
        return self.stages[known]

    def add_rest(self, seconds: float) -> None:
        """Count seconds of code that runs at its true size."""
        self.rest[self.cell] = self.rest.get(self.cell, 0.0) + seconds

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        stages = [stage.to_dict() for stage in self.stages.values()]
        values = {"stages": stages, "rest": self.rest, "device": self.device, "models": self.models}
        path.write_text(json.dumps(values), encoding="utf-8")


def _processor() -> str:
    threads = torch.get_num_threads()
    return f"{hardware()['cpu']}, {threads} thread{'s' * (threads > 1)}"


def _peak(courses: list[tuple[float, list[int]]], units: float) -> float:
    """Most bytes held in a step of so many units.

    After each operation some memory grows with the units and some does not, which two counted steps tell
    apart. One step alone is taken to grow as a whole.
    """
    if not courses:
        return 0.0
    (small, low), (large, high) = courses[0], courses[-1]
    if small == large or len(low) != len(high):
        return max(high, default=0) * max(1.0, units / large)
    slopes = (np.array(high, float) - low) / (large - small)
    return float(np.max(np.array(low) + slopes * (units - small), initial=0.0))


def _tensors(about: tuple[object, ...]) -> list[Tensor]:
    modules = [one for one in about if isinstance(one, nn.Module)]
    return [
        *(one for one in about if isinstance(one, Tensor)),
        *(one for module in modules for one in (*module.parameters(), *module.buffers())),
    ]


def _described(one: object) -> str:
    if isinstance(one, nn.Module):
        parameters = list(one.parameters())
        kinds = sorted({f"{values.dtype}".removeprefix("torch.") for values in parameters})
        return f"{type(one).__name__} {sum(values.numel() for values in parameters)} {'/'.join(kinds)}"
    if isinstance(one, Tensor):
        return f"{tuple(one.shape)} {one.dtype}".replace("torch.", "")
    return str(tuple(one) if isinstance(one, torch.Size) else one)


def rates_of_products(side: int = 1024) -> dict[str, float]:
    """Operations per second of products of square matrices on this device, by number format."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rates: dict[str, float] = {}
    for name in ("float32", "bfloat16"):
        x = torch.ones(side, side, dtype=getattr(torch, name), device=device)
        seconds: list[float] = []
        for _ in range(4):
            start = time.perf_counter()
            (x @ x)[0, 0].item()
            seconds.append(time.perf_counter() - start)
        rates[name] = 2 * side**3 / min(seconds)
    return rates
