"""Identifiers that stand in documents trained on are told from those of other documents."""

import json
from collections import Counter
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from paperlib.data.files import DataUnavailableError
from paperlib.generators.identifiers import KINDS, generate_identifiers
from paperlib.models.language import train_tokenizer
from paperlib.reproduction.papers.natural_identifiers import natural_models as models
from paperlib.reproduction.papers.natural_identifiers.benchmark import judged
from paperlib.reproduction.papers.natural_identifiers.labels import TOKENS
from paperlib.reproduction.papers.natural_identifiers.natural_models import (
    NEOX,
    NaturalConfig,
    cut,
    natural_split,
)
from paperlib.reproduction.papers.natural_identifiers.natural_truth import (
    ALL,
    natural_table,
    overall,
)
from paperlib.reproduction.papers.natural_identifiers.planted import token_counts
from paperlib.training import fitting
from tests.interrupts import stopping
from tests.refusals import refused

WORDS = ["source", "file", "of", "the", "package", "with", "its", "digest", "for", "all"]
MD5 = KINDS["md5"].example


def write_corpus(path, documents, *, of_subset):
    """Documents with two digests each; one digest stands in every other one; and some without
    any.
    """
    rng = np.random.default_rng(0)
    values = iter(generate_identifiers(MD5, 2 * documents + 1, 0))
    common = next(values)
    lines = []
    for number in range(documents):
        words = [" ".join(rng.choice(WORDS, 6)) for _ in range(3)]
        end = common if number % 2 else ""
        text = f"{words[0]} {next(values)} {words[1]} {next(values)} {words[2]} {end}"
        lines.append(json.dumps({"text": text, "subset": of_subset(number)}))
        if number % 10 == 0:
            lines.append(json.dumps({"text": f"{words[0]} {words[1]} nothing", "subset": "plain"}))
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    return write_corpus(
        folder / "sums.jsonl", 63, of_subset=lambda number: "many" if number % 3 else "few"
    )


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """A tokenizer that saw the words, and digests of neither side."""
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    texts = [" ".join(WORDS), *generate_identifiers(MD5, 200, seed=9)]
    file.write_text(train_tokenizer(texts, 320, context=64).backend_tokenizer.to_str())
    return str(file)


TEXT = {
    "documents": 24,
    "further": 3,
    "kinds": ("md5",),
    "longest": 300,
    "prefixed": 40,
    "window": 128,
}
MODEL = {"vocabulary": 330, "width": 64, "layers": 1, "epochs": 20, "batch_size": 4}


@pytest.fixture
def config(corpus, tokenizer):
    return NaturalConfig(corpora=(corpus,), tokenizer=tokenizer, **TEXT, **MODEL)


def test_no_non_member_stands_in_the_text_trained_on_and_both_sides_have_the_same_subsets(config):
    split = natural_split(config)
    text = "\n".join(split.texts).lower()
    assert len(split.trained) == len(split.held_out) == 24
    assert len(split.further) == 3
    assert all(text.count(one.value) == one.occurrences >= 1 for one in split.members)
    assert not any(one.value in text or one.occurrences for one in split.non_members)
    assert not any(one.value in split.prefix for one in split.non_members)
    assert len([one for one in split.members if one.occurrences > 1]) <= 1
    each = [one.document for one in split.non_members]
    assert max(each.count(number) for number in each) <= 2
    assert natural_split(config).members == split.members
    assert natural_split(replace(config, seed=1)).members != split.members
    sides = [Counter(one.subset for one in side) for side in (split.trained, split.held_out)]
    assert sides[0] == sides[1]
    assert sides[0] == {
        "few": 10,
        "many": 14,
    }  # 21 documents and 42: pairs in turn, as long as there are any
    assert not {one.text for one in split.trained} & {one.text for one in split.held_out}


def test_a_cut_leaves_every_identifier_whole():
    sha256 = KINDS["sha256"].example
    config = NaturalConfig(longest=100, lead=30, kinds=("sha1",))
    sha1 = KINDS["sha1"].example
    text, holds = cut(f"{sha256} {'word ' * 3}{sha1} {sha256}", config)
    assert (text, holds) == (f" {'word ' * 3}{sha1} ", True)
    # Far behind the start of a document, where an identifier stands across either end of the cut.
    text, holds = cut(f"{'word ' * 2_000}{sha256} {sha1} {'word ' * 4}{sha256}", config)
    assert (text, holds) == (f" {sha1} {'word ' * 4}", True)
    assert cut("word " * 100, config) == (("word " * 20), False)
    refused("longest: expected 301 or more", NaturalConfig, longest=300, lead=300)


