"""Models of the hub on corpora that they were trained on, and on others: the paper's own
setting.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.candidates import CandidateScores
from paperlib.audits.language.corpus import (
    FoundIdentifier,
    corpus_identifiers,
    open_corpus,
    skipped_table,
)
from paperlib.audits.language.language_model import without_look_alikes
from paperlib.core import FloatArray, check_at_least
from paperlib.data.text.corpora import corpus_files
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import KINDS, PAPER_KINDS, generate_identifiers
from paperlib.io import config_hash
from paperlib.models.language import load_language_model, model_stamp, parameter_count
from paperlib.papers.kept import cached_arrays
from paperlib.papers.natural_identifiers.benchmark import auc_differences, judged
from paperlib.papers.natural_identifiers.inference import FEATURES, p_value_rows
from paperlib.papers.natural_identifiers.planted import PAPER_ATTACKS, TOKENS, cached_scores
from paperlib.papers.verdict.evidence import Level
from paperlib.report import paper_table, progress

GENERATED_PREFIX = "generated"
"""As a prefix for ReCaLL: a random MD5 and a random SHA-1, which nothing was trained on."""
PLACES = ("large", "medium", "small", "one pass")
"""Places of the paper's four models, in the order of a list of them: three sizes of Pythia, and
OLMo.
"""
_OLMO = "olmo-7b-0424-hf"  # the name on the hub of what the paper calls OLMo-7B
_TOGETHER = 200  # identifiers that are scored and stored together
_FEWEST_TO_FILTER = 20  # identifiers of a kind that teach the blind classifiers


@dataclass(frozen=True)
class HubModel:
    """A model with a corpus that it was trained on, or may have been, and one that it was not."""

    name: str  # on the hub, or a folder
    trained: str  # corpus, as for `open_corpus`
    held_out: str = ""  # corpus; empty for none

    @classmethod
    def of(cls, entry: str, corpus: str = "") -> "HubModel":
        """The model that a text names: NAME, NAME=TRAINED or NAME=TRAINED,HELD_OUT."""
        name, _, corpora = entry.partition("=")
        trained, _, held_out = (corpora or corpus).partition(",")
        if not name or not trained:
            raise ValueError(
                "hub_models: expected NAME=CORPUS or NAME=TRAINED,HELD_OUT, or NAME with corpus "
                f"given, got {entry!r} and corpus {corpus!r}"
            )
        return cls(name, trained, held_out)


@dataclass(frozen=True, kw_only=True)
class HubConfig:
    """How identifiers are chosen and scored."""

    dtype: str = "auto"  #: number format, as for `load_language_model`
    per_subset: int = 1_000  #: most identifiers of each subset, a random sample
    generated: int = 127  #: alternatives per identifier
    prefix: str = (
        ""  #: for ReCaLL: a text that was not trained on, or "generated"; empty leaves it out
    )
    blind_filter: bool = (
        False  #: leave out what blind classifiers tell from generated ones (Appendix A)
    )
    seed: int = 0  #: of the sample and the alternatives

    def __post_init__(self) -> None:
        check_at_least(1, per_subset=self.per_subset, generated=self.generated)

    @property
    def attacks(self) -> tuple[str, ...]:
        """The paper's attacks, and the number of tokens last."""
        attacks = (one for one in PAPER_ATTACKS if self.prefix or not one.startswith("recall"))
        return (*attacks, TOKENS)

    @property
    def prefix_text(self) -> str:
        if self.prefix != GENERATED_PREFIX:
            return self.prefix
        examples = (KINDS[kind].example for kind in ("md5", "sha1"))
        return "".join(f"{generate_identifiers(one, 1, self.seed + 7)[0]}\n" for one in examples)


