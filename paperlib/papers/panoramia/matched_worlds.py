"""Worlds for the experiment on helpers that learn real data out of fold: tables, images and text."""

from dataclasses import replace

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.config import AuditConfig
from paperlib.audits.panoramia.folds import Answer
from paperlib.audits.panoramia.image_models import answers
from paperlib.audits.panoramia.table_models import losses, train
from paperlib.core import IntArray
from paperlib.papers.panoramia.images.models import train_target
from paperlib.papers.panoramia.images.pools import ImageConfig, generated_images, image_pools, load_split
from paperlib.papers.panoramia.matched import World
from paperlib.papers.panoramia.tables.pools import TabularConfig, tabular_pools, tabular_rows
from paperlib.papers.panoramia.text.config import TextConfig
from paperlib.papers.panoramia.text.pools import text_bench, text_pools


def table_world(config: TabularConfig, audit: AuditConfig, *, judged: int) -> World:
    """A world of rows; further models learn as the last target without DP.

    Args:
        config: Its targets, one at least; they should learn D_G, too (``joined``).
        audit: Settings of the games.
        judged: Number of members that tests show.
    """
    rows = tabular_rows(config)
    parts = {"members": rows.parts["members"], "generated": rows.generated,
             "nonmembers": rows.parts["nonmembers"]}  # fmt: skip

    def learn(known: int, members: IntArray, seed: int) -> Answer:
        learned = pd.concat(
            [rows.parts["generator"][:known], parts["members"].iloc[members]], ignore_index=True
        )
        plan = config.learning.plain(rows.encoder, config.epochs[-1], seed)
        models = train(rows.encoder, learned, [plan])
        return lambda kind, asked: losses(rows.encoder, models, parts[kind].iloc[asked])

    return World(
        pools=tabular_pools(config),
        train=learn,
        generator=config.sizes.generator,
        judged=judged,
        audit=audit,
        about={"table": config, "rows": rows.table.sha256},
        code=__name__,
        seed=1000 * config.seed,
    )


def image_world(config: ImageConfig, audit: AuditConfig, *, judged: int) -> World:
    """A world of images; further models learn as the last target that is not null."""
    images = load_split(config)
    made = generated_images(config, images)
    parts = {"members": images.parts["members"], "generated": made.audit,
             "nonmembers": images.parts["nonmembers"]}  # fmt: skip
    target = [one for one in config.targets if not one.null][-1]

    def learn(known: int, members: IntArray, seed: int) -> Answer:
        real, own = images.parts["generator"], parts["members"]
        x, y = (
            np.concatenate([real.x[:known], own.x[members]]),
            np.concatenate([real.y[:known], own.y[members]]),
        )
        [module] = train_target(replace(target, seed=seed), x, y, images.outputs, [target.epochs]).values()
        return lambda kind, asked: answers(module, parts[kind].x[asked], parts[kind].y[asked])

    return World(
        pools=image_pools(config),
        train=learn,
        generator=config.split.generator,
        judged=judged,
        audit=audit,
        about={"images": config, "data": images.sha256s},
        code=__name__,
        seed=config.seed,
    )


def text_world(config: TextConfig, audit: AuditConfig, *, judged: int) -> World:
    """A world of chunks; further models learn as the targets' run up to its last audited epoch."""
    bench = text_bench(config)

    def learn(known: int, members: IntArray, seed: int) -> Answer:
        chunks = np.concatenate(
            [bench.text["generator"].tokens[:known], bench.text["members"].tokens[members]]
        )
        return bench.trained_on(chunks, config.epochs[-1], seed)

    return World(
        pools=text_pools(config),
        train=learn,
        generator=config.generator,
        judged=judged,
        audit=audit,
        about=bench.key(config),
        code=__name__,
        seed=1000 * config.seed,
    )
