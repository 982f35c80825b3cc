"""Pools of text at toy size: documents kept apart, the null, helpers, DP, tables and bad input."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from paperlib.audits.panoramia.pools import SYNTHETIC, Helper
from paperlib.audits.panoramia.run import audit_pools
from paperlib.papers.panoramia.text import bench as text_bench
from paperlib.papers.panoramia.text import config as text_config
from paperlib.papers.panoramia.text import tables as tables
from paperlib.papers.panoramia.text.bench import TextBench
from paperlib.papers.panoramia.text.config import TextConfig
from paperlib.papers.panoramia.text.data import Chunks, deal, small_tokenizer
from paperlib.papers.panoramia.text.pools import loss_curves, text_audit, text_pools, with_helpers
from paperlib.papers.panoramia.text.pools import text_bench as stages

TINY = TextConfig(
    text="help_topics",
    tokens=8,
    prompt=8,
    public=400,
    generator=200,
    members=120,
    nonmembers=120,
    others=120,
    generated=120,
    for_helper=200,
    vocabulary=300,
    width=32,
    base_epochs=1,
    epochs=(1, 6),
    null_epochs=(6,),
    dp_epsilons=(),
    generator_epochs=1,
    helper_epochs=3,
    batch_size=16,
    learning_rate=5e-3,
)
AUDIT = text_audit(150, tokens=8, repetitions=1, restarts=1)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        stages.cache_clear()  # what another folder keeps is not in this one
        yield


@pytest.fixture(scope="module")
def pools():
    return text_pools(TINY)


@pytest.fixture(scope="module")
def results(pools):
    return tables.run_text(pools, AUDIT)


def test_no_document_and_no_chunk_has_two_roles():
    dealt = TextBench(TINY).text
    assert {role: len(chunks) for role, chunks in dealt.chunks.items()} == TINY.sizes
    documents = [set(chunks.document.tolist()) for chunks in dealt.chunks.values()]
    rows = [set(map(bytes, chunks.tokens)) for chunks in dealt.chunks.values()]
    for parts in (documents, rows):
        assert sum(map(len, parts)) == len(set.union(*parts))
    assert max(np.bincount(chunks.document).max() for chunks in dealt.chunks.values()) <= 50


def test_the_tokenizer_reads_public_documents_alone():
    """The first tenth of the documents, which trains it, is dealt to no other role."""
    tokenizer = small_tokenizer("help_topics", 300, 0, context=16)
    sizes = {"public": 8, "members": 40}
    dealt = deal("help_topics", tokenizer, length=8, per_document=50, sizes=sizes, seed=0)
    assert dealt.chunks["members"].document.min() >= 46
    assert dealt.chunks["public"].document.max() < 46


def test_passages_are_consecutive_and_stay_in_their_document():
    chunks = Chunks(np.arange(14).reshape(7, 2), np.array([0, 0, 0, 1, 2, 2, 2]))
    assert chunks.passages(2).tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert chunks.passages(1).tolist() == chunks.tokens.tolist()


def test_targets_know_the_members_and_the_null_does_not(pools):
    table = pools.table.set_index("target")
    gaps = table["test_metric"] - table["train_metric"]
    assert gaps["6 epochs"] > gaps["1 epoch"] > gaps["null, 6 epochs"] - 0.1
    assert gaps["6 epochs"] > abs(gaps["null, 6 epochs"]) + 0.3
    assert list(table["null"]) == [False, False, True]
    first = pools.members.targets["6 epochs"]
    assert first.shape == (120, 9)
    np.testing.assert_allclose(first[:, 0], first[:, 1:].mean(axis=1))


def test_helpers_know_what_they_were_trained_on(pools):
    assert pools.helper_names == ("base", "synthetic", "real, 1 epochs", "real 1", "real 2")
    assert tuple(one.name for one in tables.standing_helpers(pools)) == (
        "base",
        "synthetic",
        "real 1",
        "real 2",
    )

    def gap(name):  # the helper of real text finds generated chunks stranger than the synthetic one does
        losses = [pool.helpers[name][:, 0].mean() for pool in (pools.generated, pools.members)]
        return losses[0] - losses[1]

    assert gap("synthetic") < gap("real 1") - 0.1


def test_pools_are_read_from_the_cache_and_another_target_trains_no_generator(pools, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("trained anew")

    monkeypatch.setattr(text_bench.TextGenerator, "fit", refuse)
    again = text_pools(TINY)
    np.testing.assert_array_equal(again.members.targets["6 epochs"], pools.members.targets["6 epochs"])
    other = TextBench(replace(TINY, null_epochs=(1,)))
    assert len(other.run("others")["train"]) == 1
    with pytest.raises(AssertionError, match="trained anew"):
        TextBench(replace(TINY, top_k=3)).generated  # noqa: B018


def test_audits_find_the_members_and_no_null(results):
    assert results.value("6 epochs", "rm_rn") > 0.3
    assert results.value("null, 6 epochs", "rm_rn") == 0.0
    shown = tables.table_three(results)
    assert list(shown["source"]) == ["ours"] * 3 + ["paper"] * 3
    assert {
        "eps~ (paper form)",
        "eps~ (helpers form)",
        "RM;RN (paper form)",
        "RM;RN (helpers form)",
        "O(1)",
    } <= set(shown)


def test_verdicts_cover_the_text_targets_and_follow_the_numbers(pools, results):
    curves = loss_curves(TINY)
    assert list(curves["epoch"]) == [1, 2, 3, 4, 5, 6]
    helpers = tables.table_five(pools, replace(AUDIT, attacks=AUDIT.attacks[:1]))
    assert {"none", "all", "synthetic"} <= set(helpers["helper"])
    sizes = tables.baseline_sizes(pools, replace(AUDIT, attacks=AUDIT.attacks[:1]), [10, 20])
    test_sizes = results.forms["helpers"].over_test_size([20, AUDIT.test])
    found = {row["target"]: row for row in tables.verdicts(results, curves, helpers, sizes, test_sizes)}
    assert len(found) == 8
    assert found["panoramia-figure-14"]["holds"]
    assert not found["panoramia-table-09"]["holds"]  # no DP target in these pools
    rising = pd.DataFrame({"epoch": [1, 2], "train": [3.0, 2.0], "validation": [3.0, 3.5]})
    again = tables.verdicts(results, rising, helpers, sizes, test_sizes)
    assert next(row for row in again if row["target"] == "panoramia-figure-08")["holds"]
    falling = rising.assign(validation=[3.0, 2.5])
    again = tables.verdicts(results, falling, helpers, sizes, test_sizes)
    assert not next(row for row in again if row["target"] == "panoramia-figure-08")["holds"]


def test_the_null_is_shown_with_one_try_and_with_all(pools):
    quick = replace(AUDIT, attacks=(replace(AUDIT.attacks[1], epochs=1),), restarts=2)
    found = tables.null_by_restarts(tables.run_text(pools, quick))
    assert list(found["restarts"]) == [1, 2] * 2
    assert set(found["form"]) == {"helpers", "paper"}
    assert set(found["target"]) == {"null, 6 epochs"}


def test_fewer_helpers_make_other_pools(pools):
    fewer = with_helpers(pools, (SYNTHETIC,))
    assert fewer.helpers == (SYNTHETIC,)
    assert fewer.key != pools.key
    steps = tables.ladder(pools, replace(AUDIT, attacks=AUDIT.attacks[:1]), names=["null, 6 epochs"])
    assert steps["helpers"].iloc[0] == "synthetic"
    assert len(steps) == 5
    with pytest.raises(ValueError, match="helpers: expected some of base"):
        with_helpers(pools, (Helper("labeler", "real"),))


def test_a_dp_target_learns_less(monkeypatch):
    monkeypatch.setattr(
        text_config, "noise_for", lambda *_: 4.0
    )  # the accountant is slow, and tested elsewhere
    bench = TextBench(replace(TINY, dp_batch=64))
    private = bench.private(1.0)
    assert bench.config.private_training(1.0).record_level
    trained = TextBench(TINY).run("members")
    gap = [private[kind][:, 0].mean() for kind in ("nonmembers", "members")]
    other = [trained[f"6/{kind}"][:, 0].mean() for kind in ("nonmembers", "members")]
    assert gap[0] - gap[1] < other[0] - other[1] - 0.2


def test_a_generator_that_copies_is_said_to(monkeypatch):
    bench = TextBench(TINY)
    assert bench.warnings() == ()
    copied = {**bench.generated, "audit": bench.text["generator"][: TINY.generated]}
    monkeypatch.setitem(bench.__dict__, "generated", copied)
    monkeypatch.delitem(bench.__dict__, "_examples", raising=False)
    assert "the generator copies: 100.0%" in bench.warnings()[0]


def test_a_pretrained_gpt2_is_fine_tuned_with_and_without_dp(tmp_path, monkeypatch):
    """By folder as by name: its own tokenizer, tied output weights, positions looked up once a batch."""
    tokenizer = small_tokenizer("help_topics", 300, 0, context=32)
    shape = GPT2Config(vocab_size=300, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=0)
    GPT2LMHeadModel(shape).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    monkeypatch.setattr(text_config, "noise_for", lambda *_: 1.0)
    few = {name: 40 for name in ("generator", "members", "nonmembers", "others", "generated", "for_helper")}
    config = replace(TINY, base=str(tmp_path), epochs=(1,), null_epochs=(1,), dp_epsilons=(3.0,), **few)
    pools = TextBench(config).pools()
    assert list(pools.target_names) == ["1 epoch", "null, 1 epoch", "DP, epsilon 3"]
    base = TextBench(config).base
    assert base.get_output_embeddings().weight is not base.get_input_embeddings().weight
    before = pools.members.helpers["base"]
    for target in pools.target_names:
        assert (pools.members.targets[target] != before).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": ()}, "epochs"),
        ({"null_epochs": (0,)}, "null_epochs"),
        ({"prompt": 5}, "prompt: expected a multiple"),
        ({"public": 0}, "base: expected a pretrained model"),
        ({"dp_epsilons": (0.0,)}, "dp_epsilons"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **options)


def test_too_little_text_says_how_much_there_is():
    with pytest.raises(ValueError, match=r"members: 90000 chunks of 8 tokens asked for, \d+ left"):
        _ = TextBench(replace(TINY, members=90_000)).text
    with pytest.raises(ValueError, match="members: 120 are too few"):
        audit_pools(text_pools(TINY), text_audit(600, tokens=8, repetitions=1))
    with pytest.raises(ValueError, match="judged"):
        text_audit(100, judged=1.0)