@dataclass(frozen=True, eq=False)
class HubScores:
    """Scores of the identifiers of a model's corpora."""

    model: HubModel
    values: FloatArray  # (n, 1 + c, attacks), higher: member; the identifier comes first
    attacks: tuple[str, ...]
    subsets: np.ndarray  # corpus and subset of each identifier, shape (n,)
    occurrences: (
        np.ndarray
    )  # in the corpus that the model was trained on, 0 for held-out ones, shape (n,)
    skipped: (
        pd.DataFrame
    )  # parts of the corpora that were not read, or with a loss: reason, number, example

    @cached_property
    def parameters(self) -> int:
        return parameter_count(self.model.name)

    def sets(self) -> dict[str, np.ndarray]:
        whole = np.array([name.partition(": ")[0] for name in self.subsets])
        sets = {f"{name}: all": whole == name for name in dict.fromkeys(whole.tolist())}
        return sets | {name: self.subsets == name for name in sorted(set(self.subsets.tolist()))}

    def groups(self) -> dict[str, np.ndarray]:
        """Which identifiers the model was trained on, how often they occur, and which are held
        out.
        """
        times = self.occurrences
        groups = {"held out": times == 0, "trained": times > 0, "trained, occurs once": times == 1}
        return {name: here for name, here in groups.items() if here.any()}

    def features(self) -> CandidateScores:
        """The scores that dataset inference sees, in two groups: held out (0) and trained (1)."""
        names = tuple(name for name in FEATURES if name in self.attacks)
        columns = [self.attacks.index(name) for name in names]
        return CandidateScores(
            self.values[..., columns], names, (self.occurrences > 0).astype(np.int64)
        )

    def quality(self, *, draws: int = 200) -> pd.DataFrame:
        """The paper's benchmark: one row per set of identifiers and score, as `judged`."""
        table = judged(self.model.name, self.values, self.sets(), attacks=self.attacks, draws=draws)
        return table.rename(columns={"group": "subset"})

    def inference(self, *, set_size: int = 100, trees: int = 30, seed: int = 0) -> pd.DataFrame:
        """The paper's dataset inference: p-values of ``set_size`` identifiers of each large enough
        set.
        """
        # Of larger sets as many are drawn; a corpus as a whole is tested with what it has.
        scores, rows = self.features(), list[dict[str, Any]]()
        for name, here in progress(list(self.sets().items()), label="sets"):
            at = np.random.default_rng(seed).permutation(np.flatnonzero(here))[:set_size]
            if len(at) >= 5 and (len(at) == set_size or name.endswith(": all")):
                held_out = bool((self.occurrences[at] == 0).all())
                about = {"model": self.model.name, "set": name, "held_out": held_out}
                rows += [
                    about | one for one in p_value_rows(scores.values[at], trees=trees, seed=seed)
                ]
        return pd.DataFrame(rows)


def hub_scores(model: HubModel, config: HubConfig) -> HubScores:
    """Score the identifiers of a model's corpora; each corpus and each model is read once."""
    # An identifier of the held-out corpus that the other one has too is no non-member, and is left
    # out.
    log, known = ReadLog(), set[str]()
    identifiers, occurrences = list[FoundIdentifier](), list[int]()
    for corpus in filter(None, (model.trained, model.held_out)):
        every = _identifiers(corpus, log)
        chosen = _sampled([one for one in every if one.value.lower() not in known], config)
        known |= {one.value.lower() for one in every}
        identifiers += [replace(one, subset=f"{Path(corpus).name}: {one.subset}") for one in chosen]
        occurrences += [one.occurrences if corpus == model.trained else 0 for one in chosen]
    load = cache(partial(load_language_model, model.name, dtype=config.dtype))
    stage = {"stage": "hub scores", "model": model_stamp(model.name), "dtype": config.dtype}
    stage["prefix"] = config.prefix_text
    how: dict[str, Any] = {
        "attacks": config.attacks,
        "prefix": config.prefix_text,
        "code": __name__,
    }
    how |= {"generated": config.generated, "seed": config.seed}
    parts = [identifiers[at : at + _TOGETHER] for at in range(0, len(identifiers), _TOGETHER)]
    scores = [  # part by part: a long run goes on where it was, and memory stays bounded
        cached_scores(
            {**stage, "identifiers": config_hash({"identifiers": part})}, load, part, **how
        )
        for part in progress(parts, label="identifiers")
    ]
    subsets, times = np.array([one.subset for one in identifiers]), np.array(occurrences)
    return HubScores(
        model, np.concatenate(scores), config.attacks, subsets, times, skipped_table(log)
    )


