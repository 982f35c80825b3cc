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
from paperlib.io import code_tag
from paperlib.models.devices import default_device
from paperlib.models.language import LanguageModelConfig, load_language_model, new_language_model
from paperlib.papers.kept import machine
from paperlib.papers.panoramia.text.data import Chunks, TextConfig, deal, small_tokenizer
from paperlib.training.language import fit_language_model

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
            return self._loaded[1]
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
        return hashlib.sha256(
            b"".join(one.tokens.tobytes() for one in self.text.values())
        ).hexdigest()

    @cached_property
    def base(self) -> Any:
        """The model that all others start from, in evaluation mode."""
        if self.config.base:
            return self._loaded[0]
        model: Any = new_language_model(self._shape, self.config.vocabulary)
        model.to(default_device())

        def compute(_: Path) -> Mapping[str, Any]:
            passages = self.text["public"].passages(self._prompted)
            train_on_chunks(
                model, passages, training=self.config.training(self.config.base_epochs, 0)
            )
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
        training = config.training(config.generator_epochs, 1, patience=1)
        settings = TextGenerator(
            length=config.tokens, prompt=config.prompt, top_k=config.top_k, training=training
        )

        def compute(_: Path) -> Mapping[str, Any]:
            alone = config.by_chunk  # the next chunk of a document may have another role
            passages = self.text["generator"].passages(1 if alone else self._prompted)
            fitted = settings.fit(passages, base=self.base)
            chunks = fitted.sample(config.generated + config.for_helper, config.seed)
            return {"audit": chunks[: config.generated], "helper": chunks[config.generated :]}

        return self._kept("generator", _GENERATOR, compute)

    def helpers(self) -> dict[Helper, dict[str, FloatArray]]:
        """Outputs by kind of example of the base model and of those tuned on generated and on real
        chunks.
        """
        base = self._kept("base helper", _GENERATOR, lambda _: self._judged(self.base))
        found: dict[Helper, dict[str, FloatArray]] = {Helper("base", "base"): base}
        names = (*_GENERATOR, "helper_epochs", "helper_patience", "withheld")
        for helper in (SYNTHETIC, REAL_NONMEMBERS):
            found[helper] = self._kept(
                f"{helper.name} helper", names, lambda _, helper=helper: self._stopped(helper)
            )
        return found

    def run(self, others: str = "members") -> Mapping[str, Any]:
        """The run of the targets, or with "others" in the members' place that of the null."""
        name = "epochs" if others == "members" else "null_epochs"
        epochs = getattr(self.config, name)

        def compute(checkpoint: Path) -> Mapping[str, Any]:
            # The null's run ends where it is audited last; its rates fall as those of the targets'
            # run.
            last, total = (
                0 if others == "members" else max(epochs),
                self.config.total_epochs or max(epochs),
            )
            model = copy.deepcopy(self.base)
            trained = train_on_chunks(
                model,
                self._learned(others),
                training=self.config.training(total, 20, last=last),
                validation=self.text["nonmembers"].tokens,  # looked at, and decides nothing
                keep=epochs,
                checkpoint=checkpoint,
            )
            found: dict[str, Any] = {"train": trained.train, "validation": trained.validation}
            for epoch in epochs:
                model.load_state_dict(dict(trained.kept[epoch]))
                found |= {f"{epoch}/{kind}": values for kind, values in self._judged(model).items()}
            return found

        return self._kept(f"target on {others}", (*_GENERATOR, "total_epochs", name), compute)

    def private(self, epsilon: float, others: str = "members") -> Mapping[str, Any]:
        """A target trained with DP-SGD on D_G and the members, or on "others" in their place."""
        training = self.config.private_training(epsilon)

        def compute(checkpoint: Path) -> Mapping[str, Any]:
            model = copy.deepcopy(self.base)
            documents = with_start(model, self._learned(others)).tolist()
            fit_language_model(
                model, documents, config=training, progress=False, checkpoint=checkpoint
            )
            return self._judged(model)

        return self._kept(f"DP target on {others}", _GENERATOR, compute, training)

    def targets(self) -> dict[Target, Mapping[str, Any]]:
        """Outputs of each target by kind of example."""
        config = self.config
        found: dict[Target, Mapping[str, Any]] = {}
        audited = (("members", "", config.epochs), ("others", "null, ", config.null_epochs))
        for others, start, epochs in audited:
            run = self.run(others)
            for epoch in epochs:
                name = f"{start}{epoch} epoch{'s' if epoch > 1 else ''}"
                target = Target(name, "null" if start else "trained", epoch)
                found[target] = {part: run[f"{epoch}/{part}"] for part in KINDS}
        for epsilon in map(float, config.dp_epsilons):
            name, passes = f"DP, epsilon {epsilon:g}", config.dp_epochs
            found[Target(name, "private", passes, epsilon)] = self.private(epsilon)
            found[Target(f"null, {name}", "null", passes, epsilon)] = self.private(
                epsilon, "others"
            )
        return found

    def trained_on(
        self, rows: IntArray, epochs: int, salt: int
    ) -> Callable[[str, IntArray], FloatArray]:
        """A model trained on these chunks as a target is, and asked of examples by kind and
        number.
        """
        model, total = copy.deepcopy(self.base), self.config.total_epochs
        train_on_chunks(
            model, rows, training=self.config.training(total or epochs, salt, last=epochs)
        )
        return lambda kind, asked: _columns(model, self._examples[kind][asked])

    def pools(self) -> Pools:
        """Everything trained and asked for its losses."""
        targets = self.targets()
        columns = {"train_metric": "members", "test_metric": "nonmembers"}
        means = [
            [said[kind][:, 0].mean() for kind in columns.values()] for said in targets.values()
        ]
        details = pd.DataFrame(means, columns=list(columns))
        return pools_of(self._examples, targets, self.helpers(), details, self.warnings())

    def warnings(self) -> tuple[str, ...]:
        """Whether the generator repeats its training text, more than other real text does."""
        rows, trained_on = self._examples, self.text["generator"].passages(1)
        return copied_text(
            rows["generated"], trained_on, rows["nonmembers"], length=self.config.tokens
        )

    def key(self, *configs: Any) -> dict[str, Any]:
        """What a stage depends on, for the cache: configurations, text, device and version of
        torch.
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
        found = (
            self.text["members"].tokens,
            self.generated["audit"],
            self.text["nonmembers"].tokens,
        )
        return dict(zip(KINDS, found, strict=True))

    def _judged(self, model: Any) -> dict[str, FloatArray]:
        return {kind: _columns(model, chunks) for kind, chunks in self._examples.items()}

    def _learned(self, others: str) -> IntArray:
        """What a target learns: D_G and a role."""
        return np.concatenate([self.text["generator"].tokens, self.text[others].tokens])

    def _stopped(self, helper: Helper) -> Mapping[str, Any]:
        """A helper trained up to its lowest loss on the last tenth of its chunks."""
        count = self.config.withheld_members
        if helper == SYNTHETIC:
            rows = self.generated["helper"]
        else:  # the first members, where its games leave them out, or other documents
            rows = self.text["members"].tokens[:count] if count else self.text["helper"].tokens
        model = copy.deepcopy(self.base)
        held = max(1, len(rows) // 10)
        training = self.config.training(
            self.config.helper_epochs, 2, patience=self.config.helper_patience
        )
        train_on_chunks(model, rows[:-held], training=training, validation=rows[-held:])
        return self._judged(model)

    def _kept(
        self,
        stage: str,
        names: tuple[str, ...],
        compute: Callable[[Path], Mapping[str, Any]],
        *more: Any,
    ) -> dict[str, Any]:
        """The arrays of a stage, which depends on these settings, and on ``more``."""
        config = {name: getattr(self.config, name) for name in (*_BASE, *names)}
        key = {"text stage": stage, "code": code_tag(__name__), **self.key(config, *more)}
        # optimizer and schedule of an earlier stage refer to each other, and hold its moments
        gc.collect()
        return pools_cache().resumed(key, compute)


def _columns(model: Any, chunks: IntArray) -> FloatArray:
    """Mean loss of each chunk, then the loss of each of its tokens, shape (n, 1 + length)."""
    losses = token_losses(model, chunks)
    return np.column_stack([losses.mean(axis=1), losses])
