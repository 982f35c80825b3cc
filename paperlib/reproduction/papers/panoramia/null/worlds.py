"""Worlds for the experiment on helpers that learn real data out of fold: tables, images and
text.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from paperlib.attacks.learned import Attack, BoostedTrees
from paperlib.attacks.learned.images import ImageStack
from paperlib.attacks.learned.loss_summaries import LossSummaries
from paperlib.audits.panoramia.folds import ModelByKind
from paperlib.audits.panoramia.game import AuditConfig, largest_test
from paperlib.audits.panoramia.image_models import answers
from paperlib.audits.panoramia.pools import REAL, Pools, add_helpers, pools_cache
from paperlib.audits.panoramia.table_models import Learning, table_losses, train
from paperlib.core import FloatArray, IntArray
from paperlib.core.checks import check_at_least, check_choice
from paperlib.generators.image_quality import FakeFilter
from paperlib.generators.images import FlowConfig
from paperlib.io.sources import code_tag
from paperlib.report import used_data
from paperlib.reproduction.data.text.sets import text_documents
from paperlib.reproduction.papers.panoramia.images.data import ImageSplit
from paperlib.reproduction.papers.panoramia.images.models import parse_targets, train_target
from paperlib.reproduction.papers.panoramia.images.pools import (
    ImageConfig,
    ImageHelper,
    generated_images,
    image_pools,
    load_split,
)
from paperlib.reproduction.papers.panoramia.null.experiment import World
from paperlib.reproduction.papers.panoramia.tables.pools import (
    PartSizes,
    TabularConfig,
    tabular_pools,
    tabular_rows,
)
from paperlib.reproduction.papers.panoramia.text.bench import TextBench
from paperlib.reproduction.papers.panoramia.text.data import TextConfig
from paperlib.reproduction.papers.panoramia.text.pools import text_bench, text_pools
from paperlib.reproduction.papers.settings import settings_beside

DATA = ("tables", "images", "text")


@dataclass(frozen=True, kw_only=True)
class WorldSizes:
    """How large worlds of one kind of data are, and how long their models learn."""

    generator: int  # real examples of D_G
    learned: int  # members that helpers and attacks may learn
    judged: int  # members that tests show
    epochs: int  # of targets and of the helpers beside them
    source: str = ""  # name of the data set; empty takes the documentation as text
    steps: int = 0  # of the generator of images
    public: int = 0  # chunks that the small base model of text is trained on

    def __post_init__(self) -> None:
        check_at_least(1, generator=self.generator, epochs=self.epochs)
        check_at_least(40, learned=self.learned, judged=self.judged)

    @property
    def members(self) -> int:
        """Number of members."""
        return self.learned + self.judged

    def games(self, count: int) -> dict[str, Any]:
        """Fields of `AuditConfig` for ``count`` games that judge as many examples as fit.

        Of the members that attacks may learn, three quarters train them and a quarter chooses them.
        """
        # Parts hold as many generated examples as members, hence twice the number of members.
        return {
            "train": 2 * (self.learned * 6 // 8),
            "validation": 2 * (self.learned * 2 // 8),
            "test": largest_test(self.judged),
            "restarts": 1,
            "repetitions": count,
            "searches": ("anytime",),
        }


_SETTINGS = settings_beside(__file__)
SIZES = {
    size: {data: WorldSizes(**settings) for data, settings in kinds.items()}
    for size, kinds in _SETTINGS["sizes"].items()
}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Experiment:
    """What is different in the worlds of rows, of images and of text; see `World`."""

    attack: Attack
    pools: Pools  # of one target and one null target
    # From the numbers of members, shape (k,), and a seed to a model that learned the generator's
    # training data and these members as the target learns its examples.
    train: Callable[[IntArray, int], ModelByKind]
    depends_on: Any  # what pools and `train` depend on, as values of JSON for keys of the cache
    groups: IntArray | None = None  # members of one number go into one fold; None: each by itself


def world_of(data: str, sizes: WorldSizes, *, games: int, seed: int) -> World:
    """A world of one kind of data, with one target and one null target.

    Args:
        data: "tables", "images" or "text".
        sizes: Of its parts, and how long its models learn.
        games: Number of games in each audit.
        seed: Of the world; worlds of other seeds share no draw.

    Raises:
        ValueError: An unknown kind of data.
    """
    check_choice("data", data, DATA)
    experiment = {"tables": _table, "images": _image, "text": _text}[data](sizes, seed)
    audit = AuditConfig(**sizes.games(games), attacks=(experiment.attack,), seed=1000 * seed)
    return World(
        pools=experiment.pools,
        train=experiment.train,
        judged=sizes.judged,
        audit=audit,
        depends_on=experiment.depends_on,
        code=__name__,
        groups=experiment.groups,
        seed=1000 * seed,
    )


def _table_config(sizes: WorldSizes, seed: int) -> TabularConfig:
    """Rows of a data set, with an MLP as the target and another as the null target."""
    return TabularConfig(
        dataset=sizes.source,
        label="visits" if sizes.source == "randhie" else "income",
        sizes=PartSizes(
            generator=sizes.generator, members=sizes.members, null=sizes.members, nonmembers=100
        ),
        epochs=(sizes.epochs,),
        dp_epsilons=(),
        learning=Learning(hidden=(64, 64)),
        helper_rows=sizes.members,
        seed=seed,
    )


def _table(sizes: WorldSizes, seed: int) -> _Experiment:
    """The experiment on rows of a table, in which the attack is boosted trees."""
    config = _table_config(sizes, seed)
    rows = tabular_rows(config)
    used_data(config.dataset, rows.table.rows.to_csv(index=False).encode())
    encoder = rows.encoder
    by_kind = {**rows.parts, "generated": rows.generated}

    def learn(members: IntArray, model_seed: int) -> ModelByKind:
        """An MLP trained on the generator's training rows and on the members of these numbers. It
        gives the losses of rows by their kind and their numbers.
        """
        learned = pd.concat(
            [by_kind["generator"], by_kind["members"].iloc[members]], ignore_index=True
        )
        plan = config.learning.plain(encoder, sizes.epochs, model_seed)
        models = train(encoder, learned, [plan])
        return lambda kind, numbers: table_losses(encoder, models, by_kind[kind].iloc[numbers])

    return _Experiment(
        attack=BoostedTrees(leaves=8, learning_rate=0.08, rounds=60, smallest_leaf=10),
        pools=tabular_pools(config),
        train=learn,
        depends_on={"table": config, "rows": rows.table.sha256},
    )


def _image_config(sizes: WorldSizes, seed: int) -> ImageConfig:
    """Images of a data set, with a small CNN as the target and another as the null target.

    Generator, helpers and targets have seeds from 1000 times ``seed`` on.
    """
    first = 1000 * seed
    settings = _SETTINGS["images"][sizes.source]
    helper: dict[str, Any] = {"width": 16, "epochs": sizes.epochs, "learning_rate": 0.002}
    names = [f"cnn@16:{sizes.epochs}", f"null cnn@16:{sizes.epochs}"]
    targets = parse_targets(names, batch_size=64, learning_rate=0.002, seed=first)
    return ImageConfig(
        split=ImageSplit(
            dataset=sizes.source,
            generator=sizes.generator,
            members=sizes.members,
            nonmembers=100,
            others=sizes.members,
            seed=first,
            **settings["split"],
        ),
        generator=FlowConfig(steps=sizes.steps, seed=first, **settings["generator"]),
        fakes=FakeFilter(threshold=settings["threshold"]),
        generated=sizes.members,
        helper_images=sizes.members,
        labels=settings["labels"],
        labeler=ImageHelper(name="labeler", data="real", seed=first + 2, **helper),
        helpers=tuple(
            ImageHelper(name=name, data=name, seed=first + 1, **helper)
            for name in ("synthetic", "real")
        ),
        targets=targets,
        seed=first,
    )


def _image(sizes: WorldSizes, seed: int) -> _Experiment:
    """The experiment on images, in which the attack stacks one network on the images and one on
    the losses.
    """
    config = _image_config(sizes, seed)
    images = load_split(config)
    by_kind = {**images.parts, "generated": generated_images(config, images).audit}
    target, _ = config.targets  # the other is the null target

    def learn(members: IntArray, model_seed: int) -> ModelByKind:
        """A CNN trained on the generator's training images and on the members of these numbers. It
        answers about images by their kind and their numbers.
        """
        of_generator, all_members = by_kind["generator"], by_kind["members"]
        x = np.concatenate([of_generator.x, all_members.x[members]])
        y = np.concatenate([of_generator.y, all_members.y[members]])
        like_target = replace(target, seed=model_seed)
        [module] = train_target(like_target, x, y, images.outputs, [sizes.epochs]).values()

        def answer(kind: str, numbers: IntArray) -> FloatArray:
            return answers(module, by_kind[kind].x[numbers], by_kind[kind].y[numbers])

        return answer

    architecture = _SETTINGS["images"][sizes.source]["attack"]
    return _Experiment(
        attack=ImageStack(architecture=architecture, epochs=8, loss_steps=100),
        pools=image_pools(config),
        train=learn,
        depends_on={"images": config, "data": images.sha256s},
    )


def _text_config(sizes: WorldSizes, seed: int) -> TextConfig:
    """Chunks of text, with a small language model as the target and another as the null target."""
    return TextConfig(
        text=sizes.source or "documentation",
        public=sizes.public,
        generator=sizes.generator,
        members=sizes.members,
        nonmembers=100,
        others=sizes.members,
        generated=sizes.members,
        for_helper=min(2000, sizes.members),
        epochs=(sizes.epochs,),
        null_epochs=(sizes.epochs,),
        dp_epsilons=(),
        seed=seed,
    )


def _text(sizes: WorldSizes, seed: int) -> _Experiment:
    """The experiment on chunks of text, in which the attack learns from summaries of the losses of
    each chunk's tokens.

    Models of the helpers learn for ``sizes.epochs`` passes, after which the target is audited too.
    """
    config = _text_config(sizes, seed)
    bench = text_bench(config)
    used_data(config.text, "\n".join(text_documents(config.text)).encode())

    def learn(members: IntArray, salt: int) -> ModelByKind:
        """A language model trained on the generator's training chunks and on the members of these
        numbers. It gives the losses of chunks by their kind and their numbers; ``salt`` sets its
        seed apart.
        """
        all_members = bench.text["members"].tokens
        chunks = np.concatenate([bench.text["generator"].tokens, all_members[members]])
        return bench.trained_on(chunks, sizes.epochs, salt)

    # A world has the thousand salts from 1000 * seed on. `matched_pools` gives those from 100 and
    # from 200 on to the models of the folds, one to each, so that 900 is free.
    real_helper_salt = 1000 * seed + 900
    return _Experiment(
        attack=LossSummaries(tokens=config.tokens),
        pools=_with_real_helper(bench, learn, real_helper_salt),
        train=learn,
        depends_on=bench.key(config),
        # Chunks of one document go into one fold. Only the first members are dealt to folds: the
        # others are judged, and no helper learns them.
        groups=bench.text["members"].document[: sizes.learned],
    )


def _with_real_helper(
    bench: TextBench, learn: Callable[[IntArray, int], ModelByKind], salt: int
) -> Pools:
    """The pools of text with the helper `REAL`, which they lack: a model that learned the
    generator's training chunks alone.
    """
    pools = text_pools(bench.config)

    def outputs() -> dict[str, FloatArray]:
        """The helper's outputs on the chunks of each kind, shape (n, columns)."""
        no_members = np.empty(0, dtype=np.int64)
        model = learn(no_members, salt)
        return {kind: model(kind, np.arange(len(pool))) for kind, pool in pools.by_kind().items()}

    key = {"stage": "helper on D_G", "world": bench.key(bench.config), "code": code_tag(__name__)}
    real_helper = {REAL: pools_cache().get(key, outputs)}
    return add_helpers(pools, real_helper, learned=0, about=key)
