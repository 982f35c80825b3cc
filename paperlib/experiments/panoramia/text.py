"""Pools of text: members, generated and other real chunks, with the losses of targets and helpers."""

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
import torch

from paperlib.attacks.learned.text import LossSummaries, TextClassifier
from paperlib.core import FloatArray, IntArray
from paperlib.experiments.panoramia.audits import AuditConfig
from paperlib.experiments.panoramia.pools import KINDS, Pool, Pools, cached_pools, pools_cache
from paperlib.experiments.panoramia.text_data import DealtText, deal, small_tokenizer
from paperlib.generators.text import (
    ChunkTraining,
    TextGenerator,
    copied_share,
    token_losses,
    train_on_chunks,
    with_start,
)
from paperlib.io import code_tag
from paperlib.models.language import LanguageModelConfig, load_language_model, new_language_model
from paperlib.training import TrainingConfig, noise_for
from paperlib.training.language import fit_language_model

_CODE = (
    "paperlib.data.texts",
    "paperlib.data.wikitext",
    "paperlib.experiments.panoramia.text_data",
    "paperlib.generators.text",
    "paperlib.models.language",
    "paperlib.training.language",
    __name__,
)
_COPIED = 0.75
"""Share of a chunk's length that counts as copied if it stands word for word in the generator's text."""
_NOTABLE = 0.02
_BASE = ("text", "base", "tokens", "chunks_per_document", "public", "vocabulary", "width", "layers",
         "base_epochs", "batch_size", "learning_rate", "prompt", "seed")  # fmt: skip
