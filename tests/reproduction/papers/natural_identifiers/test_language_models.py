"""Planted identifiers, the benchmark, dataset inference and the DP audit at toy size."""

import json
import math
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.metrics import roc_auc_score, roc_curve

from paperlib.audits.candidates import CandidateScores
from paperlib.audits.language import language_model as own
from paperlib.audits.language.corpus import corpus_identifiers, open_corpus, skipped_table
from paperlib.data.text.corpora import CORPORA
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import find_identifiers
from paperlib.reproduction.papers.natural_identifiers import benchmark as bench
from paperlib.reproduction.papers.natural_identifiers import dp_audit as dp
from paperlib.reproduction.papers.natural_identifiers import dp_models as dp_models
from paperlib.reproduction.papers.natural_identifiers import hub as hub
from paperlib.reproduction.papers.natural_identifiers import inference as inference
from paperlib.reproduction.papers.natural_identifiers.benchmark import folded_null
from paperlib.reproduction.papers.natural_identifiers.evidence import benchmark_evidence
from paperlib.reproduction.papers.natural_identifiers.planted import (
    PlantedConfig,
    planted,
    planted_model,
    planted_scores,
    source_words,
)
from paperlib.reproduction.running.project import find_project
from tests.interrupts import stopping
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most

COUNTS = {"repetitions": (1, 8), "identifiers": 12, "held_out": 12, "filler": 0.1}
TINY = PlantedConfig(**COUNTS, width=64, epochs=8, batch_size=8, vocabulary=512)
DIGEST = "83a5ef2c9d0b3e71f6a8c3d25b190e47"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def test_identifiers_stand_in_the_corpus_as_often_as_stated_and_held_out_ones_nowhere():
    corpus = planted(TINY)
    seen = Counter(one.value for text in corpus.documents for one in find_identifiers(text))
    assert {one.value: one.repetitions for one in corpus.identifiers if one.repetitions} == dict(
        seen
    )
    assert len({one.value for one in corpus.identifiers if not one.repetitions}) == 12
    assert planted(TINY).documents == corpus.documents
    assert planted(replace(TINY, seed=1)).documents != corpus.documents


def test_a_model_knows_what_it_read_often_and_the_cache_gives_the_same_model():
    scores = planted_scores(TINY, generated=15, attacks=("loss", "min_k"))
    often, held = (scores.of("min_k", group) for group in (8, 0))
    assert (often[:, :1] > often[:, 1:]).mean() > 0.8
    assert 0.25 < (held[:, :1] > held[:, 1:]).mean() < 0.75
    again = planted_scores(TINY, generated=15, attacks=("loss", "min_k"))
    np.testing.assert_array_equal(scores.values, again.values)


def test_the_number_of_tokens_does_not_tell_who_was_trained_on():
    """A tokenizer that learned from the corpus itself has merged what stands there eight times."""
    config = replace(TINY, identifiers=60, held_out=60, vocabulary=1024, width=16, epochs=1)
    counts = planted_scores(config, generated=15, attacks=("loss", "tokens"))
    assert counts.values.shape == (180, 16, 2)
    for group in (0, 1, 8):
        quality = bench.attack_quality(counts.of("tokens", group))
        assert quality["auc_low"] <= 0.5 <= quality["auc_high"]


def test_auc_and_tpr_equal_those_of_scikit_learn_cover_half_and_folding_moves_the_null():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 20)).round(1)  # with ties
    scores[:, 0] += 0.5
    labels = np.zeros(scores.shape)
    labels[:, 0] = 1
    quality = bench.attack_quality(scores, draws=50)
    assert quality["auc"] == pytest.approx(roc_auc_score(labels.ravel(), scores.ravel()), abs=1e-12)
    fpr, tpr, _ = roc_curve(labels.ravel(), scores.ravel(), drop_intermediate=False)
    assert quality["tpr"] == pytest.approx(tpr[fpr <= 0.01].max(), abs=1e-12)
    assert quality["auc_low"] <= quality["auc"] <= quality["auc_high"]
    assert quality["tpr_low"] <= quality["tpr"] <= quality["tpr_high"]
    flipped = bench.attack_quality(-scores, draws=2)
    assert flipped["auc"] == pytest.approx(1 - quality["auc"])
    assert flipped["auc_folded"] == pytest.approx(quality["auc"])
    rng = np.random.default_rng(2)
    aucs = np.array(
        [bench.attack_quality(rng.normal(size=(50, 32)), draws=2)["auc"] for _ in range(300)]
    )
    null = folded_null([50], generated=31)
    assert np.maximum(aucs, 1 - aucs).mean() == pytest.approx(null["mean_folded"][0], abs=0.006)
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(200):
        scores = rng.normal(size=(60, 8)) + rng.normal(
            size=(60, 1)
        )  # a context moves all candidates
        quality = bench.attack_quality(scores, draws=100, confidence=0.9)
        missed += not quality["auc_low"] <= 0.5 <= quality["auc_high"]
    assert_rate_at_most(
        0.13, missed, 200
    )  # a percentile bootstrap of 60 misses a little more than 10 %


