"""The rehearsal is the paper profile with smaller counts, and with nothing else changed."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paperlib.data.text.corpora import CORPORA
from paperlib.models.language import PINNED
from paperlib.reproduction.running import find_project, plan

HERE = find_project(Path(__file__).parent)


@cache
def parameters(stem: str, profile: str) -> Any:
    return plan(HERE, stem, profile=profile).parameters


# Parameters that hold counts and other things together, or that two processor cores cannot afford.
ALLOWED = {
    "dtype": "float32, as processors without bfloat16 take minutes to emulate it",
    "prefix": "for ReCaLL, which nid_mia_benchmark rehearses",
    "hub_models": "Pythia-70m at the places of models of up to 12 billion parameters",
    "insertions": "the same",
    "insertions_reference": "the same",
    "natural": "the tokenizer of Pythia cannot be made up",
    "size": "the name of a set of counts: the paper's models with few rows, epochs and games",
}


def changes(given: Any, small: Any, name: str) -> Iterator[str]:
    """Names of what differs in more than a number; "resnet101:20" holds one after its colon."""
    if of_words(given) and of_words(small) and len(given) == len(small):
        for at, pair in enumerate(zip(given, small, strict=True)):
            yield from changes(*pair, f"{name}.{at}")
        return
    if isinstance(given, str) and isinstance(small, str):
        given, small = (re.sub(r":\d+$", "", one) for one in (given, small))
    if isinstance(given, dict) and isinstance(small, dict) and set(given) == set(small):
        for key in given:
            yield from changes(given[key], small[key], f"{name}.{key}")
    elif isinstance(given, list) and isinstance(small, list):
        values = [*given, *small]
        nested = all(isinstance(one, list) for one in values)
        flat = [item for one in values for item in one] if nested else values
        if given != small and not all(is_number(one) for one in flat):
            yield name
    elif given != small and not (is_number(given) and is_number(small)):
        yield name


def of_words(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict | str) for one in value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


PAIRS = [(stem, ("paper", "rehearsal")) for stem in HERE.stems()]
PAIRS += [("panoramia_images", ("paper_celeba", "rehearsal_celeba"))]
GPU = re.search(r"^GPU_NB  \?= (.+)$", (HERE.root / "Makefile").read_text("utf-8"), re.MULTILINE)
assert GPU is not None
PAIRS += [(stem, ("gpu", "rehearsal_gpu")) for stem in GPU[1].split()]


@pytest.mark.parametrize(("stem", "profiles"), PAIRS)
def test_the_rehearsal_changes_counts_alone(stem: str, profiles: tuple[str, str]) -> None:
    paper, small = (parameters(stem, name) for name in profiles)
    found = {one for name in paper for one in changes(paper[name], small[name], name)}
    assert {re.sub(r"\.\d+$", "", one) for one in found} <= set(ALLOWED)
    assert stem != "nid_mia_benchmark" or "prefix" not in found


def test_a_changed_word_is_seen_and_the_rehearsal_alone_runs_on_made_up_data() -> None:
    found = changes({"network": "unet", "width": 128}, {"network": "mlp", "width": 8}, "generator")
    assert list(found) == ["generator.network"]
    assert list(changes([1, 2], [1], "sizes")) == []
    assert list(changes(["resnet101:20"], ["cnn:1"], "targets")) == ["targets.0"]
    assert list(changes(["resnet101:20"], ["resnet101:20", "cnn:1"], "targets")) == ["targets"]
    assert list(changes(["resnet101:20"], ["resnet101:1"], "targets")) == []
    given = [{"optimizer": "sgd", "epochs": 60}]
    assert list(changes(given, [{"optimizer": "adam", "epochs": 60}], "dp")) == ["dp.0.optimizer"]
    assert list(changes(given, [{"optimizer": "sgd", "epochs": 1}], "dp")) == []
    assert list(changes(True, False, "augment")) == ["augment"]
    found = [name for name in HERE.profiles() if HERE.made_up(name)]
    assert found == ["rehearsal", "rehearsal_celeba", "rehearsal_gpu"]


def test_the_paper_profile_gives_what_the_rules_ask_for() -> None:
    fit = parameters("epsilon_star_fit", "paper")
    assert fit["target_epsilons"] == [1.0, 3.0, 10.0, 100.0]
    assert (fit["dataset"], fit["activation"]) == ("adult", "relu")
    assert fit["models"] >= 30
    benchmark = parameters("nid_mia_benchmark", "paper")
    inference = parameters("nid_dataset_inference", "paper")
    assert benchmark["hub_models"] == inference["hub_models"]
    # Table 1 needs 293 held-out identifiers, and a set of dataset inference 100 of each subset.
    assert benchmark["per_subset"] >= 293
    assert inference["per_subset"] >= inference["set_size"] == 100
    assert inference["held_out_sets"] >= 1_000
    assert parameters("output_set_dpsgd", "paper")["mislabelled"] == [1_000, 10_000]


def test_each_language_model_of_the_paper_profile_is_pinned() -> None:
    names = {parameters("nid_dp_audit", "paper")["model"]}
    text = parameters("panoramia_text", "paper")
    names |= {text["base"], text["reader"]}
    hub = parameters("nid_mia_benchmark", "paper")["hub_models"]
    names |= {entry.partition("=")[0] for entry in hub}
    assert names <= set(PINNED)


def test_the_page_of_costs_names_folders_that_the_loader_reads() -> None:
    page = (HERE.root / "book" / "paper_scale.md").read_text(encoding="utf-8")
    for name in ("pile_train", "pile_test", "dolma", "proof_pile_2_test"):
        assert f"`{CORPORA[name].file}" in page, name


@pytest.mark.parametrize("profile", HERE.profiles())
def test_every_profile_gives_every_notebook_parameters_that_it_knows(profile: str) -> None:
    assert all(parameters(stem, profile) for stem in HERE.stems())
