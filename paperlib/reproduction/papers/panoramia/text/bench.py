"""The stages of PANORAMIA on text: documents dealt, models trained, and their losses on every
chunk.
"""

import copy
import gc
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from paperlib.audits.panoramia.memorization import text_warnings
from paperlib.audits.panoramia.pools import (
    KINDS,
    SYNTHETIC,
    Helper,
    Pools,
    Target,
    pools_cache,
    pools_of,
)
from paperlib.core import FloatArray, IntArray
from paperlib.generators.text import (
    TextGenerator,
    copied_text,
    token_losses,
    train_on_chunks,
    with_start,
)
from paperlib.io.sources import code_tag
from paperlib.models.devices import default_device
from paperlib.models.language import LanguageModelConfig, load_language_model, new_language_model
from paperlib.reproduction.papers.kept import machine
from paperlib.reproduction.papers.panoramia.text.data import (
    Chunks,
    TextConfig,
    deal,
    small_tokenizer,
)
from paperlib.training.language import fit_language_model

# Settings that the cached arrays of all stages depend on.
_BASE = (
    "text",
    "base",
    "tokens",
    "chunks_per_document",
    "by_chunk",
    "public",
    "vocabulary",
    "width",
    "layers",
    "base_epochs",
    "precision",
    "batch_size",
    "learning_rate",
    "prompt",
    "seed",
)
# What all that judges generated chunks depends on beside.
_GENERATOR = ("top_k", "generator_epochs", "generated", "for_helper")
REAL_NONMEMBERS = Helper("real non-members", "nonmembers")
"""The paper's other helper: trained as the synthetic one, on real chunks that its games do not
show.
"""


