"""Scores of texts agree with a slow reference written from the formulas, on every path there is."""

import copy
import itertools
import zlib
from functools import partial
from typing import Any

import accelerate
import numpy as np
import pytest
import torch
from tokenizers.processors import TemplateProcessing
from transformers import GPT2Config, GPT2LMHeadModel

from paperlib.attacks.language import score_candidates, score_texts
from paperlib.attacks.language.scores import ATTACKS
from paperlib.attacks.language.windows import text_tokens
from paperlib.models import language
from paperlib.models.language import load_language_model, train_tokenizer
from tests.attacks.tiny import placed
from tests.attacks.tiny import tiny as any_tiny
from tests.refusals import refused

CONTEXT = 128
PREFIX = "nothing here was ever trained on"
TEXTS = [
    "b7a1f3c2",
    "the cat sat on the mat",
    "deadbeef" * 5,
    "ab",
    "one two three four five six seven",
]
CONTEXTS = ["the hash is ", "yesterday ", "", "md5: ", "count with me: "]
NEIGHBOURS = [
    ["c8b2e4d3", "a6c1f1c1"],
    ["the dog sat on it"],
    ["feedbeef" * 5],
    ["ac2", "xd"],
    ["1 2 3 4"],
]


tiny = partial(any_tiny, context=CONTEXT)


@pytest.fixture(scope="module")
def tokenizer():
    found = train_tokenizer([*TEXTS, *CONTEXTS, PREFIX], 270, context=CONTEXT)
    assert found.pad_token is None
    return found


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request):
    return tiny(request.param)


def token_table(model, tokenizer, text, context="", prefix=""):
    """Rows (log p, mean, deviation, margin) of the scored tokens, one text at a time, in
    float64.
    """
    ids, first = placed(tokenizer, text, context)
    before = tokenizer(prefix)["input_ids"] if prefix else []
    model.eval()
    with torch.no_grad():
        logits = model(torch.tensor([before + ids])).logits[0].double().numpy()
    rows = []
    for place in range(first, len(ids)):
        scores = logits[len(before) + place - 1]
        chosen = ids[place]
        logp = scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())
        p = np.exp(logp)
        mean = (p * logp).sum()
        deviation = np.sqrt((p * logp**2).sum() - mean**2)
        rows.append(
            (logp[chosen], mean, deviation, scores[chosen] - np.delete(scores, chosen).max())
        )
    return np.array(rows)


def lowest(values, k):
    return np.mean(sorted(values)[: max(1, int(k * len(values)))])


def reference_scores(model, other, tokenizer, text, context, prefix, neighbours, k):
    table = token_table(model, tokenizer, text, context)
    after = token_table(model, tokenizer, text, context, prefix)
    loss = -table[:, 0].mean()
    loss_other = -token_table(other, tokenizer, text, context)[:, 0].mean()
    rises = table[:, 0] - token_table(other, tokenizer, text, context)[:, 0]
    wrong = rises[table[:, 3] < 0]
    up, down = wrong[wrong > 0].sum(), -wrong[wrong < 0].sum()
    votes = [
        [sum(rises[at : at + size]) > 0 for at in range(len(rises) - size + 1)]
        for size in {min(size, len(rises)) for size in (2, 3, 5, 7, 10, 14, 20, 28, 40)}
    ]
    around = [token_table(model, tokenizer, near, context)[:, 0].mean() for near in neighbours]
    return {
        "loss": -loss,
        "min_k": lowest(table[:, 0], k),
        "min_k_pp": lowest((table[:, 0] - table[:, 1]) / table[:, 2], k),
        "zlib": -loss / len(zlib.compress(text.encode())),
        "hinge": table[:, 3].mean(),
        "ratio": -loss / loss_other,
        "difference": loss_other - loss,
        "ez": (up - down) / (up + down) if len(wrong) else 1.0,
        "wbc": np.mean([np.mean(some) for some in votes]),
        "recall": after[:, 0].mean() / table[:, 0].mean(),
        "recall_hinge": after[:, 3].mean() / table[:, 3].mean(),
        "neighbourhood": -loss - np.mean(around),
    }


