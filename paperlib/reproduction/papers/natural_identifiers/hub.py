"""Models of the hub on corpora that they were trained on, and on others: the paper's own
setting.
"""

import json
import math
from collections import Counter
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
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least
from paperlib.data.text.corpora import corpus_files
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import KINDS, PAPER_KINDS, generate_identifiers
from paperlib.io.files import config_hash
from paperlib.models.language import load_language_model, model_stamp, parameter_count
from paperlib.report import progress
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.kept import cached_arrays
from paperlib.reproduction.papers.natural_identifiers.benchmark import auc_differences, judged
from paperlib.reproduction.papers.natural_identifiers.inference import FEATURES, p_value_rows
from paperlib.reproduction.papers.natural_identifiers.planted import (
    PAPER_ATTACKS,
    TOKENS,
    cached_scores,
)
from paperlib.reproduction.papers.verdict.evidence import Level

GENERATED_PREFIX = "generated"
"""As a prefix for ReCaLL: a random MD5 and a random SHA-1, which nothing was trained on."""
PLACES = ("large", "medium", "small", "one pass")
"""Places of the paper's four models, in the order of a list of them: three sizes of Pythia, and
OLMo.
"""
_OLMO = "olmo-7b-0424-hf"  # the name on the hub of what the paper calls OLMo-7B
_TOGETHER = 200  # identifiers that are scored and stored together
_FEWEST_TO_TEST = 5  # identifiers of a set
_WHOLE = ": all"  # ends the name of a corpus as a whole
_FEWEST_TO_FILTER = 20  # identifiers of a kind that teach the blind classifiers


@dataclass(frozen=True)
class HubModel:
    """A model with a corpus that it was trained on, or may have been, and one that it was not."""

    name: str  # on the hub, or a folder
    trained: str  # corpus, as for `open_corpus`
    held_out: str = ""  # corpus; empty for none

    @classmethod
    def of(cls, entry: str, corpus: str = "") -> "HubModel":
        """The model that a text names: NAME, NAME=TRAINED or NAME=TRAINED,HELD_OUT.

        Raises:
            ValueError: A text of another form, or a model whose corpus is not known and not given.
        """
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
    #: for ReCaLL: a text that was not trained on, or "generated"; empty leaves it out
    prefix: str = ""
    #: leave out what blind classifiers tell from generated ones (Appendix A)
    blind_filter: bool = False
    seed: int = 0  #: of the sample and the alternatives

    def __post_init__(self) -> None:
        check_at_least(1, per_subset=self.per_subset, generated=self.generated)

    @property
    def attacks(self) -> tuple[str, ...]:
        """The paper's attacks, and the number of tokens last."""
        if self.prefix:
            return (*PAPER_ATTACKS, TOKENS)
        return (*(name for name in PAPER_ATTACKS if not name.startswith("recall")), TOKENS)

    @property
    def prefix_text(self) -> str:
        """The text of the prefix; generated ones have a seed that no alternative has."""
        if self.prefix != GENERATED_PREFIX:
            return self.prefix
        lines: list[str] = []
        for kind in ("md5", "sha1"):
            (value,) = generate_identifiers(KINDS[kind].example, 1, self.seed + 7)
            lines.append(f"{value}\n")
        return "".join(lines)


@dataclass(frozen=True, eq=False)
class HubScores:
    """Scores of the identifiers of a model's corpora."""

    model: HubModel
    values: FloatArray  # (n, 1 + c, attacks), higher: member; the identifier comes first
    attacks: tuple[str, ...]
    subsets: np.ndarray  # corpus and subset of each identifier, shape (n,)
    # in the corpus that the model was trained on, 0 for held-out ones, shape (n,)
    occurrences: np.ndarray
    # parts of the corpora that were not read, or with a loss: reason, number, example
    skipped: pd.DataFrame

    @cached_property
    def parameters(self) -> int:
        """Parameters of the model."""
        return parameter_count(self.model.name)

    def sets(self) -> dict[str, np.ndarray]:
        """By name, a mask of the identifiers, shape (n,), of each corpus as a whole, and then of
        each of its subsets.
        """
        whole = np.array([name.partition(": ")[0] for name in self.subsets])
        sets = {f"{name}{_WHOLE}": whole == name for name in dict.fromkeys(whole.tolist())}
        return sets | {name: self.subsets == name for name in sorted(set(self.subsets.tolist()))}

    def groups(self) -> dict[str, np.ndarray]:
        """By the name of each group that has any, a mask of its identifiers, shape (n,): held out,
        trained, and of the latter those that occur once.
        """
        times = self.occurrences
        groups = {"held out": times == 0, "trained": times > 0, "trained, occurs once": times == 1}
        return {name: members for name, members in groups.items() if members.any()}

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
        """The paper's dataset inference on each large enough set of identifiers.

        Args:
            set_size: Identifiers that are drawn from a set.
            trees: Boosting rounds of the classifier.
            seed: Of the draw, the folds and ties.

        Returns:
            A row for each set and schedule: model, set, held_out (whether no identifier drawn was
                trained on), and the columns of `p_value_rows`.
        """
        values = self.features().values
        rows: list[dict[str, Any]] = []
        for name, members in progress(list(self._large_enough(set_size).items()), label="sets"):
            order = np.random.default_rng(seed).permutation(np.flatnonzero(members))
            drawn = order[:set_size]  # as many of larger sets
            held_out = bool((self.occurrences[drawn] == 0).all())
            tested = {"model": self.model.name, "set": name, "held_out": held_out}
            for row in p_value_rows(values[drawn], trees=trees, seed=seed):
                rows.append(tested | row)
        return pd.DataFrame(rows)

    def left_out(self, *, set_size: int = 100) -> pd.DataFrame:
        """The sets that `inference` does not test, as they have too few identifiers: columns model,
        set, identifiers and needed.
        """
        tested = self._large_enough(set_size)
        rows = [
            {
                "model": self.model.name,
                "set": name,
                "identifiers": int(members.sum()),
                "needed": _FEWEST_TO_TEST if name.endswith(_WHOLE) else set_size,
            }
            for name, members in self.sets().items()
            if name not in tested
        ]
        return pd.DataFrame(rows, columns=["model", "set", "identifiers", "needed"])

    def _large_enough(self, set_size: int) -> dict[str, np.ndarray]:
        """The `sets` that are tested: a corpus as a whole with what it has, a subset only if it
        gives a set of this size.
        """
        large: dict[str, np.ndarray] = {}
        for name, members in self.sets().items():
            needed = _FEWEST_TO_TEST if name.endswith(_WHOLE) else max(set_size, _FEWEST_TO_TEST)
            if members.sum() >= needed:
                large[name] = members
        return large