def known_scores(shift):
    rng = np.random.default_rng(3)
    groups = np.repeat([0, 1, 8], 40)
    values = rng.normal(size=(120, 16, 2))
    values[groups == 8, 0] += shift
    return CandidateScores(values, ("loss", "min_k"), groups)


def toy_inference(**options):
    sizes = {"set_size": 40, "generated": 15, "null_alternatives": 7, "trees": 5}
    return inference.InferenceConfig(
        planted=replace(TINY, identifiers=40, held_out=40), **sizes, **options
    )


def test_dataset_inference_finds_the_trained_set_and_its_curve_falls():
    config, scores = toy_inference(held_out_sets=30), known_scores(1.5)
    sets = inference.suspect_sets(config, scores).set_index(["set", "schedule"])["p_value"]
    assert sets["trained, 8x", "forward"] < 0.01
    assert sets["held out", "forward"] > 0.01
    curve = inference.p_values_by_size(config, scores, [10, 40], draws=3)
    medians = curve.set_index(["set", "identifiers"])["median"]
    assert medians["trained, 8x", 40] < medians["trained, 8x", 10]


def test_held_out_sets_are_null_even_if_one_column_stood_out():
    """Who plays the identifier is drawn anew, so a shifted first column does not look like
    training.
    """
    config, scores = toy_inference(held_out_sets=60), known_scores(0.0)
    scores.values[scores.groups == 0, 0] += 3.0
    p_values = inference.held_out_p_values(config, scores).query("schedule == 'forward'")
    assert_rate_at_most(0.05, int((p_values["p_value"] <= 0.05).sum()), 60)
    assert p_values["set"].tolist() == list(range(60))


def test_rejection_rates_have_exact_intervals():
    p_values = pd.DataFrame({"p_value": [0.001] * 20 + [0.5] * 80, "p_value_two_sided": 0.5})
    p_values["schedule"] = "forward"
    rates = inference.rejection_rates(p_values, levels=[0.05]).set_index("test")
    assert rates.loc["two-sided", ["rejected", "rate", "low"]].tolist() == [0, 0.0, 0.0]
    low = rates.loc["one-sided", "low"]
    assert binom.sf(19, 100, low) == pytest.approx(0.025, abs=1e-9)
    both = pd.concat([p_values.assign(set="a"), p_values.assign(set="b", p_value=0.5)])
    power = inference.rejection_rates(both, by=("set", "schedule"), levels=[0.05])
    counts = power.set_index(["set", "schedule", "test"])["rejected"]
    assert [counts[name, "forward", "one-sided"] for name in ("a", "b")] == [20, 0]


TOY_RUN = {"canaries": 10, "others": 6, "generated": 3, "epochs": 2, "public": TINY}


def test_canaries_of_a_smaller_run_are_those_of_a_larger_one_and_theory_knows_both_adjacencies():
    small, large = (dp_models.DpRun(noise=0.0, **TOY_RUN | {"canaries": m}) for m in (5, 10))
    (few, documents), (many, more) = (
        dp_models.canary_documents(small),
        dp_models.canary_documents(large),
    )
    assert [c[0] for c in few] == [c[0] for c in many][:5]
    assert (len(documents), len(more)) == (11, 16)
    assert all(text.startswith(c[0]) for c, text in zip(many, more, strict=False))
    alternatives = {value for c in many for value in c[1:]}
    assert len(alternatives) == 30
    assert not any(value in text for value in alternatives for text in more)
    run = dp_models.run_for(5.0, 1e-5)
    add, swap = dp.theoretical_epsilons(run, 1e-5)
    assert add <= 5.0
    assert add < swap < 3 * add
    assert dp.theoretical_epsilons(dp_models.run_for(math.inf, 1e-5), 1e-5) == (math.inf, math.inf)
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(200, 32))
    scores[:, 0] += 2.5
    audit = dp.hit_rate_and_bounds(scores, cardinality=32, top=4, delta=1e-6)
    assert audit["tight"] > audit["paper"] > 0