@pytest.mark.parametrize("contexts", [None, CONTEXTS], ids=["alone", "in context"])
@pytest.mark.parametrize(("k", "batch_size"), [(0.2, 2), (0.5, 32)])
def test_every_attack_equals_the_slow_reference(model, tokenizer, contexts, k, batch_size):
    other = tiny("gpt2", seed=1)
    options = {"contexts": contexts, "reference": other, "prefix": PREFIX, "neighbours": NEIGHBOURS}
    frame = score_texts(model, tokenizer, TEXTS, k=k, batch_size=batch_size, **options)
    assert tuple(frame.columns) == ATTACKS
    for index, text in enumerate(TEXTS):
        context = contexts[index] if contexts else ""
        slow = reference_scores(
            model, other, tokenizer, text, context, PREFIX, NEIGHBOURS[index], k
        )
        assert frame.loc[index].to_dict() == pytest.approx(slow, rel=1e-4, abs=1e-4)


def test_extraction_probabilities_are_those_of_every_suffix_enumerated(tokenizer):
    """Over all suffixes of three of four tokens, sampled one by one behind a prefix of two; one
    pass each.
    """
    torch.manual_seed(0)
    shape = GPT2Config(
        vocab_size=4, n_embd=16, n_layer=1, n_head=2, n_positions=8, initializer_range=0.5
    )
    model = GPT2LMHeadModel(shape).eval()
    prefix, suffixes = [3, 1], list(itertools.product(range(4), repeat=3))
    rest = [0, 2]  # what follows the suffix changes nothing
    texts = [[*prefix, *suffix, *rest] for suffix in suffixes]
    chances = np.exp(
        score_texts(model, tokenizer, texts, attacks=["loss"], split=(2, 3))["extraction"]
    )
    assert chances.sum() == pytest.approx(1, abs=1e-5)
    with torch.no_grad():
        for chance, suffix in zip(chances, suffixes, strict=True):
            sampled, drawn = 1.0, list(prefix)
            for token in suffix:
                sampled *= float(
                    model(torch.tensor([drawn])).logits[0, -1].double().softmax(-1)[token]
                )
                drawn.append(token)
            assert chance == pytest.approx(sampled, rel=1e-4)
    short = score_texts(model, tokenizer, [texts[0][:5], texts[0][:4]], split=(2, 3))["extraction"]
    assert (short.isna() == [False, True]).all()


@pytest.mark.parametrize("kind", ["gpt2", "llama", "lfm2"])
def test_shared_contexts_batches_order_and_mode_change_no_score(kind, tokenizer):
    """Also where a cache holds the states of convolutions, which cannot be shared."""
    model = tiny(kind)
    texts = [f"{n:08x}" for n in range(0, 10**9, 10**8 + 7)]
    contexts = ["the md5 of the file that was downloaded yesterday is "] * len(texts)
    options = {"contexts": contexts, "prefix": PREFIX, "batch_size": 3}
    shared = score_texts(model, tokenizer, texts, **options)
    apart = score_texts(model, tokenizer, texts, share_context=False, **options)
    np.testing.assert_allclose(shared, apart, rtol=1e-4, atol=1e-4)
    one_by_one = score_texts(model, tokenizer, TEXTS, batch_size=1)
    model.train()
    together = score_texts(model, tokenizer, TEXTS[::-1], batch_size=64)[::-1]
    assert model.training
    np.testing.assert_allclose(one_by_one, together, rtol=1e-5, atol=1e-5)


def test_a_text_longer_than_the_context_scores_each_token_once(tokenizer):
    """The windows by hand: the first is full, each later one scores what follows half a window."""
    model = tiny("llama")
    text = "a1b2c3d4 the cat sat " * 20
    ids = tokenizer(text, verbose=False)["input_ids"]
    assert len(ids) > 2 * CONTEXT
    expected, scored = [], 1
    begin, half = 0, CONTEXT // 2
    with torch.no_grad():
        while scored < len(ids):
            end = min(len(ids), begin + CONTEXT)
            logp = model(torch.tensor([ids[begin:end]])).logits[0].double().log_softmax(-1)
            expected += [float(logp[place - begin - 1, ids[place]]) for place in range(scored, end)]
            scored, begin = end, end - half
    assert len(expected) == len(ids) - 1
    assert score_texts(model, tokenizer, [text])["loss"][0] == pytest.approx(
        np.mean(expected), abs=1e-4
    )
    after_prefix = score_texts(model, tokenizer, [text], prefix=PREFIX)
    assert np.isfinite(after_prefix.to_numpy()).all()


