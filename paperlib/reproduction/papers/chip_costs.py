"""What the stages of the profile `gpu` ask of a chip, counted without one: on torch's device of
shapes alone.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
import torch
import transformers
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.flop_counter import FlopCounterMode

from paperlib.generators.images import VelocityUNet
from paperlib.models import MLP
from paperlib.models.images.build import ImageArchitecture, build_image_model
from paperlib.models.language import new_language_model
from paperlib.reproduction.papers.epsilon_star.grids import landscape_config
from paperlib.reproduction.papers.natural_identifiers.natural_models import NaturalConfig

Parameters = Mapping[str, Any]
"""Parameters of a notebook by name."""

PEAK = 989.4e12
"""Operations a second of an H100 or H200 in bfloat16, without sparsity (NVIDIA's data sheet)."""
SHARE = 0.4
"""The share of the peak by which times are estimated."""

_COLOURS = (3, 32, 32)  # of an image of CIFAR-10
_CLASSES = 10
_PYTHIA_70M: dict[str, Any] = {  # its config.json
    "vocab_size": 50_304,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
}
_SCORED = 60  # tokens of a candidate behind its context, which is read once for all of them


@dataclass(frozen=True)
class Step:
    """One example in a model: operations, and bytes that wait for the way back."""

    forward: float  # operations of the way forward; a multiply-add is two
    training: float  # of both ways
    kept: float  # bytes of what is kept for the way back, in bfloat16
    parameters: int


@dataclass(frozen=True)
class Stage:
    """A part of a run that is kept by itself: its model, and how often examples go through it."""

    target: str  # name of the notebook
    stage: str
    step: Step  # one example in its model
    trained: float = 0.0  # examples times passes, on both ways
    asked: float = 0.0  # examples times passes, on the way forward alone, as for answers
    batch: int = 1  # examples in memory together
    copies: int = 1  # models in memory together
    private: bool = False  # each example's gradient is clipped

    def row(self) -> dict[str, Any]:
        """The stage as a row of `chip_costs`."""
        step = self.step
        # DP-SGD goes the way back to the weights twice: for the norms, and for the clipped sum.
        both_ways = step.training * (4 / 3 if self.private else 1)
        work = self.trained * both_ways + self.asked * step.forward
        # Weights, gradients and two moments in float32, and a copy of the weights in bfloat16.
        weights = self.copies * step.parameters * (4 * 4 + 2)
        memory = weights + self.batch * (step.kept if self.trained else 0.0)
        return {
            "notebook": self.target,
            "stage": self.stage,
            "parameters, M": step.parameters / 1e6,
            "batch": self.batch,
            "steps": round(self.trained / self.batch),
            "examples": self.trained + self.asked,
            "PFLOP": work / 1e15,
            "GPU memory, GB": memory / 1e9,
            "estimate, s": work / (SHARE * PEAK),
        }


def with_measured(costs: pd.DataFrame, earlier: pd.DataFrame | None) -> pd.DataFrame:
    """The rows of `chip_costs` with the seconds that stages took on a GPU, as an ``earlier`` table
    has them in its column ``measured, s``, and the share of the peak; empty where none were taken.
    """
    names = ["notebook", "stage"]
    measured = pd.DataFrame({name: [] for name in [*names, "measured, s"]}, dtype=object)
    if earlier is not None:
        measured = earlier[measured.columns]
    table = costs.merge(measured, on=names, how="left")
    seconds = table["measured, s"].astype(float)
    return table.assign(
        **{"measured, s": seconds, "share of peak": 1e15 * table["PFLOP"] / (seconds * PEAK)}
    )


def chip_costs(parameters_of: Callable[[str], Parameters]) -> pd.DataFrame:
    """A row for each stage of the five targets: parameters, operations, memory, and seconds at
    `SHARE` of the peak.

    Kernels, data, compilation and what runs on the processor are not in these seconds, and small
    models do not reach such a share. Times measured on a GPU are not known here.

    Args:
        parameters_of: The parameters of a notebook in the profile, by its name.
    """
    stages: list[Stage] = []
    for notebook, stages_of in _TARGETS.items():
        stages += stages_of(parameters_of(notebook))
    return pd.DataFrame([stage.row() for stage in stages])


def counted(
    make: Callable[[], nn.Module], inputs: Callable[[int], tuple[Tensor, ...]], batch: int = 2
) -> Step:
    """What one example asks of a model, from one step of ``batch`` of them without numbers.

    Args:
        make: Makes the model; it is called where every tensor is a shape alone.
        inputs: The model's arguments for so many examples.
    """
    with torch.device("meta"):
        model = make().train()
        # Activations are kept in bfloat16; whole numbers, such as tokens, stay what they are.
        model = model.to(torch.bfloat16)
        arguments = [
            values.bfloat16() if values.is_floating_point() else values for values in inputs(batch)
        ]
        weights = list(model.parameters())
        kept: dict[int, int] = {}
        with _sizes_of_kept(kept), FlopCounterMode(display=False) as forward:
            output = model(*arguments)
        output = output if isinstance(output, Tensor) else output.logits
        with FlopCounterMode(display=False) as backward:
            output.float().sum().backward()
    # Weights and inputs are in memory anyhow, and do not grow with the batch.
    for values in (*weights, *arguments):
        kept.pop(StorageWeakRef(values.untyped_storage()).cdata, None)
    ways = (forward.get_total_flops(), backward.get_total_flops())
    return Step(
        forward=ways[0] / batch,
        training=sum(ways) / batch,
        kept=sum(kept.values()) / batch,
        parameters=sum(values.numel() for values in weights),
    )


def _sizes_of_kept(kept: dict[int, int]) -> AbstractContextManager[Any]:
    """While it is open, writes into ``kept`` the bytes of each piece of memory that is kept for the
    way back, by its address: two tensors of one piece count once.
    """

    def note(values: Tensor) -> Tensor:
        """The tensor as it is, after a note of its memory."""
        storage = values.untyped_storage()
        kept[StorageWeakRef(storage).cdata] = storage.nbytes()
        return values

    return torch.autograd.graph.saved_tensors_hooks(note, lambda values: values)


def _batch_of_images(count: int) -> tuple[Tensor, ...]:
    """The argument of a network on CIFAR-10: a batch of images, shape (count, 3, 32, 32)."""
    return (torch.empty(count, *_COLOURS),)


def _classifier(name: str, *, group_norm: bool = False) -> Step:
    """An image of CIFAR-10 in a network of `ARCHITECTURES`."""
    channels, side, _ = _COLOURS
    shape = ImageArchitecture(
        name=name, channels=channels, side=side, outputs=_CLASSES, group_norm=group_norm
    )
    return counted(lambda: build_image_model(shape), _batch_of_images)


def _tokens(length: int) -> Callable[[int], tuple[Tensor, ...]]:
    """Texts of so many tokens."""
    return lambda count: (torch.zeros(count, length, dtype=torch.long),)


def _images(parameters: Parameters) -> Iterator[Stage]:
    """Table 3 on images: generator, helpers, targets, their answers, and the networks of the
    games.
    """
    yield from _generator_stages(parameters)
    yield from _target_stages(parameters)
    attack = parameters["attack"]
    # Members against generated images and against real ones; a choice, then the restarts.
    networks = 2 * parameters["repetitions"] * (1 + parameters["restarts"])
    yield Stage(
        target="panoramia_images",
        stage="networks of the games",
        step=_classifier(attack["architecture"]),
        trained=networks * attack["epochs"] * parameters["train"],
        asked=networks * parameters["test"],
        batch=attack["batch_size"],
    )


def _generator_stages(parameters: Parameters) -> Iterator[Stage]:
    """The generator of images, its draws, and the networks that label its images or are asked
    beside the targets.
    """
    of_generator, _, _, others = parameters["sizes"]
    for_audit, for_helper = parameters["generated"]
    settings = parameters["generator"]

    def flow_inputs(count: int) -> tuple[Tensor, ...]:
        """Arguments of the network of a flow: a batch of ``count`` images, times and classes."""
        return (*_batch_of_images(count), torch.empty(count), torch.zeros(count, dtype=torch.long))

    flow = counted(
        lambda: VelocityUNet(_COLOURS, _CLASSES, settings["width"], settings["blocks"]), flow_inputs
    )
    batch = settings["batch_size"]
    yield Stage(
        target="panoramia_images",
        stage="generator",
        step=flow,
        trained=settings["steps"] * batch,
        batch=batch,
    )
    # Euler's method asks the network once in each step of a draw, the other method twice.
    questions = settings["sampler_steps"] * (1 if settings.get("sampler") == "euler" else 2)
    drawn = (for_audit + for_helper) * questions
    yield Stage(target="panoramia_images", stage="drawing", step=flow, asked=drawn, batch=1024)
    helpers = parameters["helpers"]
    learned = 2 * of_generator + for_helper + others  # labeler and three helpers
    yield Stage(
        target="panoramia_images",
        stage="labeler and helpers",
        step=_classifier(helpers["architecture"]),
        trained=helpers["epochs"] * learned,
        batch=helpers["batch_size"],
    )


def _target_stages(parameters: Parameters) -> Iterator[Stage]:
    """The targets on images: those of one network that differ in their epochs alone are one
    training, to the most epochs, and so are its null targets.
    """
    of_generator, members, nonmembers, others = parameters["sizes"]
    for_audit, _ = parameters["generated"]
    asked = members + for_audit + nonmembers  # each target's answers
    batch = parameters["target_settings"]["batch_size"]
    passes: dict[tuple[str, bool], int] = {}  # by network, and whether it is a null
    for text in parameters["targets"]:
        name, _, epochs = text.removeprefix("null ").partition(":")
        run = (name, text.startswith("null "))
        passes[run] = max(passes.get(run, 0), int(epochs))
    for (name, is_null), epochs in passes.items():
        size = of_generator + (others if is_null else members)
        yield Stage(
            target="panoramia_images",
            stage=f"null {name}" if is_null else name,
            step=_classifier(name),
            trained=epochs * size,
            # The answers of all targets, in equal parts.
            asked=len(parameters["targets"]) * asked / len(passes),
            batch=batch,
        )


def _text(parameters: Parameters) -> Iterator[Stage]:
    """Tables 3 and 9: the generator, helpers, the target and its null, and the games' readers, all
    of the size of GPT-2.
    """
    length = parameters["tokens"] + 1

    def gpt2() -> nn.Module:
        return transformers.GPT2LMHeadModel(transformers.GPT2Config())

    step = counted(gpt2, _tokens(length))
    batch = parameters["batch_size"]
    learned = parameters["generator"]
    nonmembers = parameters["nonmembers"]
    # A token that is drawn costs its share of a chunk: what the model holds of the tokens before it
    # is kept, and not computed again.
    drawn = parameters["generated"] + parameters["for_helper"]
    asked = parameters["members"] + parameters["generated"] + nonmembers
    helpers = 2 * parameters["helper_epochs"] * parameters["for_helper"]
    epochs, null_epochs = parameters["epochs"], parameters["null_epochs"]
    target = max(epochs) * (learned + parameters["members"])
    null = max(null_epochs) * (learned + parameters["others"])
    # Members against generated chunks and against real ones; a choice, then the restarts.
    readers = 2 * parameters["repetitions"] * (1 + parameters["restarts"])
    shown = round(parameters["audited"] * (1 - parameters["judged"]))
    # By stage the chunks on both ways, and those on the way forward alone: the answers after each
    # audited epoch, and the validation losses of all epochs.
    passes = {
        "generator": (parameters["generator_epochs"] * learned, drawn),
        "helpers": (helpers, 3 * asked),
        "target": (target, len(epochs) * asked + max(epochs) * nonmembers),
        "null": (null, len(null_epochs) * asked + max(null_epochs) * nonmembers),
        "readers of the games": (readers * 2 * parameters["reader_epochs"] * shown, 0),
    }
    for stage, (trained, forward) in passes.items():
        yield Stage(
            target="panoramia_text",
            stage=stage,
            step=step,
            trained=trained,
            asked=forward,
            batch=batch,
        )


class _Stack(NamedTuple):
    """Models that are trained together."""

    name: str
    models: int  # their number
    epochs: int
    batch: int  # records in a batch of one model
    private: bool


def _landscape(parameters: Parameters) -> Iterator[Stage]:
    """Figure 1: stacks of models with and without DP."""
    config = landscape_config(parameters["classes_data"], size=parameters["size"])
    records = dict(config.options)["n_train"]
    widths = (600, *config.widths, 100)  # 600 products, and 100 classes of shoppers
    step = counted(
        lambda: MLP(widths).module(torch.empty(MLP(widths).size)),
        lambda count: (torch.empty(count, widths[0]),),
    )
    # Of models that differ in their epochs alone the longest is trained.
    longest = max(config.baseline_epochs)
    stacks = [
        _Stack(
            name="without DP",
            models=config.seeds,
            epochs=longest,
            batch=config.baseline_batch,
            private=False,
        )
    ]
    strategies = len(config.epsilons) * len(config.clip_norms) * len(config.microbatches)
    for size in config.batch_sizes:
        # Strategies beside the grid, each with its batch size in the third place.
        beside = sum(batch == size for _, _, batch, _, _ in config.further)
        models = config.seeds * (strategies + beside)
        name = f"DP, batches of {size}"
        stacks.append(
            _Stack(name=name, models=models, epochs=config.private_epochs, batch=size, private=True)
        )
    for stack in stacks:
        yield Stage(
            target="epsilon_star_landscape",
            stage=f"{stack.models} models {stack.name}",
            step=step,
            trained=stack.models * stack.epochs * records,
            asked=2 * stack.models * records,  # about training and population records
            batch=stack.models * stack.batch,
            copies=stack.models,
            private=stack.private,
        )


def _identifiers(parameters: Parameters) -> Iterator[Stage]:
    """Tables 1 and 4: decoders on documents with identifiers; documents count as whole windows."""
    documents = parameters["natural_documents"] + parameters["natural_text"]
    # Of both sides, each identifier with its alternatives.
    candidates = 2 * parameters["natural_identifiers"] * (1 + parameters["natural_generated"])
    large, medium, small = parameters["natural_widths"]
    epochs = parameters["natural_epochs"]
    # Models of one width and as many passes are one model.
    models = dict.fromkeys([(large, epochs), (medium, 1), (medium, epochs), (small, epochs)])
    for width, passes in models:
        config = NaturalConfig(width=width, layers=parameters["natural_layers"])
        shape = config.shape(context=2 * config.window)
        step = counted(
            lambda shape=shape, config=config: new_language_model(shape, config.vocabulary),
            _tokens(config.window),
        )
        yield Stage(
            target="nid_mia_benchmark",
            stage=f"width {width}, passes {passes}",
            step=step,
            trained=passes * documents,
            asked=candidates * _SCORED / config.window,  # a candidate is a part of a window
            batch=config.batch_size,
        )


def _private_text(parameters: Parameters) -> Iterator[Stage]:
    """Figures 2 and 5: Pythia-70m with DP, and its scores of all candidates."""
    config = transformers.GPTNeoXConfig(**_PYTHIA_70M)
    step = counted(
        lambda: transformers.GPTNeoXForCausalLM(config), _tokens(parameters["document_tokens"])
    )
    # Numbers of canaries of each fine-tuning: one for each target epsilon, and those of Figure 5.
    sizes = [parameters["canaries"]] * len(parameters["target_epsilons"])
    sizes += parameters["canary_numbers"]
    documents = [size + parameters["others"] for size in sizes]
    candidates = max(parameters["cardinalities"])
    yield Stage(
        target="nid_dp_audit",
        stage=f"{len(sizes)} fine-tunings with DP",
        step=step,
        trained=parameters["epochs"] * sum(documents),
        asked=2 * candidates * sum(sizes),  # before and after fine-tuning
        batch=round(parameters["share"] * max(documents)),
        private=True,
    )


def _output_sets(parameters: Parameters) -> Iterator[Stage]:
    """Figure 3: one model for each panel, epsilon and seed."""
    step = _classifier(parameters["network"], group_norm=True)
    (choice,) = parameters["choices"]
    natural, others_beside_canaries = parameters["natural"], parameters["others"]
    panels = [(f"{natural:,} records", natural, 0)]
    for count in parameters["mislabelled"]:
        panels.append((f"{count:,} canaries", count, others_beside_canaries))
    models = parameters["seeds"] * len(parameters["epsilons"])
    for name, records, others in panels:
        members = records / 2 + others  # fair coins choose half of the records
        yield Stage(
            target="output_set_dpsgd",
            stage=name,
            step=step,
            trained=models * choice["epochs"] * members,
            asked=models * (records + parameters["tested"]),
            batch=512,
            private=True,
        )


_TARGETS: Mapping[str, Callable[[Parameters], Iterator[Stage]]] = {
    "panoramia_images": _images,
    "panoramia_text": _text,
    "epsilon_star_landscape": _landscape,
    "nid_mia_benchmark": _identifiers,
    "nid_dp_audit": _private_text,
    "output_set_dpsgd": _output_sets,
}
"""The notebooks of the profile in the order in which `make gpu` runs them."""
