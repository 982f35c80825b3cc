"""Pools of text at toy size: documents kept apart, the null, helpers, DP, tables and bad input."""

import itertools
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from paperlib.audits.panoramia.pools import SYNTHETIC, Helper, Pool, Pools, Target, with_helpers
from paperlib.audits.panoramia.results import TargetAudits, TargetScores
from paperlib.reproduction.papers.panoramia.results import (
    PanoramiaResults,
    printed_bounds,
    table_three,
)
from paperlib.reproduction.papers.panoramia.text import bench as text_bench
from paperlib.reproduction.papers.panoramia.text import data as text_data
from paperlib.reproduction.papers.panoramia.text import tables as tables
from paperlib.reproduction.papers.panoramia.text.bench import REAL_NONMEMBERS, TextBench
from paperlib.reproduction.papers.panoramia.text.data import (
    Chunks,
    TextConfig,
    deal,
    small_tokenizer,
)
from paperlib.reproduction.papers.panoramia.text.pools import (
    loss_curves,
    paper_differences,
    text_audit,
    text_pools,
)
from paperlib.reproduction.papers.verdict import Estimate
from paperlib.reproduction.running.project import find_project
from tests.refusals import refused

SIZES = {"public": 400, "generator": 200, "for_helper": 200}
SIZES |= dict.fromkeys(("members", "nonmembers", "others", "generated"), 120)
EPOCHS = {
    "base_epochs": 1,
    "epochs": (1, 6),
    "null_epochs": (6,),
    "generator_epochs": 1,
    "helper_epochs": 3,
}
HOW = {"vocabulary": 300, "width": 32, "batch_size": 16, "learning_rate": 5e-3, "dp_epsilons": ()}
TINY = TextConfig(text="help_topics", tokens=8, prompt=8, **SIZES, **EPOCHS, **HOW)
AUDIT = text_audit(150, tokens=8, repetitions=1, restarts=1)


@pytest.fixture(scope="module")
def pools():
    return text_pools(TINY)


@pytest.fixture(scope="module")
def results(pools):
    return tables.run_text(pools, AUDIT)


def assert_apart(parts):
    """No row, or number, of one part is in another."""
    sets = [{one.tobytes() for one in part} for part in parts]
    assert sum(map(len, sets)) == len(set.union(*sets))


def test_no_document_and_no_chunk_has_two_roles_and_roles_that_share_documents_no_chunk():
    # As in the paper: all chunks of whole documents, dealt at random; further documents for the
    # rest.
    sizes = {"generator": 100, "members": 80, "nonmembers": 60, "others": 80}
    mixed = replace(TINY, by_chunk=True, chunks_per_document=5, **sizes)
    plain, shared = TextBench(TINY).text, TextBench(mixed).text
    for config, dealt in ((TINY, plain), (mixed, shared)):
        assert {role: len(chunks) for role, chunks in dealt.items()} == config.sizes
        assert_apart([chunks.tokens for chunks in dealt.values()])
    assert_apart([chunks.document for chunks in plain.values()])
    assert max(np.bincount(chunks.document).max() for chunks in plain.values()) <= 50
    numbers = np.concatenate([shared[role].document for role in sizes])
    assert np.bincount(numbers).max() == np.bincount(numbers)[np.unique(numbers)].min() == 5
    assert np.intersect1d(shared["generator"].document, shared["members"].document).size > 20
    assert_apart([numbers, shared["public"].document, shared["helper"].document])
    with pytest.raises(
        ValueError, match="by_chunk: expected 2002 documents of 50 chunks of 8 tokens, got"
    ):
        TextBench(replace(mixed, chunks_per_document=50, members=99_840)).text  # noqa: B018


def test_the_run_is_longer_than_where_it_is_audited_last_and_its_rate_falls_over_all_of_it():
    long = TextBench(replace(TINY, epochs=(1,), null_epochs=(1,), total_epochs=2))
    run, short = long.run(), TextBench(replace(TINY, epochs=(1,))).run()
    assert (len(run["train"]), len(short["train"]), len(long.run("others")["train"])) == (2, 1, 1)
    assert (run["1/members"] != short["1/members"]).any()
    refused("total_epochs: expected 6 or more", replace, TINY, total_epochs=5)


