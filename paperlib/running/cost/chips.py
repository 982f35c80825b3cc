"""Chips, and how long a measured amount of work takes on each: three limits, of which the largest counts.

A step can be limited by arithmetic, by memory traffic, or by how fast operations can be started. What a chip
reaches of its peak is assumed, in `SHARES` and the two constants beside them, unless the run was measured on
that very chip.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Chip:
    """Peak rates of a GPU, without sparsity.

    Attributes:
        name: Name in tables; a GPU whose name contains ``known_as`` is this chip.
        known_as: Part of the name that the driver reports.
        low_precision: Matrix products in bfloat16, TFLOP/s.
        tf32: Matrix products in TF32, which cuDNN takes for convolutions in float32, TFLOP/s.
        float32: Products in float32, TFLOP/s.
        memory: GB.
        bandwidth: TB/s.
        source: Document that states these numbers.
    """

    name: str
    known_as: str
    low_precision: float
    tf32: float
    float32: float
    memory: float
    bandwidth: float
    source: str


CHIPS = (
    Chip("H100", "H100", 989.4, 494.7, 66.9, 80, 3.35, "NVIDIA H100 architecture whitepaper, H100 SXM5"),
    Chip("A100", "A100", 312.0, 156.0, 19.5, 80, 2.039, "NVIDIA A100 80GB datasheet, A100 SXM4"),
    Chip("RTX 4090", "4090", 165.2, 82.6, 82.6, 24, 1.008, "NVIDIA Ada architecture whitepaper, appendix A"),
)


def peak_of(name: str | None, precision: str) -> float | None:
    """What a GPU computes at most, TFLOP/s; None where none is named, or one that is not in `CHIPS`.

    Args:
        name: Name as the driver reports it.
        precision: "bfloat16", or "float32", in which convolutions run in TF32.

    >>> peak_of("NVIDIA A100-SXM4-80GB", "bfloat16")
    312.0
    """
    known = [chip for chip in CHIPS if name and chip.known_as in name]
    if not known:
        return None
    return known[0].low_precision if precision == "bfloat16" else known[0].tf32


SHARES: Mapping[str, float] = MappingProxyType({"convolutions": 0.3, "transformer": 0.4, "small": 0.3})
"""Assumed share of the peak that arithmetic reaches, by kind of network."""
BANDWIDTH_SHARE = 0.8
"""Assumed share of the bandwidth that is reached; every operation is taken to read and write memory."""
LAUNCH_SECONDS = 6e-6
"""Assumed seconds to start an operation from Python."""
OVERHEAD_BYTES = 1e9
"""Assumed memory of CUDA itself and of its libraries."""


def kind_of(stage: Mapping[str, Any]) -> str:
    """Kind of network: "convolutions", "transformer" or "small"."""
    by_kind = stage["by_kind"]
    if 2 * by_kind["convolution"] > stage["flops"]:
        return "convolutions"
    return "transformer" if stage["transformer"] or by_kind["attention"] else "small"


def seconds_on(chip: Chip, stage: Mapping[str, Any]) -> float:
    """Seconds of a whole stage.

    Args:
        chip: Chip.
        stage: What was counted, see `Stage`.
    """
    kind = kind_of(stage)
    usual = chip.tf32 if kind == "convolutions" else chip.float32
    low = stage["low_precision"] / chip.low_precision
    arithmetic = (low + (stage["flops"] - stage["low_precision"]) / usual) / (1e12 * SHARES[kind])
    traffic = stage["moved"] / (chip.bandwidth * 1e12 * BANDWIDTH_SHARE)
    started = stage["operations"] * LAUNCH_SECONDS * stage["steps"]
    return max(max(arithmetic, traffic) * stage["work"], started)


def assumptions() -> list[str]:
    """What the hours on a chip rest on, one sentence each."""
    chips = "; ".join(
        f"{chip.name}: {chip.low_precision:g} TFLOP/s in bfloat16, {chip.tf32:g} in TF32, "
        f"{chip.float32:g} in float32, {chip.bandwidth:g} TB/s, {chip.memory:g} GB ({chip.source})"
        for chip in CHIPS
    )
    shares = ", ".join(f"{share:.0%} for {kind}" for kind, share in SHARES.items())
    return [
        f"Peaks without sparsity. {chips}.",
        f"Assumed, not measured here: arithmetic reaches {shares} of the peak; memory traffic "
        f"{BANDWIDTH_SHARE:.0%} of the bandwidth; each operation takes {1e6 * LAUNCH_SECONDS:g} microseconds "
        "to start. The slowest of the three counts.",
        "Convolutions in float32 run in TF32 on a GPU, as torch does by default, other products in float32.",
        f"GPU memory: weights, gradients, moments and activations of the largest stage, and "
        f"{OVERHEAD_BYTES / 1e9:g} GB for CUDA. A chip with less memory is given no hours.",
        "One GPU; code without a network takes as long as on this processor.",
    ]