def test_a_dp_audit_end_to_end_is_repeatable_and_below_theory():
    targets = {dp_models.run_for(e, 1e-5, **TOY_RUN): e for e in (5.0, math.inf)}
    stored = dp_models.trained_runs(list(targets))
    table = dp.rank_audits(stored, targets, cardinalities=[2, 4], tops=[1, 2], delta=1e-5)
    assert len(table) == 2 * 3 * 3  # top 2 of 2 is no audit
    assert table["below_theory"].all()
    plain = list(targets)[1]
    first = stored[plain]["difference"]
    assert first[:, 0].mean() > first[:, 1:].mean()
    again = dp_models.fine_tuned_scores([plain, plain])[1]  # every run starts from the same model
    for scores in (again, dp_models.trained_runs([plain])[plain]):
        np.testing.assert_array_equal(scores["difference"], first)


def test_no_audit_of_a_mechanism_of_known_epsilon_exceeds_it():
    """Randomised response on 8 values at epsilon 2, seen through scores."""
    rng = np.random.default_rng(4)
    epsilon, sets, exceeded = 2.0, 100, 0
    hit = math.exp(epsilon) / (math.exp(epsilon) + 7)
    for seed in range(300):
        scores = np.zeros((sets, 8))
        released = np.where(rng.random(sets) < hit, 0, rng.integers(1, 8, sets))
        scores[np.arange(sets), released] = 1.0
        audit = dp.hit_rate_and_bounds(scores, cardinality=8, delta=1e-7, seed=seed)
        exceeded += max(audit["paper"], audit["tight"]) > epsilon
    assert_rate_at_most(0.05, exceeded, 300)


def test_bad_settings_are_named():
    for call, message in (
        (lambda: dp_models.DpRun(noise=0.0, dialogues="films"), "dialogues"),
        (lambda: dp_models.DpRun(noise=0.0, kind="crc"), "kind"),
        (lambda: dp_models.DpRun(noise=0.0, canaries=0), "canaries"),
        (lambda: dp.hit_rate_and_bounds(np.zeros((3, 4)), cardinality=5, delta=0.0), "cardinality"),
        (lambda: PlantedConfig(kinds=("crc",)), "kinds"),
        (lambda: PlantedConfig(repetitions=(0,)), "repetitions"),
        (lambda: PlantedConfig(held_out=1), "held_out"),
        (lambda: replace(toy_inference(), set_size=41), "set_size"),
        (lambda: replace(toy_inference(), null_alternatives=16), "null_alternatives"),
        *(
            (partial(hub.HubModel.of, one), "expected NAME=CORPUS")
            for one in ("a/b", "=pile_train", "a/b=")
        ),
    ):
        refused(message, call)


def test_a_model_and_a_corpus_in_a_report_out(tmp_path):
    corpus = planted(TINY)
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in corpus.documents))
    identifiers = corpus_identifiers(open_corpus(str(path)), kinds=["md5", "sha1"])
    assert {one.value for one in identifiers} == {
        one.value for one in corpus.identifiers if one.repetitions
    }
    assert {one.occurrences for one in identifiers} == {1, 8}
    assert all(one.before.strip() and one.value not in one.before for one in identifiers)
    assert len(corpus_identifiers(corpus.documents, limit=5)) == 5
    often = [one for one in identifiers if one.occurrences == 8]
    model, tokenizer = planted_model(TINY)
    report = own.audit_language_model(model, tokenizer, often, generated=15, draws=10, neighbours=4)
    assert report.inference.p_value < 0.05
    assert report.rank_audit.epsilon > 0
    assert report.table["rank"].is_monotonic_increasing
    assert set(report.quality["attack"]) == {
        "loss",
        "min_k",
        "min_k_pp",
        "zlib",
        "hinge",
        "neighbourhood",
    }