@pytest.fixture
def learned(monkeypatch):
    """The chunks, all of them, and the settings of each training, which is left out."""
    calls = []

    def spy(model, rows, *, training, validation=()):
        calls.append((np.array([*rows, *validation]), training))

    monkeypatch.setattr(text_bench, "train_on_chunks", spy)
    monkeypatch.setattr(TextBench, "_judged", lambda bench, model: {})
    return calls


def test_the_small_base_model_learns_positions_after_a_prompt_in_both_ways_to_deal(learned):
    """A generator of single chunks continues prompts at positions that it was not fine-tuned on."""
    for by_chunk in (False, True):
        _ = TextBench(replace(TINY, by_chunk=by_chunk, chunks_per_document=5, base_epochs=2)).base
    assert [rows.shape[1] for rows, _ in learned] == [16, 16]


def test_members_that_teach_the_real_helper_are_in_none_of_its_games(pools, learned, monkeypatch):
    config, seen = replace(TINY, withheld=0.5), []
    bench = TextBench(config)
    bench._judged_by(REAL_NONMEMBERS)
    np.testing.assert_array_equal(learned[-1][0], bench.text["members"].tokens[:60])
    assert not len(bench.text["helper"])
    monkeypatch.setattr(tables.shared, "helper_games", lambda pools, audit: seen.append(pools))
    tables.games_by_helper(pools, AUDIT, withheld=config.withheld_members)
    np.testing.assert_array_equal(seen[0].members.examples, pools.members.examples[60:])
    for name in ("synthetic", "real non-members"):
        np.testing.assert_array_equal(
            seen[0].members.helpers[name], pools.members.helpers[name][60:]
        )


def test_the_papers_profile_is_the_paper():
    profile = find_project(Path(__file__)).profile("paper")["panoramia_text"]
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in profile.items()
    }
    config = TextConfig(
        **{one.name: given[one.name] for one in fields(TextConfig) if one.name in given}
    )
    options = {
        name: profile[name] for name in ("judged", "chosen", "reader", "repetitions", "restarts")
    }
    audit = text_audit(profile["audited"], **options)
    assert paper_differences(config, audit) == []
    assert paper_differences(replace(config, top_k=40, by_chunk=False), audit) == [
        "by_chunk",
        "top_k",
    ]
    assert round(0.3 * config.generator) == round(0.15 * (config.generator + config.members))


def test_passages_stay_in_their_document_and_the_tokenizer_reads_public_ones_alone():
    chunks = Chunks(np.arange(14).reshape(7, 2), np.array([0, 0, 0, 1, 2, 2, 2]))
    assert chunks.passages(2).tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert chunks.passages(1).tolist() == chunks.tokens.tolist()
    # The first tenth of the documents, which trains it, is dealt to no other role.
    tokenizer = small_tokenizer("help_topics", 300, 0, context=16)
    few = replace(
        TINY, public=8, generator=0, members=40, nonmembers=0, others=0, chunks_per_document=5
    )
    for config in (few, replace(few, by_chunk=True)):
        dealt = deal(config, tokenizer)
        assert dealt["members"].document.min() >= 46
        assert dealt["public"].document.max() < 46


def test_targets_know_the_members_the_null_does_not_and_helpers_what_they_learned(pools):
    table = pools.table.set_index("target")
    gaps = table["test_metric"] - table["train_metric"]
    assert gaps["6 epochs"] > gaps["1 epoch"] > gaps["null, 6 epochs"] - 0.1
    assert gaps["6 epochs"] > abs(gaps["null, 6 epochs"]) + 0.3
    assert list(table["null"]) == [False, False, True]
    first = pools.members.targets["6 epochs"]
    assert first.shape == (120, 9)
    np.testing.assert_allclose(first[:, 0], first[:, 1:].mean(axis=1))
    assert pools.helper_names == ("base", "synthetic", "real non-members")

    def gap(
        name,
    ):  # the helper of real text finds generated chunks stranger than the synthetic one does
        losses = [pool.helpers[name][:, 0].mean() for pool in (pools.generated, pools.members)]
        return losses[0] - losses[1]

    assert gap("synthetic") < gap("real non-members") - 0.1


def test_the_real_helper_learns_as_many_chunks_in_the_same_way_as_the_synthetic_one(pools, learned):
    bench = TextBench(TINY)
    for helper in (SYNTHETIC, REAL_NONMEMBERS):
        bench._judged_by(helper)
    (synthetic, how), (real, same) = learned
    np.testing.assert_array_equal(synthetic, bench.generated["helper"])
    np.testing.assert_array_equal(real, bench.text["helper"].tokens)
    assert how == same
    assert how.epochs == TINY.helper_epochs
    games = {bytes(row) for role in ("members", "nonmembers") for row in bench.text[role].tokens}
    assert not games & set(map(bytes, real))