def test_a_model_tells_what_it_was_trained_on(config, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    table = natural_table(
        replace(config, epochs=14), widths=(64, 32, 16), generated=4, draws=20, set_size=35
    )
    whole_sides = overall(table).set_index(["model", "subset", "attack"]).sort_index()
    large = whole_sides.loc["large"]
    trained, held = (large.loc[side] for side in ("trained, occurs once", "held out"))
    assert trained.loc["min_k", "auc"] > 0.75
    assert 0.3 < held.loc["min_k", "auc"] < 0.7
    assert trained.loc["min_k", "p_value"] < 0.01
    assert held.loc["min_k", "p_value"] > 0.001
    assert held.loc[["loss", "recall"], "identifiers"].tolist() == [
        48,
        40,
    ]  # a part behind the prefix
    sizes = whole_sides["parameters"].groupby("model", sort=False).first()
    assert sizes["large"] > sizes["medium"] == sizes["one pass"] > sizes["small"]
    once = whole_sides.xs(("trained, occurs once", "loss"), level=("subset", "attack"))
    less = once.loc["large less small"]
    assert less["auc"] == pytest.approx(once.loc["large", "auc"] - once.loc["small", "auc"])
    assert less["auc_low"] < less["auc"] < less["auc_high"]
    cells = table[(table["part"] != ALL) & (table["model"] == "one pass")]
    assert set(cells["part"]) == {"few", "many"}
    for side, one in cells.groupby("subset"):
        assert (
            one["identifiers"].sum() == whole_sides.loc[("one pass", side, "loss"), "identifiers"]
        )


def token_aucs(split, tokenizer):
    """AUC of the number of tokens, percent, by side."""
    every = [*split.members, *split.non_members]
    candidates = [[one.value, *generate_identifiers(one.value, 7, 0)] for one in every]
    counts = token_counts(tokenizer, candidates, [one.before for one in every])[..., None]
    ends = np.arange(len(every)) < len(split.members)
    quality = judged("", counts, {"trained": ends, "held out": ~ends}, attacks=(TOKENS,), draws=2)
    return dict(zip(quality["group"], 100 * quality["auc"], strict=True))


def test_token_counts_tell_nothing_unless_the_tokenizer_saw_the_documents(config, tmp_path):
    path = write_corpus(tmp_path / "many.jsonl", 802, of_subset=lambda _: "sums")
    many = replace(config, corpora=(path,), documents=400, further=0, identifiers=800)
    split = natural_split(many)
    clean = token_aucs(split, models.natural_tokenizer(config.tokenizer))
    assert all(abs(auc - 50) < 2 for auc in clean.values())
    leaking = train_tokenizer([one.value for one in split.members[:300]], 3_000, context=64)
    assert abs(token_aucs(split, leaking)["trained"] - 50) > 5


def test_a_run_that_was_killed_goes_on_to_the_same_scores(config, tmp_path, monkeypatch):
    config = replace(config, width=16, epochs=3, prefixed=12)
    split = natural_split(config)
    monkeypatch.setattr(models, "_TOGETHER", 12)
    monkeypatch.setattr(models, "_BETWEEN", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "whole"))
    whole = models.natural_values(config, split, generated=3)
    assert not list((tmp_path / "whole").rglob("*.checkpoint"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "killed"))
    save, saved = fitting.save_checkpoint, []

    def save_and_stop(*args):
        save(*args)
        saved.append(1)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "save_checkpoint", save_and_stop)
    with pytest.raises(KeyboardInterrupt):  # in the second of three epochs
        models.natural_values(config, split, generated=3)
    assert list((tmp_path / "killed").rglob("*.checkpoint"))
    stopping(monkeypatch, models, "cached_scores", 3)
    with pytest.raises(KeyboardInterrupt):  # trained, and two parts scored
        models.natural_values(config, split, generated=3)
    assert len(saved) == 3  # one more epoch
    monkeypatch.setattr(models, "fit_language_model", None)
    np.testing.assert_array_equal(models.natural_values(config, split, generated=3), whole)
    assert np.isfinite(whole).all(axis=(1, 2)).sum() == 24


def test_bfloat16_products_give_nearly_the_same_scores(config, tmp_path, monkeypatch):
    """Weights rounded once and kept over the steps, as autocast does by itself, would give 0.7."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    config = replace(config, prefixed=0, epochs=4)
    split = natural_split(config)
    both = (replace(config, dtype=dtype) for dtype in ("float32", "bfloat16"))
    exact, rounded = (models.natural_values(one, split, generated=3)[..., 0] for one in both)
    assert not np.array_equal(exact, rounded)
    assert np.corrcoef(exact.ravel(), rounded.ravel())[0, 1] > 0.99


def test_what_does_not_fit_and_a_missing_tokenizer_are_named(config, tmp_path, monkeypatch):
    refused("less than 31, the pairs of documents", natural_split, replace(config, documents=32))
    refused("further: expected up to 7 documents", natural_split, replace(config, further=8))
    refused("less than 0, the pairs", natural_split, replace(config, subsets=("other",)))
    refused("less than 0, the pairs", natural_split, replace(config, kinds=("sha512",)))
    for options in ({"documents": 1}, {"kinds": ("crc",)}, {"dtype": "int8"}):
        refused(next(iter(options)), NaturalConfig, **options)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        ValueError, match=r"vocabulary: expected .* or more, the tokens that occur, got 20"
    ):
        models.used_tokens(replace(config, vocabulary=20), natural_split(config), generated=3)
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    hub = Mock(side_effect=OSError("no such thing on the hub"))
    monkeypatch.setattr(models.transformers.AutoTokenizer, "from_pretrained", hub)
    refused(
        r"gpt_neox_20b_tokenizer\.json", models.natural_tokenizer, NEOX, error=DataUnavailableError
    )