def hub_scores(model: HubModel, config: HubConfig) -> HubScores:
    """Score the identifiers of a model's corpora; each corpus is read, and each model asked, once,
    and the results are kept in the user's cache.
    """
    log = ReadLog()
    identifiers, occurrences = _labelled_identifiers(model, config, log)
    values = _scored(model, config, identifiers)
    subsets = np.array([identifier.subset for identifier in identifiers])
    return HubScores(
        model, values, config.attacks, subsets, np.array(occurrences), skipped_table(log)
    )


def _labelled_identifiers(
    model: HubModel, config: HubConfig, log: ReadLog
) -> tuple[list[FoundIdentifier], list[int]]:
    """A sample of the identifiers of each corpus, and how often each occurs in the corpus that the
    model was trained on: 0 for those of the held-out corpus.

    The name of the corpus is put before that of the subset; what was not read goes to the log.
    """
    seen: set[str] = set()
    identifiers: list[FoundIdentifier] = []
    occurrences: list[int] = []
    for corpus in filter(None, (model.trained, model.held_out)):
        of_corpus = _identifiers(corpus, log)
        # An identifier of the held-out corpus that the other one has too is no non-member, and is
        # left out.
        unseen = [identifier for identifier in of_corpus if identifier.value.lower() not in seen]
        seen |= {identifier.value.lower() for identifier in of_corpus}
        for identifier in _sampled(unseen, config):
            subset = f"{Path(corpus).name}: {identifier.subset}"
            identifiers.append(replace(identifier, subset=subset))
            occurrences.append(identifier.occurrences if corpus == model.trained else 0)
    return identifiers, occurrences


def _scored(
    model: HubModel, config: HubConfig, identifiers: Sequence[FoundIdentifier]
) -> FloatArray:
    """Scores of identifiers and alternatives, shape (n, 1 + c, attacks).

    They are computed and stored in pieces, so that a long run goes on where it was, and memory
    stays bounded.
    """
    load = cache(partial(load_language_model, model.name, dtype=config.dtype))
    stage = {
        "stage": "hub scores",
        "model": model_stamp(model.name),
        "dtype": config.dtype,
        "prefix": config.prefix_text,
    }
    starts = range(0, len(identifiers), _TOGETHER)
    pieces = [identifiers[start : start + _TOGETHER] for start in starts]
    scores: list[FloatArray] = []
    for piece in progress(pieces, label="identifiers"):
        scores.append(
            cached_scores(
                {**stage, "identifiers": config_hash({"identifiers": piece})},
                load,
                piece,
                attacks=config.attacks,
                prefix=config.prefix_text,
                code=__name__,
                generated=config.generated,
                seed=config.seed,
            )
        )
    return np.concatenate(scores)


def _identifiers(corpus: str, log: ReadLog) -> list[FoundIdentifier]:
    """Every identifier of the paper's kinds in a corpus, stored; what was skipped goes to the
    log.
    """

    def compute() -> Mapping[str, Any]:
        """Read the corpus: identifiers, and what was skipped, as texts of JSON in arrays."""
        corpus_log = ReadLog()
        identifiers = corpus_identifiers(open_corpus(corpus, log=corpus_log), kinds=PAPER_KINDS)
        texts = [json.dumps(asdict(identifier)) for identifier in identifiers]
        return {
            "identifiers": np.array(texts),
            "skipped": np.array(json.dumps([dict(corpus_log.counts), corpus_log.examples])),
        }

    files: list[tuple[str, int, int, str]] = []
    for file in corpus_files(corpus):
        status = file.path.stat()
        files.append((str(file.path), status.st_size, status.st_mtime_ns, file.subset))
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