def test_pools_are_read_from_the_cache_and_another_target_trains_no_generator(pools, monkeypatch):
    monkeypatch.setattr(text_bench.TextGenerator, "fit", None)
    again = text_pools(TINY)
    np.testing.assert_array_equal(
        again.members.targets["6 epochs"], pools.members.targets["6 epochs"]
    )
    other = TextBench(replace(TINY, null_epochs=(1,)))
    assert len(other.run("others")["train"]) == 1
    with pytest.raises(TypeError):
        TextBench(replace(TINY, top_k=3)).generated  # noqa: B018


def test_audits_find_the_members_and_no_null_and_losses_are_compared_at_both_ends(results, pools):
    assert results.value("6 epochs", "rm_rn") > 0.3
    assert results.value("null, 6 epochs", "rm_rn") == 0.0
    shown = table_three(results, tables.printed_three(results.pools.target_names))
    assert shown["paper_target"].dropna().tolist() == ["GPT2_E37", "GPT2_E75"]
    members, generated, others = (
        {name: values[:, 0].mean() for name, values in pool.targets.items()}
        for pool in (pools.members, pools.generated, pools.nonmembers)
    )
    gaps = {name: others[name] - members[name] for name in results.trained}
    found = tables._figure_fourteen_evidence(results).values
    assert found["losses separate"] == pytest.approx([gaps["6 epochs"] - gaps["1 epoch"]])
    assert gaps["6 epochs"] - gaps["1 epoch"] > 0.1
    distance = abs(generated["6 epochs"] - others["6 epochs"])
    assert found["synthetic near non-members"] == pytest.approx([distance - gaps["6 epochs"] / 3])


def test_both_ways_to_deal_text_show_the_targets_that_were_audited_in_both(monkeypatch):
    targets = {"chunks": ["4 epochs", "8 epochs", "null"], "documents": ["8 epochs", "null"]}
    monkeypatch.setattr(
        tables.shared, "table_three", lambda way, _: pd.DataFrame({"target": targets[way]})
    )
    shown = tables.by_dealing({"by chunk": "chunks", "by document": "documents"})
    pairs = itertools.product(("by chunk", "by document"), ("8 epochs", "null"))
    assert list(map(tuple, shown.to_numpy())) == list(pairs)


def test_evidence_is_paired_in_a_game_and_empty_where_parameters_leave_something_out(
    pools, results
):
    quick = replace(AUDIT, attacks=AUDIT.attacks[:1], repetitions=2)
    helpers, curves = tables.games_by_helper(pools, quick), loss_curves(TINY)
    sizes = tables.baseline_sizes(tables.run_text(pools, quick), [10, 20])
    found = tables.evidence(results, curves, helpers, sizes)
    items = [name.removeprefix("panoramia-") for name in found]
    assert items[:3] == ["table-03", "table-05", "table-09"]
    assert items[3:] == ["figure-08", "figure-09", "figure-10", "figure-14"]
    assert list(curves["epoch"]) == [1, 2, 3, 4, 5, 6]
    shown = tables.table_five(helpers).set_index("helper")
    assert list(shown.index) == ["none", "synthetic", "real non-members", "all"]
    assert shown["paper_c_lb"]["real non-members"] == 3.26
    c_lb = helpers.pivot(index="seed", columns="helper", values="c_lb")
    table = found["panoramia-table-05"].values
    assert table["generated over real"] == (c_lb["synthetic"] - c_lb["real non-members"]).tolist()
    assert found["panoramia-table-09"].values["0 with DP"] == {}  # no DP target in these pools
    fixed = sizes[sizes["way"] == "fixed test part"].set_index(["train", "seed"])["c_lb"]
    assert sorted(set(fixed.index.get_level_values("train"))) == [10, 20, quick.train]
    assert found["panoramia-figure-09"].values["rises"] == (fixed[quick.train] - fixed[10]).tolist()


TARGETS = (
    Target("1 epoch", epochs=1),
    Target("6 epochs", epochs=6),
    Target("DP", "private", 1, 3.0),
    Target("null", "null", 6),
    Target("null, DP", "null", 1, 3.0),
)


