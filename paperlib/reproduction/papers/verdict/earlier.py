"""Records of earlier runs by today's rules: renamed terms, terms that came later, and scales that
are called otherwise now.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.verdict.samples import Estimate, Sample, Samples

_PIXELS_OF_CIFAR10 = 32


def values_of_today(
    target: str, terms: Iterable[str], values: Mapping[str, Samples]
) -> dict[str, Samples]:
    """Recorded samples by the terms of today's rule, for a record that was written by an earlier
    one.

    A term is found under the name that it had (`_RENAMED`). One that the record lacks is computed
    from recorded samples of other terms (`_DERIVED`), or else has no samples, {}: it was not
    measured. A recorded term that the rule has no more is left out.

    Args:
        target: Name of the table or figure that the rule judges.
        terms: Names of the terms of today's rule.
        values: Recorded samples by the names of that time.
    """
    renamed = {_RENAMED.get((target, name), name): samples for name, samples in values.items()}
    today: dict[str, Samples] = {}
    for name in terms:
        derive = _DERIVED.get((target, name))
        if name in renamed:
            today[name] = renamed[name]
        else:
            today[name] = derive(renamed) if derive else {}
    return today


def _rise_with_epochs(values: Mapping[str, Samples]) -> Samples:
    """Epsilon* of the baseline of most epochs less that of fewest, of models of equal seed; nothing
    where there is one baseline.
    """
    # Labels are such as "no DP, 5 epochs".
    stars = {
        int(label.split()[2]): sample
        for label, sample in values["all below 0.3"].items()
        if label.startswith("no DP, ")
    }
    if len(stars) < 2:
        return {}
    return {"": _differences(stars[max(stars)], stars[min(stars)])}


def _below_training_epsilon(values: Mapping[str, Samples]) -> Samples:
    """The epsilon that each DP strategy was trained with less its Epsilon*, by its label."""
    # Labels are such as "DP 3, clip 1, batch 64, 1 group".
    room: dict[str, Sample] = {}
    for label, sample in values["all below 0.3"].items():
        if label.startswith("DP "):
            epsilon = float(label.removeprefix("DP ").split(",")[0])
            room[label] = [epsilon - value for value in _listed(sample)]
    return room


def _gaussian_at_largest_m(values: Mapping[str, Samples]) -> Samples:
    """Gains over each rival with Gaussian noise at the largest number of samples; nothing where
    there is one number.
    """
    # Labels are such as "gaussian, scale 1, m = 1,000, DP-Sniper".
    sizes: dict[int, dict[str, Sample]] = {}
    for label, sample in values["optimal highest"].items():
        if label.startswith("gaussian"):
            size = int(label.split("m = ")[1].split(", ")[0].replace(",", ""))
            sizes.setdefault(size, {})[label] = sample
    return sizes[max(sizes)] if len(sizes) > 1 else {}


def _distances_recorded(values: Mapping[str, Samples]) -> Samples:
    """`distance_from_printed_o1` of the recorded values of O(1)."""
    return distance_from_printed_o1(values["O(1) positive"])


def distance_from_printed_o1(by_target: Samples) -> Samples:
    """O(1) of each target less the value that PANORAMIA's Table 6 prints after as many epochs;
    without the targets that it does not have.
    """
    printed = paper_table("panoramia_table06").query("audit == 'o1_rm_rn'")
    values = dict(zip(printed["epochs"], printed["eps"], strict=True))
    distances: dict[str, Sample] = {}
    for epochs, number in values.items():
        label = f"MLP, {epochs} epochs"
        if label in by_target:
            distances[label] = [value - number for value in _listed(by_target[label])]
    return distances


def _listed(sample: Sample) -> list[float]:
    """The values of a sample, or of an estimate that alone."""
    return [sample.value] if isinstance(sample, Estimate) else list(sample)


def _differences(sample: Sample, subtracted: Sample) -> list[float]:
    """Differences of models of equal seed; none where one sample lacks a model, so that the seeds
    of the others are not known.
    """
    values, others = _listed(sample), _listed(subtracted)
    if len(values) != len(others):
        return []
    return [value - other for value, other in zip(values, others, strict=True)]


_RENAMED = {("epsilon-star-figure-02", "DP below baselines"): "DP not above baselines"}
_DERIVED: dict[tuple[str, str], Callable[[Mapping[str, Samples]], Samples]] = {
    ("epsilon-star-figure-02", "rises with epochs"): _rise_with_epochs,
    ("epsilon-star-figure-02", "below the training epsilon"): _below_training_epsilon,
    ("output-sets-figure-02", "significant at large m"): _gaussian_at_largest_m,
    ("panoramia-table-06", "O(1) from the printed value"): _distances_recorded,
}
"""How a term that came later follows from what earlier runs recorded."""


def replaces_images(parameters: Mapping[str, Any]) -> bool:
    """Whether a run of CIFAR-10 had fewer pixels a side than the paper's images, which makes its
    data a substitute; 0 stands for all pixels.
    """
    side = parameters.get("side") or _PIXELS_OF_CIFAR10
    return parameters.get("dataset") == "cifar10" and side < _PIXELS_OF_CIFAR10