def test_a_context_that_does_not_fit_loses_its_beginning(tokenizer):
    model = tiny("llama")
    context, text = "the cat sat on the mat " * 30, "deadbeef"
    ids, first = placed(tokenizer, text, context)
    with torch.no_grad():
        logp = model(torch.tensor([ids[-CONTEXT:]])).logits[0].double().log_softmax(-1)
    expected = np.mean([float(logp[at - len(ids) - 1, ids[at]]) for at in range(first, len(ids))])
    found = score_texts(model, tokenizer, [text], contexts=[context], attacks=["loss"])["loss"][0]
    assert found == pytest.approx(expected, abs=1e-4)


def test_a_vocabulary_of_equal_chances_and_a_certain_model_stay_finite(tokenizer):
    model = tiny("gpt2")
    for parameter in model.parameters():
        parameter.data.zero_()
    scores = score_texts(model, tokenizer, TEXTS, prefix=PREFIX)
    assert np.isfinite(scores.to_numpy()).all()
    assert scores["loss"].to_numpy() == pytest.approx(-np.log(400))
    assert scores["min_k_pp"].to_numpy() == pytest.approx(0.0, abs=1.0)


def test_candidates_come_back_as_sets(tokenizer):
    model = tiny("gpt2")
    sets, options = (
        [["aa11", "bb22", "cc33"], ["dd44", "ee55", "ff66"]],
        {"attacks": ["loss", "hinge"]},
    )
    values, names = score_candidates(model, tokenizer, sets, contexts=["x: ", "y: "], **options)
    assert values.shape == (2, 3, 2)
    assert names == ("loss", "hinge")
    flat = score_texts(model, tokenizer, ["ee55"], contexts=["y: "], attacks=["hinge"])
    assert values[1, 1, 1] == pytest.approx(flat["hinge"][0], abs=1e-5)
    refused("sizes", score_candidates, model, tokenizer, [["a1", "b2"], ["c3"]])


def test_bad_input_is_named(tokenizer):
    model = tiny("gpt2")
    for texts, options, message in (
        ("one string", {}, "got str; put its texts in a list"),
        ([], {}, "at least one text"),
        (dict.fromkeys(TEXTS, 1), {}, "got dict; put its texts in a list"),
        (["a1b2", ""], {}, "index 1"),
        ([None], {}, "non-empty strings"),
        (TEXTS, {"attacks": ["los"]}, "attacks: expected different names"),
        (TEXTS, {"attacks": ["loss", "recall"]}, "prefix: needed for recall"),
        (TEXTS, {"attacks": ["ratio"]}, "reference: needed"),
        (TEXTS, {"attacks": ["neighbourhood"]}, "neighbours: needed"),
        (TEXTS, {"attacks": ["ez"]}, "reference of the same tokenizer: needed for ez"),
        (
            TEXTS,
            {"split": (100, 29)},
            "split: a prefix of 100 and a suffix of 29 tokens do not fit",
        ),
        (TEXTS, {"split": (0, 5)}, "prefix_tokens: expected 1 or more"),
        (
            TEXTS,
            {"split": (5, 5), "contexts": CONTEXTS},
            "split: takes the prefix from the text itself",
        ),
        (TEXTS, {"attacks": []}, "attacks"),
        (TEXTS, {"k": 1.5}, r"k: expected a number in \(0, 1\]"),
        (TEXTS, {"k": 0.0}, r"k: expected a number in \(0, 1\]"),
        (TEXTS, {"batch_size": 0}, "batch_size: expected 1 or more"),
        (TEXTS, {"contexts": ["a"]}, "contexts: expected 5"),
        (TEXTS, {"contexts": "a"}, "one string"),
        (TEXTS, {"neighbours": [["a1"]]}, "neighbours: expected 5"),
        (TEXTS, {"neighbours": [["a1"]] * 4 + [[]]}, r"neighbours\[4\]"),
        (TEXTS, {"prefix": ""}, "prefix"),
        (TEXTS, {"prefix": "the cat sat on the mat " * 5}, "at most half"),
        (TEXTS, {"max_length": 1}, "max_length: expected 2 to 128"),
        (TEXTS, {"max_length": 129}, "max_length: expected 2 to 128"),
        (["a"], {}, "nothing before"),
    ):
        refused(message, score_texts, model, tokenizer, texts, **options)
    padded = copy.deepcopy(tokenizer)
    padded.pad_token = padded.eos_token
    for side in ("right", "left"):
        rows = padded(TEXTS, padding=True, padding_side=side)["input_ids"]
        refused(
            "texts: [0-9] begins or ends with padding, tokens 0", score_texts, model, padded, rows
        )
    ended = [[*row, 0] for row in tokenizer(TEXTS)["input_ids"]]
    assert len(score_texts(model, padded, ended)) == len(TEXTS)  # one end of text is no padding
    small = GPT2LMHeadModel(
        GPT2Config(vocab_size=60, n_embd=8, n_layer=1, n_head=1, n_positions=CONTEXT)
    )
    refused(
        "the model has tokens 0 to 59; take the model's own", score_texts, small, tokenizer, TEXTS
    )