def test_what_a_corpus_skips_is_counted_and_words_come_from_any(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\0\1")
    (tmp_path / "b.jsonl").write_text(f'{{"text": "md5: {DIGEST}"}}\n{{"body": "x"}}\n')
    log = ReadLog()
    assert len(corpus_identifiers(open_corpus(str(tmp_path), log=log))) == 1
    table = skipped_table(log).set_index("reason")["number"].to_dict()
    assert table == {"binary file": 1, "document without text in the field 'text'": 1}
    for name, text in (("long", "one two three " * 500), ("short", "too short")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(text)
    assert source_words(str(tmp_path / "long")) == ("one", "two", "three") * 500
    refused("1,000 words", source_words, str(tmp_path / "short"))


def test_long_contexts_are_scored_from_their_end_and_too_few_identifiers_are_refused():
    model, tokenizer = planted_model(TINY)
    texts = ["a long story " * 500 + one.document for one in planted(TINY).identifiers[:12]]
    identifiers = corpus_identifiers(texts, before=6_000)
    assert min(len(one.before) for one in identifiers) > 5_000
    how = {"generated": 3, "draws": 5, "attacks": ["loss", "min_k"]}
    report = own.audit_language_model(model, tokenizer, identifiers, **how)
    assert np.isfinite(report.scores.values).all()
    one = corpus_identifiers([f"md5: {DIGEST}"])
    refused("no identifier of any kind in 2 documents", corpus_identifiers, ["nothing", "here"])
    refused("10 identifiers or more, got 1", own.audit_language_model, None, None, one)
    ten = identifiers[:10]
    refused("rank_attack", own.audit_language_model, None, None, ten, rank_attack="recall")


@pytest.fixture
def model_folder(tmp_path):
    """The planted model in a folder, as for a model of the hub."""
    model, tokenizer = planted_model(TINY)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def test_corpora_of_real_documents_are_scored_by_subset(model_folder, tmp_path, monkeypatch):
    """A model in a folder and a folder of documents, as for a model of the hub."""
    corpus = planted(TINY)
    for subset, group in (("often", 8), ("never", 0)):
        (tmp_path / subset / "part").mkdir(parents=True)
        for number, one in enumerate(corpus.identifiers):
            if one.repetitions == group:
                (tmp_path / subset / "part" / f"{number}.txt").write_text(one.document)
    for subset in ("often", "never"):
        (tmp_path / subset / "a.bin").write_bytes(b"\0")
    config = hub.HubConfig(generated=7, prefix="generated")
    one = hub.HubModel.of(f"{model_folder}={tmp_path / 'often'},{tmp_path / 'never'}")
    scores = hub.hub_scores(one, config)
    assert scores.values.shape == (24, 8, 7)
    assert scores.skipped[["reason", "number"]].values.tolist() == [["binary file", 2]]
    groups = {name: int(here.sum()) for name, here in scores.groups().items()}
    assert groups == {"held out": 12, "trained": 12, "trained, occurs once": 12}
    quality = scores.quality(draws=5).query("attack == 'min_k'").set_index("subset")["auc"]
    assert set(quality.index) == {"often: all", "often: part", "never: all", "never: part"}
    assert quality["often: part"] > quality["never: part"] + 0.2
    tested = scores.inference(set_size=10, trees=5).groupby("held_out")["p_value"].max()
    assert tested[False] < tested[True]
    assert set(scores.inference(set_size=13)["set"].str.endswith(": all")) == {True}
    too_few = scores.left_out(set_size=13).set_index("set")
    assert too_few["identifiers"].to_dict() == {"often: part": 12, "never: part": 12}
    assert set(too_few["needed"]) == {13}
    assert scores.left_out(set_size=12).empty
    monkeypatch.setattr(
        hub, "load_language_model", Mock(side_effect=AssertionError("loaded again"))
    )
    again = hub.hub_scores(one, config)
    np.testing.assert_array_equal(again.values, scores.values)
    assert again.skipped.equals(scores.skipped)
    table = hub.hub_table([scores] * 4, draws=5)
    assert {"nid-table-01", "nid-table-03", "nid-table-09"} <= set(
        benchmark_evidence(table, natural=True)
    )
    assert hub.hub_table([scores] * 3).empty
    monkeypatch.undo()
    sample = hub.hub_scores(one, replace(config, per_subset=5))
    assert sample.values.shape[0] == 10


def write_digests(path, values):
    path.write_text(" ".join(f"md5: {value}\n" for value in values))


def test_a_long_scoring_goes_on_part_by_part(model_folder, tmp_path, monkeypatch):
    write_digests(tmp_path / "seen.txt", own.generate_identifiers(DIGEST, 12, 3))
    one, config = hub.HubModel(model_folder, str(tmp_path / "seen.txt")), hub.HubConfig(generated=3)
    monkeypatch.setattr(hub, "_TOGETHER", 5)
    calls = stopping(monkeypatch, hub, "cached_scores", 3)
    with pytest.raises(KeyboardInterrupt):
        hub.hub_scores(one, config)
    parts = hub.hub_scores(one, config)
    assert [len(part) for _, _, part in calls] == [5, 5, 2] * 2
    monkeypatch.setattr(hub, "_TOGETHER", 100)
    np.testing.assert_allclose(parts.values, hub.hub_scores(one, config).values, rtol=1e-4)


def test_an_identifier_in_both_corpora_is_no_non_member(model_folder, tmp_path):
    values = own.generate_identifiers(DIGEST, 20, 0)
    seen, fresh = tmp_path / "seen.txt", tmp_path / "fresh.txt"
    write_digests(seen, values[:12])
    write_digests(fresh, values[10:])
    one = hub.HubModel(model_folder, str(seen), str(fresh))
    hub_scores = hub.hub_scores(one, hub.HubConfig(generated=3))
    assert np.unique(hub_scores.occurrences > 0, return_counts=True)[1].tolist() == [8, 12]
    assert hub_scores.attacks == ("loss", "min_k", "min_k_pp", "hinge", "tokens")


def test_the_papers_profile_names_the_papers_models_and_corpora():
    profile = find_project(Path(__file__)).profile("paper")
    names = {name for name in hub.HubConfig.__dataclass_fields__ if name != "seed"}
    for notebook in ("nid_mia_benchmark", "nid_dataset_inference"):
        given = profile[notebook]
        models = [hub.HubModel.of(entry) for entry in given["hub_models"]]
        assert {corpus for one in models for corpus in (one.trained, one.held_out)} <= set(CORPORA)
        config = hub.HubConfig(**{name: given[name] for name in names})
        one = (
            np.zeros((2, 2, 7)),
            config.attacks,
            np.array(["a: b"] * 2),
            np.array([1, 0]),
            pd.DataFrame(),
        )
        scores = [hub.HubScores(model, *one) for model in models]
        assert hub.hub_scale(scores, config)[0] == "paper's scale"
        for other in (replace(config, generated=31), replace(config, prefix="")):
            assert hub.hub_scale(scores, other)[0] == "paper's data"
        assert hub.hub_scale(scores[1:], config)[0] == "paper's data"


def test_look_alikes_are_left_out_and_fresh_identifiers_stay():
    """Hashes of half an alphabet between random ones: letters alone give them away."""
    rng = np.random.default_rng(6)
    hashes = [rng.bytes(16).hex() for _ in range(40)]
    numbers = ["".join(rng.choice(list("0123abcd"), 32)) for _ in range(20)]
    identifiers = [own.FoundIdentifier("md5", value, "", 0, 1) for value in hashes + numbers]
    stay = {one.value for one in own.without_look_alikes(identifiers)}
    assert len(stay & set(hashes)) > 30
    assert len(stay & set(numbers)) < 10
    log = ReadLog()
    assert own.without_look_alikes(identifiers[:5], log=log) == identifiers[:5]
    assert [number for _, number, _ in log.rows] == [1]  # no classifier judges five
    # At most one in a hundred goes: of 3 sets of 60 digests.
    left = 0
    for seed in range(3):
        rng = np.random.default_rng([seed, 8])
        identifiers = [
            own.FoundIdentifier("sha1", rng.bytes(20).hex(), "", 0, 1) for _ in range(60)
        ]
        left += len(own.without_look_alikes(identifiers, generated=31, seed=seed))
    assert left >= 178