_GENERATOR = ("top_k", "generator_epochs", "generated", "for_helper")


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Text, target models, generator and helpers.

    Attributes:
        text: As for `text_documents`: "documentation", "wikitext103", a corpus, a file or a folder.
        base: Name or folder of a pretrained model that all others start from, such as "gpt2"; empty trains a
            small one on ``public`` chunks first.
        tokens: Length of a chunk; the paper has 64.
        chunks_per_document: The first ones of each document; the paper has 50.
        public: Chunks of other documents that the small base model is trained on.
        generator: Chunks of D_G: what the generator and the "real" helpers are trained on; targets too.
        members: Chunks of D_in: what targets are trained on and audited for.
        nonmembers: Chunks no model is trained on, for RM;RN and O(1).
        others: Chunks that null targets are trained on in the members' place.
        generated: Chunks drawn for the audit.
        for_helper: Chunks drawn to train the "synthetic" helper.
        vocabulary: Tokens of the small base model.
        width: Of the small base model.
        layers: Of the small base model.
        base_epochs: Passes of the small base model over the public chunks.
        epochs: Passes of the targets over D_G and members: one run, audited at each of these.
        null_epochs: Where the null run is audited.
        dp_epsilons: Targets trained with DP-SGD.
        dp_delta: Their delta.
        dp_epochs: Their passes.
        dp_batch: Expected chunks in their batches.
        dp_learning_rate: Theirs.
        prompt: Tokens of a prompt; the paper has 64.
        top_k: Likeliest tokens that are drawn from, 0 for all; the paper has 200 of 50,257.
        generator_epochs: Most passes of the generator's fine-tuning; the best on held text is kept.
        helper_epochs: Passes of the "synthetic" helper; the best on other generated text is kept.
        real_helpers: Number of helpers trained on D_G, as long as the longest target.
        batch_size: Chunks per step, without DP.
        learning_rate: Largest, without DP.
        seed: Of everything.
    """

    text: str = "documentation"
    base: str = ""
    tokens: int = 16
    chunks_per_document: int = 50
    public: int = 6000
    generator: int = 3500
    members: int = 1500
    nonmembers: int = 1500
    others: int = 1500
    generated: int = 1500
    for_helper: int = 2000
    vocabulary: int = 1024
    width: int = 64
    layers: int = 1
    base_epochs: int = 4
    epochs: tuple[int, ...] = (1, 3, 6)
    null_epochs: tuple[int, ...] = (3, 6)
    dp_epsilons: tuple[float, ...] = (3.0,)
    dp_delta: float = 1e-5
    dp_epochs: int = 1
    dp_batch: int = 256
    dp_learning_rate: float = 1e-3
    prompt: int = 16
    top_k: int = 200
    generator_epochs: int = 6
    helper_epochs: int = 4
    real_helpers: int = 2
    batch_size: int = 32
    learning_rate: float = 3e-3
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epochs", tuple(sorted(self.epochs)))
        object.__setattr__(self, "null_epochs", tuple(sorted(self.null_epochs)))
        for name in ("epochs", "null_epochs"):
            given = getattr(self, name)
            if not given or given[0] < 1:
                raise ValueError(f"{name}: expected at least one number of 1 or more, got {given}")
        if self.prompt % self.tokens:
            raise ValueError(f"prompt: expected a multiple of tokens ({self.tokens}), got {self.prompt}")
        if not self.base and not self.public:
            raise ValueError("base: expected a pretrained model, or public chunks to train a small one on")
        if any(not 0 < epsilon < math.inf for epsilon in self.dp_epsilons):
            raise ValueError(f"dp_epsilons: expected numbers above 0, got {self.dp_epsilons}")

    @property
    def sizes(self) -> dict[str, int]:
        """Chunks of each role, in the order they are dealt."""
        names = ("public", "generator", "members", "nonmembers", "others")
        return {name: getattr(self, name) for name in names if name != "public" or not self.base}

    def training(self, epochs: int, salt: int, *, patience: int = 0) -> ChunkTraining:
        """How a model is trained without DP."""
        return ChunkTraining(
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            patience=patience,
            seed=self.seed + 1000 * salt,
        )

    def private_training(self, epsilon: float) -> TrainingConfig:
        """DP-SGD on D_G and members, with the noise that the Renyi accountant asks for."""
        rows = self.generator + self.members
        plan = TrainingConfig(
            epochs=self.dp_epochs,
            batch_size=self.dp_batch,
            optimizer="adam",
            learning_rate=self.dp_learning_rate,
            clip_norm=1.0,
            seed=self.seed,
        )
        noise = noise_for(epsilon, plan.sampling_rate(rows), plan.steps(rows), self.dp_delta)
        return replace(plan, noise_multiplier=noise)

    @property
    def early(self) -> int:
        """Epoch at which a helper is taken that was trained for less long than the longest target."""
        return self.epochs[max(0, len(self.epochs) - 2)]


def text_pools(config: TextConfig) -> Pools:
    """Members, generated chunks and real non-members, with what every target and helper says of them.

    Every model gives its mean loss and then the loss of each token of a chunk. Text, base model, generator,
    each helper and each run of targets are kept by their own part of the configuration, so that an
    interrupted run goes on, and another target does not train the generator anew.

    Raises:
        ValueError: Too little text for the sizes asked.
        DataUnavailableError: A text that is not at hand.

    Source:
        PANORAMIA, appendix C.2.
    """
    bench = text_bench(config)
    return cached_pools(bench.key(*_fields()), bench.pools, code=_CODE)


def _fields() -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(TextConfig))


def with_helpers(pools: Pools, helpers: tuple[str, ...]) -> Pools:
    """Pools in which audits see these helpers alone.

    Raises:
        ValueError: A helper that there is not.
    """
    if unknown := sorted(set(helpers) - set(pools.helpers)):
        raise ValueError(f"helpers: expected some of {', '.join(pools.helpers)}, got {', '.join(unknown)}")

    def chosen(pool: Pool) -> Pool:
        return replace(pool, helpers={name: pool.helpers[name] for name in helpers})

    parts = {kind: chosen(pool) for kind, pool in pools.by_kind().items()}
    return replace(pools, **parts, key=f"{pools.key} {helpers}" if pools.key else "")


def text_audit(
    size: int, seed: int = 0, *, tokens: int = 16, judged: float = 0.5, reader: str = "", **options: Any
) -> AuditConfig:
    """How text is audited: some examples are judged, of the others a quarter is for choosing.

    Args:
        size: Examples, both kinds together; the pools need half of it and a little more of each.
        seed: Of the first game.
        tokens: Length of a chunk.
        judged: Share of the examples that is judged, in (0, 1).
        reader: Language model that attacks read the tokens with, such as "gpt2"; empty takes a small network.
        options: Others of `AuditConfig`.

    >>> config = text_audit(1600)
    >>> config.train, config.validation, config.test
    (600, 200, 800)
    """
    if not 0 < judged < 1:
        raise ValueError(f"judged: expected a share between 0 and 1, got {judged}")
    test = round(size * judged)
    attacks = (LossSummaries(tokens=tokens), TextClassifier(tokens=tokens, pretrained=reader))
    return AuditConfig(
        train=2 * ((size - test) * 3 // 8),
        validation=2 * ((size - test) // 8),
        test=test,
        seed=seed,
        **{"attacks": attacks, "tries": 2, "repeats": 3, **options},
    )


@dataclass(frozen=True)
class TextBench:
    """The stages from a configuration to pools, each computed when it is first asked for.

    Attributes:
        config: What is made.
    """

    config: TextConfig

    @cached_property
    def tokenizer(self) -> Any:
        """Of the base model, or trained on public documents."""
        config = self.config
        if config.base:
            return self._loaded[1]
        return small_tokenizer(config.text, config.vocabulary, config.seed, context=self._shape.context)

    @cached_property
    def text(self) -> DealtText:
        """Chunks by role."""
        config = self.config
        return deal(
            config.text,
            self.tokenizer,
            length=config.tokens,
            per_document=config.chunks_per_document,
            sizes=config.sizes,
            seed=config.seed,
        )

    @cached_property
    def base(self) -> Any:
        """The model that all others start from, in evaluation mode."""
        if self.config.base:
            return _untied(self._loaded[0])
        model = _moved(new_language_model(self._shape, self.config.vocabulary))

        def compute() -> Mapping[str, Any]:
            passages = self.text.chunks["public"].passages(self._passage)
            train_on_chunks(model, passages, training=self.config.training(self.config.base_epochs, 0))
            return {name: values.cpu().numpy() for name, values in model.state_dict().items()}

        weights = self._kept("base", (), compute)
        model.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in weights.items()})
        return model.eval()

    @cached_property
    def generated(self) -> Mapping[str, Any]:
        """Generated chunks for "audit" and "helper", and the generator's "train" and "validation" losses."""
        config = self.config
        training = config.training(config.generator_epochs, 1, patience=1)
        settings = TextGenerator(
            length=config.tokens, prompt=config.prompt, top_k=config.top_k, training=training
        )

        def compute() -> Mapping[str, Any]:
            passages = self.text.chunks["generator"].passages(self._passage)
            fitted = settings.fit(passages, base=self.base)
            chunks = fitted.sample(config.generated + config.for_helper, config.seed)
            return {
                "audit": chunks[: config.generated],
                "helper": chunks[config.generated :],
                "train": fitted.trained.train,
                "validation": fitted.trained.validation,
            }

        return self._kept("generator", _GENERATOR, compute)

    def helpers(self) -> dict[str, dict[str, FloatArray]]:
        """What each helper gives for each kind of example.

        "base" is the model before any fine-tuning. "synthetic" was trained on generated chunks, up to its
        lowest validation loss. "real, n epochs" and "real 1", "real 2", ... were trained on D_G, those with a
        number for as many epochs as the longest target.
        """
        config = self.config
        found = {"base": self._kept("base helper", _GENERATOR, lambda: self._judged(self.base))}

        def synthetic() -> Mapping[str, Any]:
            chunks, held = self.generated["helper"], max(1, config.for_helper // 10)
            model = copy.deepcopy(self.base)
            training = config.training(config.helper_epochs, 2, patience=1)
            train_on_chunks(model, chunks[:-held], training=training, validation=chunks[-held:])
            return self._judged(model)

        found["synthetic"] = self._kept("synthetic helper", (*_GENERATOR, "helper_epochs"), synthetic)
        early, late = config.early, config.epochs[-1]
        for number in range(config.real_helpers):
            runs = self._kept(
                f"real helper {number}",
                (*_GENERATOR, "epochs"),
                lambda number=number: self._run(self.text["generator"], (early, late), 10 + number),
            )
            if number == 0:
                found[f"real, {early} epochs"] = _part(runs, early)
            found[f"real {number + 1}"] = _part(runs, late)
        return found

    def run(self, others: str = "members") -> Mapping[str, Any]:
        """The run of the targets, or with "others" in the members' place that of the null.

        Returns:
            "train" and "validation": losses of each epoch, (epochs,); "e/kind" for each epoch e audited: mean
            loss and token losses of each example.
        """
        config = self.config
        epochs = config.epochs if others == "members" else config.null_epochs
        rows = np.concatenate([self.text["generator"], self.text[others]])
        names = (*_GENERATOR, "epochs" if others == "members" else "null_epochs")
        return self._kept(f"target on {others}", names, lambda: self._run(rows, epochs, 20))

    def private(self, epsilon: float) -> Mapping[str, Any]:
        """A target trained with DP-SGD on D_G and the members."""
        config = self.config
        rows = np.concatenate([self.text["generator"], self.text["members"]])

        def compute() -> Mapping[str, Any]:
            model = _for_dp(copy.deepcopy(self.base))
            documents = with_start(model, rows).tolist()
            fit_language_model(model, documents, config=config.private_training(epsilon), progress=False)
            return self._judged(model)

        names = (*_GENERATOR, "dp_delta", "dp_epochs", "dp_batch", "dp_learning_rate")
        return self._kept(f"DP target, epsilon {epsilon:g}", names, compute)

    def pools(self) -> Pools:
        """Everything trained and asked for its losses."""
        config = self.config
        targets: dict[str, Mapping[str, Any]] = {}
        rows: list[dict[str, Any]] = []
        for others, epochs in (("members", config.epochs), ("others", config.null_epochs)):
            run = self.run(others)
            for epoch in epochs:
                name = f"{'null, ' if others == 'others' else ''}{epoch} epoch{'s' if epoch > 1 else ''}"
                targets[name] = _part(run, epoch)
                rows.append(
                    {"target": name, "null": others == "others", "epochs": epoch, "dp_epsilon": np.nan}
                )
        for epsilon in config.dp_epsilons:
            name = f"DP, epsilon {epsilon:g}"
            targets[name] = self.private(epsilon)
            rows.append(
                {"target": name, "null": False, "epochs": config.dp_epochs, "dp_epsilon": float(epsilon)}
            )
        table = pd.DataFrame(rows)
        for column, kind in (("train_metric", "members"), ("test_metric", "nonmembers")):
            table[column] = [float(targets[name][kind][:, 0].mean()) for name in table["target"]]
        helpers = self.helpers()
        members, generated, nonmembers = (
            Pool(
                self._examples[kind],
                {name: given[kind] for name, given in helpers.items()},
                {name: given[kind] for name, given in targets.items()},
            )
            for kind in KINDS
        )
        return Pools(members, generated, nonmembers, table, self.warnings())

    def warnings(self) -> tuple[str, ...]:
        """Whether the generator repeats its training text, more than other real text does."""
        length = max(1, round(_COPIED * self.config.tokens))
        trained_on = self.text.chunks["generator"].passages(1)
        shares = {
            kind: copied_share(chunks, trained_on, length=length) for kind, chunks in self._examples.items()
        }
        if shares["generated"] <= shares["nonmembers"] + _NOTABLE:
            return ()
        return (
            f"the generator copies: {shares['generated']:.1%} of its chunks hold {length} tokens in a row "
            f"of its training text (real non-members: {shares['nonmembers']:.1%}); stop its training "
            "earlier or give it more text",
        )

    def key(self, *names: str) -> dict[str, Any]:
        """What a stage depends on, for the cache."""
        config = {name: getattr(self.config, name) for name in names}
        return {**config, "checksum": self.text.checksum, "device": _device(), "torch": torch.__version__}

    @property
    def _shape(self) -> LanguageModelConfig:
        config = self.config
        return LanguageModelConfig(
            width=config.width,
            layers=config.layers,
            context=1 + config.prompt + config.tokens,
            seed=config.seed,
        )

    @property
    def _passage(self) -> int:
        """Chunks of a passage: the prompt's and the one that follows."""
        return self.config.prompt // self.config.tokens + 1

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        return load_language_model(self.config.base, dtype="float32")

    @cached_property
    def _examples(self) -> dict[str, IntArray]:
        found = (self.text["members"], self.generated["audit"], self.text["nonmembers"])
        return dict(zip(KINDS, found, strict=True))

    def _judged(self, model: Any) -> dict[str, FloatArray]:
        return {kind: _columns(model, chunks) for kind, chunks in self._examples.items()}

    def _run(self, rows: IntArray, epochs: tuple[int, ...], salt: int) -> dict[str, Any]:
        """One run without DP, judged at several epochs."""
        model = copy.deepcopy(self.base)
        trained = train_on_chunks(
            model,
            rows,
            training=self.config.training(max(epochs), salt),
            validation=self.text["nonmembers"],
            keep=epochs,
        )
        found: dict[str, Any] = {"train": trained.train, "validation": trained.validation}
        for epoch in epochs:
            model.load_state_dict(dict(trained.kept[epoch]))
            found |= {f"{epoch}/{kind}": values for kind, values in self._judged(model).items()}
        return found

    def _kept(
        self, stage: str, names: tuple[str, ...], compute: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        key = {"text stage": stage, "code": code_tag(*_CODE), **self.key(*_BASE, *names)}
        return pools_cache().get(key, compute)


text_bench = lru_cache(maxsize=2)(TextBench)
"""The stages of a configuration, kept while the program runs."""


def loss_curves(config: TextConfig) -> pd.DataFrame:
    """Training and validation loss of the targets' run over its epochs: Figure 8.

    Returns:
        Columns epoch, train, validation; nats per token.
    """
    run = text_bench(config).run("members")
    return pd.DataFrame(
        {
            "epoch": np.arange(1, len(run["train"]) + 1),
            "train": run["train"],
            "validation": run["validation"],
        }
    )


def _part(run: Mapping[str, Any], epoch: int) -> dict[str, FloatArray]:
    return {kind: run[f"{epoch}/{kind}"] for kind in KINDS}


def _columns(model: Any, chunks: IntArray) -> FloatArray:
    """Mean loss of each chunk, then the loss of each of its tokens, shape (n, 1 + length)."""
    losses = token_losses(model, chunks)
    return np.column_stack([losses.mean(axis=1), losses])


def _untied(model: Any) -> Any:
    """A model whose output layer has weights of its own, which DP-SGD needs."""
    output, read = model.get_output_embeddings(), model.get_input_embeddings()
    if output is not None and output.weight is read.weight:
        output.weight = torch.nn.Parameter(output.weight.detach().clone())
        model.config.tie_word_embeddings = False
    return model.eval()


def _for_dp(model: Any) -> Any:
    """A model whose learned positions, if it has any, stay as they are.

    GPT-2 looks positions up once for a whole batch, so that no document has a gradient of its own there.
    """
    for name, module in model.named_modules():
        if name.endswith("wpe"):
            module.requires_grad_(False)
    return model


def _moved(model: Any) -> Any:
    return model.to(_device())


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