@dataclass(frozen=True)
class TextBench:
    """The stages from a configuration to pools, each computed when it is first asked for."""

    config: TextConfig  # of all stages

    @cached_property
    def tokenizer(self) -> Any:
        """Of the base model, or trained on public documents."""
        config = self.config
        if config.base:
            _, pretrained = self._loaded
            return pretrained
        return small_tokenizer(
            config.text, config.vocabulary, config.seed, context=self._shape.context
        )

    @cached_property
    def text(self) -> dict[str, Chunks]:
        """Chunks by role."""
        return deal(self.config, self.tokenizer)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of all tokens."""
        digest = hashlib.sha256()
        for chunks in self.text.values():
            digest.update(chunks.tokens.tobytes())
        return digest.hexdigest()

    @cached_property
    def base(self) -> Any:
        """The model that all others start from, in evaluation mode."""
        if self.config.base:
            pretrained, _ = self._loaded
            return pretrained
        model: Any = new_language_model(self._shape, self.config.vocabulary)
        model.to(default_device())

        def compute(_: Path) -> Mapping[str, Any]:
            """Train the model from random weights on public passages; weights by name."""
            passages = self.text["public"].passages(self._prompted)
            training = self.config.training(self.config.base_epochs, salt=0)
            train_on_chunks(model, passages, training=training)
            return {name: values.cpu().numpy() for name, values in model.state_dict().items()}

        weights = self._kept("base", (), compute)
        model.load_state_dict(
            {name: torch.from_numpy(values.copy()) for name, values in weights.items()}
        )
        return model.eval()

    @cached_property
    def generated(self) -> Mapping[str, Any]:
        """Generated chunks for "audit" and "helper"."""
        config = self.config
        training = config.training(config.generator_epochs, salt=1, patience=1)
        settings = TextGenerator(
            length=config.tokens, prompt=config.prompt, top_k=config.top_k, training=training
        )

        def compute(_: Path) -> Mapping[str, Any]:
            """Train the generator from the base model, and draw all chunks at once."""
            # With by_chunk the next chunk of a document may have another role.
            count = 1 if config.by_chunk else self._prompted
            passages = self.text["generator"].passages(count)
            fitted = settings.fit(passages, base=self.base)
            chunks = fitted.sample(config.generated + config.for_helper, config.seed)
            return {"audit": chunks[: config.generated], "helper": chunks[config.generated :]}

        return self._kept("generator", _GENERATOR, compute)

    def helpers(self) -> dict[Helper, dict[str, FloatArray]]:
        """The helpers, each with its `_loss_columns` by kind of example: the base model, and those
        that it becomes when it is trained on generated and on real chunks.

        Each is computed once and then read from the cache.
        """
        base = self._kept("base helper", _GENERATOR, lambda _: self._judged(self.base))
        outputs: dict[Helper, dict[str, FloatArray]] = {Helper("base", "base"): base}
        depends_on = (*_GENERATOR, "helper_epochs", "helper_patience", "withheld")
        for helper in (SYNTHETIC, REAL_NONMEMBERS):
            outputs[helper] = self._kept(
                f"{helper.name} helper",
                depends_on,
                lambda _, helper=helper: self._judged_by(helper),
            )
        return outputs

    def run(self, others: str = "members") -> Mapping[str, Any]:
        """The training run of the targets on the generator's training chunks and those of the role
        ``others``: "members", or, of the null, "others".

        Returns:
            "train" and "validation": mean losses by epoch, nats, shape (epochs,). "EPOCH/KIND": the
                `_loss_columns` of each kind of example after each audited epoch.
        """
        name = "epochs" if others == "members" else "null_epochs"
        epochs = getattr(self.config, name)

        def compute(checkpoint: Path) -> Mapping[str, Any]:
            """Train to the last epoch and ask the model after each audited one; arrays as `run`
            holds them.
            """
            # The null's run ends where it is audited last; its rates fall as those of the targets'
            # run.
            last = 0 if others == "members" else max(epochs)
            total = self.config.total_epochs or max(epochs)
            model = copy.deepcopy(self.base)
            trained = train_on_chunks(
                model,
                self._learned(others),
                training=self.config.training(total, salt=20, last=last),
                validation=self.text["nonmembers"].tokens,  # looked at, and decides nothing
                keep=epochs,
                checkpoint=checkpoint,
            )
            arrays: dict[str, Any] = {"train": trained.train, "validation": trained.validation}
            for epoch in epochs:
                model.load_state_dict(dict(trained.kept[epoch]))
                for kind, losses in self._judged(model).items():
                    arrays[f"{epoch}/{kind}"] = losses
            return arrays

        return self._kept(f"target on {others}", (*_GENERATOR, "total_epochs", name), compute)

    def private(self, epsilon: float, others: str = "members") -> Mapping[str, Any]:
        """The `_loss_columns`, by kind of example, of a target trained with DP-SGD to ``epsilon``,
        nats, on the generator's training chunks and those of the role ``others``: "members", or, of
        the null, "others".
        """
        training = self.config.private_training(epsilon)

        def compute(checkpoint: Path) -> Mapping[str, Any]:
            """Train with DP-SGD from the base model; `_loss_columns` by kind of example."""
            model = copy.deepcopy(self.base)
            documents = with_start(model, self._learned(others)).tolist()
            fit_language_model(
                model, documents, config=training, progress=False, checkpoint=checkpoint
            )
            return self._judged(model)

        return self._kept(f"DP target on {others}", _GENERATOR, compute, training)

    def targets(self) -> dict[Target, Mapping[str, Any]]:
        """Outputs of each target by kind of example; see `_loss_columns`."""
        config = self.config
        run = self.run("members")
        outputs: dict[Target, Mapping[str, Any]] = {}
        for epoch in config.epochs:
            target = Target(_epochs_name(epoch), "trained", epoch)
            outputs[target] = _after_epoch(run, epoch)
        null_run = self.run("others")
        for epoch in config.null_epochs:
            target = Target(f"null, {_epochs_name(epoch)}", "null", epoch)
            outputs[target] = _after_epoch(null_run, epoch)
        for epsilon in map(float, config.dp_epsilons):
            name = f"DP, epsilon {epsilon:g}"
            private = Target(name, "private", config.dp_epochs, epsilon)
            outputs[private] = self.private(epsilon)
            null = Target(f"null, {name}", "null", config.dp_epochs, epsilon)
            outputs[null] = self.private(epsilon, "others")
        return outputs

    def trained_on(
        self, rows: IntArray, epochs: int, salt: int
    ) -> Callable[[str, IntArray], FloatArray]:
        """A model trained on chunks as a target is.

        Args:
            rows: Tokens of the chunks, shape (k, tokens).
            epochs: Passes over them; the learning rate falls as in the targets' run.
            salt: Sets its seed apart from other models'.

        Returns:
            A function from a kind of examples and their numbers, shape (n,), to its
                `_loss_columns`, shape (n, 1 + tokens).
        """
        model = copy.deepcopy(self.base)
        total = self.config.total_epochs or epochs
        train_on_chunks(model, rows, training=self.config.training(total, salt, last=epochs))
        return lambda kind, numbers: _loss_columns(model, self._examples[kind][numbers])

    def pools(self) -> Pools:
        """Everything trained and asked for its losses; the details have a row for each target."""
        targets = self.targets()
        means: list[dict[str, float]] = []
        for losses in targets.values():
            # The first column is the mean loss of a chunk.
            members, nonmembers = losses["members"][:, 0], losses["nonmembers"][:, 0]
            means.append({"train_metric": members.mean(), "test_metric": nonmembers.mean()})
        details = pd.DataFrame(means, columns=["train_metric", "test_metric"])
        return pools_of(self._examples, targets, self.helpers(), details, self.warnings())

    def warnings(self) -> tuple[str, ...]:
        """Whether the generator repeats its training text, more than other real text does."""
        examples = self._examples
        learned = self.text["generator"].passages(1)
        compared = copied_text(
            examples["generated"], learned, examples["nonmembers"], length=self.config.tokens
        )
        return text_warnings(compared)

    def key(self, *configs: Any) -> dict[str, Any]:
        """What a stage depends on, for the cache: these configurations, the tokens of the text, the
        device and the version of torch.
        """
        return {"configs": configs, "checksum": self.checksum, **machine()}

    @property
    def _shape(self) -> LanguageModelConfig:
        shared = {name: getattr(self.config, name) for name in ("width", "layers", "seed")}
        return LanguageModelConfig(context=1 + self.config.prompt + self.config.tokens, **shared)

    @property
    def _prompted(self) -> int:
        """Chunks of a prompt, and the one that follows it."""
        return self.config.prompt // self.config.tokens + 1

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        return load_language_model(self.config.base, dtype="float32")

    @cached_property
    def _examples(self) -> dict[str, IntArray]:
        """Chunks of tokens by kind of example, each of shape (n, tokens)."""
        chunks = (
            self.text["members"].tokens,
            self.generated["audit"],
            self.text["nonmembers"].tokens,
        )
        return dict(zip(KINDS, chunks, strict=True))

    def _judged(self, model: Any) -> dict[str, FloatArray]:
        """The model's `_loss_columns` of every example, by kind."""
        return {kind: _loss_columns(model, chunks) for kind, chunks in self._examples.items()}

    def _learned(self, others: str) -> IntArray:
        """Chunks that a target learns, shape (n, tokens): the generator's training chunks, and
        those of the role ``others``, "members" or, of a null, "others".
        """
        return np.concatenate([self.text["generator"].tokens, self.text[others].tokens])

    def _judged_by(self, helper: Helper) -> Mapping[str, Any]:
        """The `_loss_columns` of every example, by kind, of a helper that is trained here: up to
        its lowest loss on the last tenth of its chunks.
        """
        config = self.config
        rows = self._learned_by(helper)
        model = copy.deepcopy(self.base)
        held_out = max(1, len(rows) // 10)
        training = config.training(config.helper_epochs, salt=2, patience=config.helper_patience)
        train_on_chunks(model, rows[:-held_out], training=training, validation=rows[-held_out:])
        return self._judged(model)

    def _learned_by(self, helper: Helper) -> IntArray:
        """Chunks that a helper learns, shape (n, tokens): the synthetic one generated chunks, the
        other one the first members, where these are withheld from its games, or else chunks of
        other documents.
        """
        withheld = self.config.withheld_members
        if helper == SYNTHETIC:
            return self.generated["helper"]
        if withheld:
            return self.text["members"].tokens[:withheld]
        return self.text["helper"].tokens

    def _kept(
        self,
        stage: str,
        depends_on: tuple[str, ...],
        compute: Callable[[Path], Mapping[str, Any]],
        *others: Any,
    ) -> dict[str, Any]:
        """The arrays of a stage by name, from the cache, or computed and then kept there.

        Args:
            stage: Its name in the key of the cache.
            depends_on: Names of settings of the configuration that are in the key, beside those of
                `_BASE`.
            compute: Computes the arrays; its argument is a file for checkpoints.
            others: What else the arrays depend on.
        """
        settings = {name: getattr(self.config, name) for name in (*_BASE, *depends_on)}
        key = {"text stage": stage, "code": code_tag(__name__), **self.key(settings, *others)}
        # The optimizer and the schedule of an earlier stage refer to each other, so that the memory
        # of its moments is only freed here.
        gc.collect()
        return pools_cache().resumed(key, compute)


def _epochs_name(epochs: int) -> str:
    """What a target is called that was trained so long without DP."""
    return f"{epochs} epoch{'s' if epochs > 1 else ''}"


def _after_epoch(run: Mapping[str, Any], epoch: int) -> dict[str, Any]:
    """What `TextBench.run` kept after an epoch, by kind of example."""
    return {kind: run[f"{epoch}/{kind}"] for kind in KINDS}


def _loss_columns(model: Any, chunks: IntArray) -> FloatArray:
    """Mean loss of each chunk, then the loss of each of its tokens, shape (n, 1 + length)."""
    losses = token_losses(model, chunks)
    return np.column_stack([losses.mean(axis=1), losses])