def _identifiers(corpus: str, log: ReadLog) -> list[FoundIdentifier]:
    """Every identifier of the paper's kinds in a corpus."""

    def compute() -> Mapping[str, Any]:
        own = ReadLog()
        every = corpus_identifiers(open_corpus(corpus, log=own), kinds=PAPER_KINDS)
        return {
            "identifiers": np.array([json.dumps(asdict(one)) for one in every]),
            "skipped": np.array(json.dumps([dict(own.counts), own.examples])),
        }

    files = [
        (str(one.path), one.path.stat().st_size, one.path.stat().st_mtime_ns, one.subset)
        for one in corpus_files(corpus)
    ]
    stage = {
        "stage": "corpus identifiers",
        "corpus": corpus,
        "files": config_hash({"files": files}),
    }
    read = cached_arrays(stage, compute, code=__name__)
    counts, examples = json.loads(str(read["skipped"]))
    log.counts.update(counts)  # which adds
    log.examples = {**examples, **log.examples}
    return [FoundIdentifier(**json.loads(str(text))) for text in read["identifiers"]]


def _sampled(every: Sequence[FoundIdentifier], config: HubConfig) -> list[FoundIdentifier]:
    """A random sample of each subset, without look-alikes where these are to be left out."""
    rng = np.random.default_rng(config.seed)
    by_subset: dict[str, list[FoundIdentifier]] = {}
    for one in (every[at] for at in rng.permutation(len(every))):
        by_subset.setdefault(one.subset, []).append(one)
    spare = math.ceil(config.per_subset * (1.2 if config.blind_filter else 1.0))
    chosen = [one for part in by_subset.values() for one in part[:spare]]
    kinds = pd.Series([one.kind for one in chosen]).value_counts()
    if config.blind_filter and kinds.max() >= _FEWEST_TO_FILTER:
        chosen = _filtered(chosen, config)
    subsets = pd.Series([one.subset for one in chosen], dtype=object)
    place = subsets.groupby(subsets).cumcount()
    return [one for one, number in zip(chosen, place, strict=True) if number < config.per_subset]


def _filtered(every: Sequence[FoundIdentifier], config: HubConfig) -> list[FoundIdentifier]:
    """`without_look_alikes`, stored: models that are asked about one corpus share its
    identifiers.
    """

    def compute() -> Mapping[str, Any]:
        values = {one.value for one in without_look_alikes(every, **options)}
        return {"stays": np.array([one.value in values for one in every])}

    options: dict[str, Any] = {"generated": config.generated, "seed": config.seed}
    stage = {"stage": "blind filter", "identifiers": config_hash({"identifiers": every}), **options}
    stays = cached_arrays(stage, compute, code=__name__)["stays"]
    return [one for one, stay in zip(every, stays, strict=True) if stay]


def hub_table(
    scores: Sequence[HubScores], *, draws: int = 200, confidence: float = 0.99
) -> pd.DataFrame:
    """The paper's four models at the places of `PLACES` for `benchmark_evidence`; empty if one is
    missing.
    """
    every = 1 + len(PAPER_ATTACKS)
    whole = [one for one in scores if "held out" in one.groups() and len(one.attacks) == every]
    if len(whole) != len(PLACES) or list(whole[0].subsets) != list(whole[2].subsets):
        return pd.DataFrame()
    options = {"draws": draws, "confidence": confidence}
    tables = [
        judged(place, one.values, one.groups(), **options).assign(parameters=one.parameters)
        for place, one in zip(PLACES, whole, strict=True)
    ]
    pair = {"large": whole[0].values, "small": whole[2].values}
    tables.append(auc_differences(pair, whole[0].groups(), **options))
    return pd.concat(tables, ignore_index=True)


def hub_scale(scores: Sequence[HubScores], config: HubConfig) -> tuple[Level, str]:
    """Level and facts of a run on these models: the paper's scale is all four of them, with
    ReCaLL.
    """
    printed = paper_table("nid_settings").query("component in ['models', 'gids']")
    numbers = printed.set_index("setting")["value"].astype(str)
    pythias = sorted(
        name.lower() for name in numbers[numbers.index == "model"] if name.startswith("Pythia")
    )
    names = [Path(one.model.name).name.lower() for one in scores]
    same = sorted(names[:3]) == pythias and names[3:] == [_OLMO]
    same &= config.generated == int(numbers["gids_per_nid"]) and bool(config.prefix)
    same &= all((one.occurrences == 0).any() for one in scores)
    counts = ", ".join(f"{len(one.values)} identifiers of {one.model.name}" for one in scores)
    return (
        "paper's scale" if same else "paper's data"
    ), f"{counts}, {config.generated} alternatives each"
