"""Identifiers that stand in documents trained on are told from those of other documents."""

import json
from dataclasses import replace

import numpy as np
import pytest

from paperlib.generators.identifiers import find_identifiers, generate_identifiers
from paperlib.papers.natural_identifiers.natural_models import NaturalConfig, natural_split
from paperlib.papers.natural_identifiers.natural_truth import natural_table

WORDS = ["source", "file", "of", "the", "package", "with", "its", "digest", "for", "all"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Documents with two digests each; one digest stands in every other one."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(0)
    values = iter(generate_identifiers("d41d8cd98f00b204e9800998ecf8427e", 200, 0))
    common = next(values)
    lines = []
    for number in range(61):
        words = [" ".join(rng.choice(WORDS, 6)) for _ in range(3)]
        end = common if number % 2 else ""
        text = f"{words[0]} {next(values)} {words[1]} {next(values)} {words[2]} {end}"
        lines.append(json.dumps({"text": text, "subset": "sums"}))
    lines.append(json.dumps({"text": "long " * 2_000, "subset": "sums"}))
    path = folder / "sums.jsonl"
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture
def config(corpus):
    return NaturalConfig(
        corpus=corpus,
        documents=20,
        kinds=("md5",),
        window=64,
        vocabulary=300,
        width=64,
        epochs=20,
        batch_size=4,
    )


def test_no_non_member_stands_in_a_document_trained_on(config):
    split = natural_split(config)
    seen = {found.value for one in split.trained for found in find_identifiers(one.text)}
    assert len(split.trained) == 20
    assert {one.value for one in split.members} <= seen
    assert not {one.value for one in split.non_members} & seen
    assert not {found.value for found in find_identifiers(split.prefix)} & {
        one.value for one in split.non_members
    }
    shared = [one for one in split.members if one.occurrences > 1]
    assert len(shared) <= 1
    known = {one.value for side in (split.members, split.non_members) for one in side}
    assert split.tokenizer_texts
    assert not {found.value for text in split.tokenizer_texts for found in find_identifiers(text)} & known
    each = [one.document for one in split.non_members]
    assert max(each.count(number) for number in each) <= 2
    assert natural_split(config).members == split.members
    assert natural_split(replace(config, seed=1)).members != split.members


def test_a_model_tells_what_it_was_trained_on(config, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = natural_table(config, widths=(64, 32, 16), generated=7, draws=50, set_size=35)
    models = found.set_index(["model", "subset", "attack"])
    table = models.loc["large"]
    assert table.loc[("trained, occurs once", "min_k"), "auc"] > 0.75
    assert 0.3 < table.loc[("held out", "min_k"), "auc"] < 0.7
    assert table.loc[("trained, occurs once", "min_k"), "p_value"] < 0.01
    assert table.loc[("held out", "min_k"), "p_value"] > 0.001
    assert table.loc["held out", "identifiers"].iloc[0] == 40
    sizes = models["parameters"].groupby("model", sort=False).first()
    assert sizes["large"] > sizes["medium"] == sizes["one pass"] > sizes["small"]
    once = models.xs(("trained, occurs once", "loss"), level=("subset", "attack"))
    less = once.loc["large less small"]
    assert less["auc"] == pytest.approx(once.loc["large", "auc"] - once.loc["small", "auc"])
    assert less["auc_low"] < less["auc"] < less["auc_high"]
    # The tokenizer saw neither side, so the number of tokens tells nothing.
    tokens = models.xs("tokens", level="attack").loc[["large", "one pass"]]
    tokens = tokens.drop(index="trained, occurs oftener", level="subset", errors="ignore")
    assert set(tokens.index.get_level_values("subset")) == {"held out", "trained", "trained, occurs once"}
    assert ((tokens["auc_low"] <= 0.5) & (tokens["auc_high"] >= 0.5)).all()


def test_corpora_that_are_too_small_are_named(config, tmp_path):
    for options, message in (
        ({"documents": 31}, "less than half of the 61 documents"),
        ({"subsets": ("other",)}, "of the 0 documents"),
        ({"kinds": ("sha512",)}, "no identifier of sha512"),
    ):
        with pytest.raises(ValueError, match=message):
            natural_split(replace(config, **options))
    with pytest.raises(ValueError, match="documents: expected 2 or more"):
        NaturalConfig(documents=1)
    with pytest.raises(ValueError, match="kinds"):
        NaturalConfig(kinds=("crc",))