@pytest.fixture(scope="module")
def made_up():
    """Two games of 200: the attack on a target beats its baseline by the target's place."""
    rng, judged = np.random.default_rng(0), []
    for seed in (0, 1):
        member = rng.random(200) < 0.5
        for at, target in enumerate(TARGETS):
            scores = (rng.normal(size=200) + shift * member for shift in (1, 1 + at))
            judged.append(TargetScores(target, "panoramia", seed, *scores, member))
    return TargetAudits(tuple(judged), replace(AUDIT, test=200))


def test_figure_nine_pairs_sizes_within_a_game_and_targets_beside_dp_have_as_many_epochs(made_up):
    rows = [(10, 0, 1.0), (40, 0, 1.5), (10, 1, 2.0), (40, 1, 1.75)]
    fixed = pd.DataFrame(rows, columns=["train", "seed", "c_lb"]).assign(way="fixed test part")
    sizes = pd.concat(
        [fixed, pd.DataFrame([{"way": "what is left", "train": 80, "seed": 0, "c_lb": 9.0}])]
    )
    found = tables._figure_nine_evidence(made_up, sizes, "6 epochs").values
    assert found["rises"] == [0.5, -0.25]
    tables_of = (made_up.over_test_size([size]).set_index(["target", "seed"]) for size in (200, 50))
    whole, quarter = (one["c_lb"]["6 epochs"] for one in tables_of)
    assert found["smaller test lowers"] == (whole - quarter).tolist()
    assert whole.min() > 0
    pool = Pool(np.zeros((1, 1)), {}, {target.name: np.zeros((1, 1)) for target in TARGETS})
    found = tables._table_nine_evidence(
        PanoramiaResults(Pools(pool, pool, None, TARGETS), {}), made_up
    ).values
    bounds = made_up.table.query("search == 'union'").set_index(["target", "seed"])
    own = bounds["c_plus_eps_lb"] - bounds["c_lb"]
    assert own["1 epoch"].min() < 0 < own["DP"].min()
    expected = {"0 with DP": "DP", "leak without DP": "1 epoch", "null": "null, DP"}
    assert found == {term: {name: own[name].tolist()} for term, name in expected.items()}


def test_the_smallest_games_leave_two_to_learn_and_fewer_helpers_make_other_pools(
    pools,
):
    small = text_audit(20, tokens=8, repetitions=1, restarts=1, attacks=AUDIT.attacks[:1])
    rows = tables.baseline_sizes(tables.run_text(pools, small), [small.train + 20])
    left = rows[rows["way"] == "what is left"]["train"]
    assert left.min() == 2
    assert left.is_unique
    assert sorted(rows[rows["way"] == "fixed test part"]["train"]) == [
        small.train,
        small.train + 20,
    ]
    with pytest.raises(ValueError, match=f"sizes: expected others than {small.train}"):
        tables.baseline_sizes(tables.run_text(pools, small), [small.train])
    fewer = with_helpers(pools, (SYNTHETIC,))
    assert fewer.helpers == (SYNTHETIC,)
    assert fewer.key != pools.key
    refused("helpers: expected some of base", with_helpers, pools, (Helper("labeler", "real"),))


@pytest.mark.parametrize(
    ("train", "validation", "turned", "fell"),
    [([3.0, 2.0, 1.5], [3.0, 2.5, 2.7], 0.2, 0.5), ([3.0, 2.0, 2.25], [3.0, 2.5, 2.4], 0.0, -0.25)],
    ids=["turns up", "falls"],
)
def test_figure_eight_compares_the_last_epoch_with_the_best(train, validation, turned, fell):
    found = tables.figure_eight(pd.DataFrame({"train": train, "validation": validation})).values
    assert found["validation loss turns up"] == pytest.approx([turned])
    assert found["training loss falls"] == pytest.approx([fell])
    assert found["enough levels"] == Estimate(3)


def test_a_dp_target_learns_less(monkeypatch):
    monkeypatch.setattr(text_data, "noise_for", lambda *_: 4.0)  # the accountant is slow
    bench = TextBench(replace(TINY, dp_batch=64))
    private, null = bench.private(1.0), bench.private(1.0, "others")
    assert (private["members"] != null["members"]).any()
    assert bench.config.private_training(1.0).record_level
    trained = TextBench(TINY).run("members")
    gap = [private[kind][:, 0].mean() for kind in ("nonmembers", "members")]
    other = [trained[f"6/{kind}"][:, 0].mean() for kind in ("nonmembers", "members")]
    assert gap[0] - gap[1] < other[0] - other[1] - 0.2