def _sampled(identifiers: Sequence[FoundIdentifier], config: HubConfig) -> list[FoundIdentifier]:
    """A random sample of each subset, without look-alikes where these are to be left out."""
    order = np.random.default_rng(config.seed).permutation(len(identifiers))  # of their numbers
    by_subset: dict[str, list[FoundIdentifier]] = {}
    for index in order:
        by_subset.setdefault(identifiers[index].subset, []).append(identifiers[index])
    # The filter leaves some out: more are drawn before it.
    drawn = math.ceil(config.per_subset * (1.2 if config.blind_filter else 1.0))
    sampled: list[FoundIdentifier] = []
    for of_subset in by_subset.values():
        sampled += of_subset[:drawn]
    kinds = pd.Series([identifier.kind for identifier in sampled]).value_counts()
    if config.blind_filter and kinds.max() >= _FEWEST_TO_FILTER:
        sampled = _filtered(sampled, config)
    return _first_of_each_subset(sampled, config.per_subset)


def _first_of_each_subset(
    identifiers: Sequence[FoundIdentifier], most: int
) -> list[FoundIdentifier]:
    """At most so many identifiers of each subset, in their order."""
    counts = Counter[str]()
    first: list[FoundIdentifier] = []
    for identifier in identifiers:
        counts[identifier.subset] += 1
        if counts[identifier.subset] <= most:
            first.append(identifier)
    return first


def _filtered(identifiers: Sequence[FoundIdentifier], config: HubConfig) -> list[FoundIdentifier]:
    """`without_look_alikes`, stored: models that are asked about one corpus share its
    identifiers.
    """
    options: dict[str, Any] = {"generated": config.generated, "seed": config.seed}

    def compute() -> Mapping[str, Any]:
        """Which identifiers the filter leaves, as arrays to be cached."""
        values = {identifier.value for identifier in without_look_alikes(identifiers, **options)}
        return {"stays": np.array([identifier.value in values for identifier in identifiers])}

    hashed = config_hash({"identifiers": identifiers})
    stage = {"stage": "blind filter", "identifiers": hashed, **options}
    stays = cached_arrays(stage, compute, code=__name__)["stays"]
    return [identifier for identifier, stay in zip(identifiers, stays, strict=True) if stay]


def hub_table(
    scores: Sequence[HubScores], *, draws: int = 200, confidence: float = 0.99
) -> pd.DataFrame:
    """The paper's four models at the places of `PLACES`, as `benchmark` has its own; shares.

    Args:
        scores: Models in the order of `PLACES`; those without held-out identifiers or without
            ReCaLL do not count.
        draws: Of the bootstraps behind intervals and errors.
        confidence: Of each interval, in (0, 1).

    Returns:
        Empty unless there are four, of which "large" and "small" have identifiers of the same
            subsets.
    """
    attacks = 1 + len(PAPER_ATTACKS)
    complete = [
        model for model in scores if "held out" in model.groups() and len(model.attacks) == attacks
    ]
    if len(complete) != len(PLACES):
        return pd.DataFrame()
    large, _, small, _ = complete
    if list(large.subsets) != list(small.subsets):
        return pd.DataFrame()
    options = {"draws": draws, "confidence": confidence}
    tables: list[pd.DataFrame] = []
    for name, model in zip(PLACES, complete, strict=True):
        table = judged(name, model.values, model.groups(), **options)
        tables.append(table.assign(parameters=model.parameters))
    pair = {"large": large.values, "small": small.values}
    tables.append(auc_differences(pair, large.groups(), **options))
    return pd.concat(tables, ignore_index=True)


def hub_scale(scores: Sequence[HubScores], config: HubConfig) -> tuple[Level, str]:
    """Level of a run on these models, and its facts in words: "paper's scale" is all four of the
    paper's models with its settings, anything less is "paper's data".
    """
    counts = ", ".join(f"{len(model.values)} identifiers of {model.model.name}" for model in scores)
    facts = f"{counts}, {config.generated} alternatives each"
    return "paper's scale" if _at_the_papers_scale(scores, config) else "paper's data", facts


def _at_the_papers_scale(scores: Sequence[HubScores], config: HubConfig) -> bool:
    """Whether these are the paper's models, each with held-out identifiers, and its settings."""
    printed = paper_table("nid_settings").query("component in ['models', 'gids']")
    settings = printed.set_index("setting")["value"].astype(str)
    printed_models = settings[settings.index == "model"]
    pythias = sorted(name.lower() for name in printed_models if name.startswith("Pythia"))
    names = [Path(model.model.name).name.lower() for model in scores]
    if sorted(names[:3]) != pythias or names[3:] != [_OLMO]:
        return False
    if config.generated != int(settings["gids_per_nid"]) or not config.prefix:
        return False
    return all((model.occurrences == 0).any() for model in scores)
