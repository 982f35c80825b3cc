"""PANORAMIA on text: its pools, its audits, and the curve of over-training."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.learned.loss_summaries import LossSummaries
from paperlib.attacks.learned.text import TextClassifier
from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import Pools, cached_pools
from paperlib.core.checks import check_in
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.panoramia.text.bench import TextBench
from paperlib.reproduction.papers.panoramia.text.data import TextConfig

text_bench = lru_cache(maxsize=2)(TextBench)
"""The stages of a configuration, kept while the program runs."""


def text_pools(config: TextConfig) -> Pools:
    """Members, generated chunks and real non-members (C.2); kept on disk.

    Outputs of models are the mean loss of a chunk, then the loss of each token, nats. Raises
    ValueError where the text has too few chunks.
    """
    bench = text_bench(config)
    private = [config.private_training(epsilon) for epsilon in config.dp_epsilons]
    return cached_pools(bench.key(config, *private), bench.pools, code=TextBench.__module__)


def text_audit(
    size: int,
    seed: int = 0,
    *,
    tokens: int = 16,
    judged: float = 0.5,
    chosen: float = 0.25,
    reader: str = "",
    reader_epochs: int = TextClassifier.epochs,
    precision: str = "float32",
    **options: Any,
) -> AuditConfig:
    """Settings of audits of text, whose attacks are one on losses by token and a text classifier.

    Args:
        size: Number of members, and of generated chunks.
        seed: Of the games; an audit counts its games from 1,000 times this, so that audits of
            other seeds play none of the same.
        tokens: Of a chunk.
        judged: Share of ``size`` that is shown in tests, in (0, 1).
        chosen: Share of the others on which attacks are chosen, in (0, 1); the rest trains them.
        reader: Pretrained model that the classifier starts from; empty for none.
        reader_epochs: Passes of the classifier's training.
        precision: Of the classifier's training, "float32" or "bfloat16".
        options: Further fields of `AuditConfig`, which go before these.

    Raises:
        ValueError: Shares out of range.
    """
    check_in("(0, 1)", "judged", judged)
    check_in("(0, 1)", "chosen", chosen)
    test = round(size * judged)
    # Even, as half of the part are members; 1e-9 keeps a product such as 0.3 * 10 from rounding to
    # just below a whole number.
    validation = max(4, 2 * int((size - test) * chosen / 2 + 1e-9))
    network = TextClassifier(
        tokens=tokens, pretrained=reader, epochs=reader_epochs, precision=precision
    )
    attacks = (LossSummaries(tokens=tokens), network)
    return AuditConfig(
        train=2 * ((size - test - validation) // 2),
        validation=validation,
        test=test,
        seed=1000 * seed,
        **{"attacks": attacks, "repetitions": 3, **options},
    )


def paper_differences(config: TextConfig, audit: AuditConfig) -> list[str]:
    """Names of the paper's settings (appendix C.2) that this run has otherwise, ours or the
    paper's; empty where all are the same.
    """
    ours: dict[tuple[str, str], object] = {
        ("data", "chunk_length"): config.tokens,
        ("data", "chunks_per_document"): config.chunks_per_document,
        ("data", "d_f_size"): config.generator + config.members,
        ("target_gpt2", "epochs_total"): config.total_epochs or config.epochs[-1],
        ("generator", "prompt_length"): config.prompt,
        ("generator", "top_k"): config.top_k,
        ("generator", "n_synthetic_for_helper"): config.for_helper,
        ("generator", "n_synthetic_for_audit"): config.generated,
        ("helper", "epochs"): config.helper_epochs,
        ("mia_and_baseline", "n_train"): audit.train,
        ("mia_and_baseline", "n_validation"): audit.validation,
        ("mia_and_baseline", "n_test"): audit.test,
        ("mia_and_baseline", "n_outer_seeds"): audit.repetitions,
        ("mia_and_baseline", "n_inner_seeds"): audit.restarts,
    }
    printed = paper_table("panoramia_settings").query("section == 'C.2' and modality == 'text'")
    theirs = printed.set_index(["component", "setting"])["value"]
    audited = theirs["target_gpt2", "audited_epoch"].astype(int)
    same = {
        "text": config.text == "wikitext103",
        "base": Path(config.base).name == "gpt2",
        "by_chunk": config.by_chunk,
        "epochs": config.epochs == tuple(audited),
        "reader": "gpt2)" in audit.attacks[-1].name,
    }
    different = [name for name, is_same in same.items() if not is_same]
    for (component, setting), value in ours.items():
        if float(theirs[component, setting]) != value:
            different.append(setting)
    return different


def loss_curves(config: TextConfig) -> pd.DataFrame:
    """Training and validation loss of the targets' run by epoch: Figure 8."""
    run = text_bench(config).run("members")
    epochs = np.arange(1, len(run["train"]) + 1)
    return pd.DataFrame({"epoch": epochs, "train": run["train"], "validation": run["validation"]})