def test_a_generator_that_copies_is_said_to(monkeypatch):
    bench = TextBench(TINY)
    assert bench.warnings() == ()
    copied = {**bench.generated, "audit": bench.text["generator"].tokens[: TINY.generated]}
    monkeypatch.setitem(bench.__dict__, "generated", copied)
    monkeypatch.delitem(bench.__dict__, "_examples", raising=False)
    assert "the generator copies: 100.0%" in bench.warnings()[0]


def test_a_pretrained_gpt2_is_fine_tuned_with_and_without_dp(tmp_path, monkeypatch):
    """By folder as by name: its own tokenizer, tied output weights, positions looked up once a
    batch.
    """
    tokenizer = small_tokenizer("help_topics", 300, 0, context=32)
    shape = GPT2Config(
        vocab_size=300, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=0
    )
    GPT2LMHeadModel(shape).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    monkeypatch.setattr(text_data, "noise_for", lambda *_: 1.0)
    few = dict.fromkeys(set(SIZES) - {"public"}, 40)
    targets = {"epochs": (1,), "null_epochs": (1,), "dp_epsilons": (3.0,), "dp_batch": 40}
    config = replace(TINY, base=str(tmp_path), **targets, **few)
    pools = TextBench(config).pools()
    assert pools.target_names == (
        "1 epoch",
        "null, 1 epoch",
        "DP, epsilon 3",
        "null, DP, epsilon 3",
    )
    base = TextBench(config).base
    assert base.get_output_embeddings().weight is base.get_input_embeddings().weight
    before = pools.members.helpers["base"]
    for target in pools.target_names:
        assert (pools.members.targets[target] != before).any()


def test_bad_settings_and_too_little_text_are_named_and_each_seed_has_games_of_its_own():
    refused("epochs", replace, TINY, epochs=())
    refused("null_epochs", replace, TINY, null_epochs=(0,))
    refused("prompt: expected a multiple", replace, TINY, prompt=5)
    refused("prompt: expected 8 or 0", replace, TINY, prompt=16, by_chunk=True)
    refused("withheld", replace, TINY, withheld=1.0)
    refused("base: expected a pretrained model", replace, TINY, public=0)
    refused("dp_epsilons", replace, TINY, dp_epsilons=(0.0,))
    with pytest.raises(ValueError, match=r"members: 90000 chunks of 8 tokens asked for, \d+ left"):
        _ = TextBench(replace(TINY, members=90_000)).text
    for name in ("judged", "chosen"):
        refused(name, text_audit, 100, **{name: 1.0})
    audit = text_audit(32_000, 3, judged=0.3125, chosen=1 / 11)
    assert (audit.train, audit.validation, audit.test) == (20_000, 2000, 10_000)
    assert audit.seed == 3000


NAMES = [
    "2 epochs",
    "4 epochs",
    "8 epochs",
    "null, 4 epochs",
    "DP, epsilon 3",
    "null, DP, epsilon 3",
]


def test_the_papers_levels_stand_beside_ours_and_table_nine_has_the_null_of_each_target():
    printed = {name: printed_bounds(rows) for name, rows in tables.printed_three(NAMES).items()}
    assert list(printed) == ["2 epochs", "4 epochs", "8 epochs", "DP, epsilon 3"]
    eight = [
        printed["8 epochs"][f"paper_{name}"]
        for name in ("eps_tilde", "eps_tilde_sd", "rm_rn", "o1")
    ]
    assert eight == [2.4, 0.53, 3.6, 5.73]
    assert list(tables.printed_three(["1 epoch", "DP, epsilon 7"])) == ["1 epoch"]
    empty = {"paper_eps_tilde": np.nan, "paper_o1": np.nan}
    three = pd.DataFrame(
        {"target": NAMES, "null": ["null" in name for name in NAMES], "o1": 2.0, **empty}
    )
    three = three.assign(eps_tilde=0.5 + three.index, eps_tilde_sd=0.25)
    found = tables.table_nine(three, 4).set_index("target")
    assert list(found.index) == ["without DP, 4 epochs", "DP, epsilon 3"]
    assert list(found["null_eps_tilde"]) == [3.5, 5.5]
    assert found.loc["without DP, 4 epochs", ["paper_eps_tilde", "paper_o1"]].tolist() == [
        0.22,
        2.82,
    ]
    assert tables.table_nine(three[:4], 4).empty