def test_a_model_that_returns_nan_is_refused_with_the_text(tokenizer):
    model = tiny("llama")
    model.model.embed_tokens.weight.data[tokenizer("zz")["input_ids"][0]] = torch.nan
    with pytest.raises(ValueError, match=r"NaN or infinity.*texts\[1\]"):
        score_texts(model, tokenizer, ["aabb", "zzzz", "ccdd"], batch_size=1, attacks=["loss"])
    with pytest.raises(ValueError, match=r"^reference: returned NaN.*texts\[0\]"):
        score_texts(tiny("llama"), tokenizer, ["zzzz"], reference=model)
    with pytest.raises(ValueError, match=r"neighbours, all in one list: \[1\]"):
        score_texts(model, tokenizer, ["aabb"], neighbours=[["aa", "zz"]])


def test_an_unknown_device_or_number_format_and_missing_packages_are_named(monkeypatch):
    refused("dtype", load_language_model, "x", dtype="float8")
    for device in ("gpu", "cuda:97"):
        refused(rf"device: expected 'cpu'.*'{device}'", load_language_model, "x", device=device)
    for options, absent, words in (
        ({"dtype": "int8"}, "bitsandbytes", "'int8' needs bitsandbytes: pip install bitsandbytes"),
        (
            {"device": "auto"},
            "accelerate",
            "device 'auto' needs accelerate: pip install accelerate",
        ),
    ):
        monkeypatch.setattr(
            language, "find_spec", lambda name, absent=absent: name != absent or None
        )
        refused(words, load_language_model, "x", **options, error=ModuleNotFoundError)


@pytest.fixture
def folder(tokenizer, tmp_path):
    tiny("llama").save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_a_folder_loads_in_every_number_format_and_on_all_devices(folder, tokenizer):
    expected = score_texts(tiny("llama"), tokenizer, TEXTS, attacks=["loss"])
    formats = (("auto", "auto", 1e-5), ("bfloat16", "auto", 0.1), ("float16", "cpu", 0.05))
    for dtype, device, tolerance in formats:
        model, own = load_language_model(folder, dtype=dtype, device=device)
        found = score_texts(model, own, TEXTS, attacks=["loss"])
        np.testing.assert_allclose(found, expected, rtol=tolerance)
    # As with device="auto" where the GPUs do not hold all of the model.
    model = accelerate.cpu_offload(tiny("llama"), execution_device=torch.device("cpu"))
    assert next(model.parameters()).device.type == "meta"
    np.testing.assert_allclose(
        score_texts(model, tokenizer, TEXTS, attacks=["loss"]), expected, rtol=1e-5
    )


def test_eight_bit_is_asked_of_the_library(folder, monkeypatch):
    """The arguments alone: bitsandbytes is for those who have it."""
    asked = {}

    def loading(name, **options):
        asked.update(options)
        return tiny("llama"), {"missing_keys": set(), "mismatched_keys": set()}

    monkeypatch.setattr(language, "find_spec", lambda name: name)
    monkeypatch.setattr(language.transformers.AutoModelForCausalLM, "from_pretrained", loading)
    load_language_model(folder, dtype="int8", device="auto", revision=None)
    assert asked["quantization_config"].load_in_8bit
    assert asked["device_map"] == "auto"
    assert "dtype" not in asked


def test_eight_bits_score_nearly_as_thirty_two(folder):
    """On a CPU too. Rounding weights to 8 bits moves scores a little, and far less than texts
    differ.
    """
    pytest.importorskip("bitsandbytes", reason="pip install bitsandbytes to load models in 8 bits")
    whole, tokenizer = load_language_model(folder, dtype="float32", device="cpu")
    rounded, _ = load_language_model(folder, dtype="int8", device="cpu")
    assert rounded.model.layers[0].mlp.up_proj.weight.dtype == torch.int8
    expected, found = (score_texts(one, tokenizer, TEXTS)["loss"] for one in (whole, rounded))
    moved = np.abs(found - expected)
    assert 0 < moved.max() < 0.1 * expected.std()


