"""PANORAMIA on text: its pools, its audits, and the curve of over-training."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.learned.loss_summaries import LossSummaries
from paperlib.attacks.learned.text import TextClassifier
from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.pools import Helper, Pools, cached_pools, part_key
from paperlib.core import check_in
from paperlib.papers.panoramia.text.bench import TextBench
from paperlib.papers.panoramia.text.config import TextConfig

text_bench = lru_cache(maxsize=2)(TextBench)
"""The stages of a configuration, kept while the program runs."""


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
    bench, private = text_bench(config), [config.private_training(one) for one in config.dp_epsilons]
    return cached_pools(bench.key(config, *private), bench.pools, code=TextBench.__module__)


def with_helpers(pools: Pools, helpers: Sequence[Helper]) -> Pools:
    """Pools in which audits see these helpers alone, in this order.

    Raises:
        ValueError: A helper that these pools do not have.
    """
    if unknown := [helper.name for helper in helpers if helper not in pools.helpers]:
        raise ValueError(
            f"helpers: expected some of {', '.join(pools.helper_names)}, got {', '.join(unknown)}"
        )

    parts = {
        kind: replace(pool, helpers={helper.name: pool.helpers[helper.name] for helper in helpers})
        for kind, pool in pools.by_kind().items()
    }
    return replace(pools, **parts, helpers=tuple(helpers), key=part_key(pools, helpers=list(helpers)))


def text_audit(
    size: int,
    seed: int = 0,
    *,
    tokens: int = 16,
    judged: float = 0.5,
    chosen: float = 0.25,
    reader: str = "",
    **options: Any,
) -> AuditConfig:
    """Settings of audits of text: some examples are judged; of the others some are for choosing.

    Args:
        size: Number of examples of both kinds; the pools need half of it and a little more of each.
        seed: Seed of the run, 0 or more; its first game has 1000 times this.
        tokens: Tokens in a chunk.
        judged: Share of the examples that is judged, in (0, 1).
        chosen: Share of the others on which attacks are chosen, in (0, 1).
        reader: Language model that attacks read the tokens with, such as "gpt2"; empty takes a small network.
        options: Other attributes of `AuditConfig`.

    >>> config = text_audit(1600)
    >>> config.train, config.validation, config.test
    (600, 200, 800)
    """
    check_in("(0, 1)", "judged", judged)
    check_in("(0, 1)", "chosen", chosen)
    test = round(size * judged)
    validation = 2 * int((size - test) * chosen / 2 + 1e-9)
    attacks = (LossSummaries(tokens=tokens), TextClassifier(tokens=tokens, pretrained=reader))
    return AuditConfig(
        train=2 * ((size - test - validation) // 2),
        validation=validation,
        test=test,
        seed=1000 * seed,
        **{"attacks": attacks, "repetitions": 3, **options},
    )


def loss_curves(config: TextConfig) -> pd.DataFrame:
    """Training and validation loss of the targets' run over its epochs: Figure 8.

    Returns:
        Columns epoch, train, validation; nats per token.
    """
    run = text_bench(config).run("members")
    epochs = np.arange(1, len(run["train"]) + 1)
    return pd.DataFrame({"epoch": epochs, "train": run["train"], "validation": run["validation"]})