def test_an_end_token_is_no_token_of_the_text(model, tokenizer):
    ends = copy.deepcopy(tokenizer)
    last = ends.convert_ids_to_tokens(len(ends) - 1)
    ends.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"$A {last}", special_tokens=[(last, len(ends) - 1)]
    )
    assert ends(TEXTS[0])["input_ids"][-1] == len(ends) - 1
    for contexts in (None, [""] * len(TEXTS)):
        options = {"attacks": ["loss"], "contexts": contexts}
        plain, ended = (score_texts(model, one, TEXTS, **options) for one in (tokenizer, ends))
        np.testing.assert_array_equal(plain, ended)


def with_special_tokens(*before, behind=()):
    """A tokenizer that puts tokens before and behind each text, and knows them in texts."""
    tokenizer: Any = train_tokenizer([*TEXTS, *CONTEXTS, PREFIX], 270, context=CONTEXT)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<one>", "<two>", "<end>"]})
    tokens = (*before, *behind)
    tokenizer._tokenizer.post_processor = TemplateProcessing(
        single=" ".join([*before, "$A", *behind]),
        special_tokens=[(token, tokenizer.convert_tokens_to_ids(token)) for token in tokens],
    )
    return tokenizer


class WithoutOffsets:
    """A tokenizer as those written in Python are."""

    is_fast = False

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def __call__(self, *texts, **options):
        return self._tokenizer(*texts, **options)

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)


@pytest.mark.parametrize("without_offsets", [False, True])
@pytest.mark.parametrize(
    ("before", "brought"),
    [
        (["<one>"], "<one>"),
        (["<one>", "<two>"], "<one><two>"),
        (["<one>", "<two>"], "<one>"),
        (["<one>", "<two>"], "<two>"),
    ],
)
def test_start_tokens_of_a_text_and_of_the_tokenizer_are_read_once(
    before, brought, without_offsets
):
    """Alone, behind a context, and where the context brings them."""
    model = tiny("gpt2")
    tokenizer = with_special_tokens(*before, behind=["<end>"])
    if without_offsets:
        tokenizer = WithoutOffsets(tokenizer)
    start = tokenizer.convert_tokens_to_ids(before)
    plain = tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    expected = [[*start, *row] for row in plain]
    assert text_tokens(tokenizer, TEXTS) == expected
    with pytest.warns(UserWarning, match="5 of 5 texts began with start tokens twice"):
        assert text_tokens(tokenizer, [brought + text for text in TEXTS]) == expected
    options = {"split": (3, 2)}
    alone = score_texts(model, tokenizer, TEXTS, **options)
    with pytest.warns(UserWarning, match="5 of 5 texts"):
        again = score_texts(model, tokenizer, [brought + text for text in TEXTS], **options)
    attacks = alone.columns.drop("zlib")  # which reads letters
    np.testing.assert_array_equal(alone[attacks], again[attacks])
    for contexts in (CONTEXTS, [""] * len(TEXTS)):
        behind = score_texts(model, tokenizer, TEXTS, contexts=contexts)
        with pytest.warns(UserWarning, match="5 of 5 texts"):
            again = score_texts(
                model, tokenizer, TEXTS, contexts=[brought + context for context in contexts]
            )
        np.testing.assert_array_equal(behind, again)


def test_special_tokens_before_a_text_are_not_scored_but_count_in_a_split():
    """Against the model's own log-probabilities."""
    model = tiny("gpt2").eval()
    tokenizer = with_special_tokens("<one>", "<two>")
    (tokens,) = text_tokens(tokenizer, TEXTS[1:2])
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
    log_probs = [float(logits[index - 1, tokens[index]]) for index in range(1, len(tokens))]
    frame = score_texts(model, tokenizer, TEXTS[1:2], attacks=["loss"], split=(4, 3))
    assert frame["loss"][0] == pytest.approx(np.mean(log_probs[1:]), abs=1e-5)
    assert frame["extraction"][0] == pytest.approx(sum(log_probs[3:6]), abs=1e-5)
