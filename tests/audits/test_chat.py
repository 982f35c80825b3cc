"""Audits of models that only write text: the bound is valid, and no digit that is compared can be
derived.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from paperlib.audits import audit_chat, chat_questions
from paperlib.audits.language.chat import CHAT_KINDS, ChatQuestion, guess
from paperlib.audits.language.corpus import FoundIdentifier
from paperlib.bounds import rank_p_value
from paperlib.data.text.pieces import ReadLog
from paperlib.generators.identifiers import KINDS, generate_identifiers
from tests.bounds.worst_case import largest_gain
from tests.refusals import refused

MD5 = "83a5ef2c9d0b3e71f6a8c3d25b190e47"


def corpus(kind=MD5, count=12, text="Part {} has sum {}."):
    return [text.format(at, value) for at, value in enumerate(generate_identifiers(kind, count, 0))]


def made_up(values, total=10):
    """Questions on one digit each, which takes one of so many values."""
    found = [FoundIdentifier("md5", f"{at:032}", "", at, 1) for at in range(total)]
    return [ChatQuestion(one, "x" * at, "", "1", values) for at, one in enumerate(found)]


def answering(hits):
    return lambda prompt: "1" if len(prompt) < hits else "2"


@pytest.mark.parametrize("tries", [1, 2])
def test_the_bound_and_the_p_value_keep_their_level_exactly(tries):
    """Enumerated: a model that saw nothing, and at epsilon the mechanism that guesses best."""
    n, total, epsilon, delta = 4, 10, 1.0, 1e-3
    options = {"tries": tries, "delta": delta, "confidence": 0.9}
    found = [audit_chat(made_up(n), answering(h), **options).result for h in range(total + 1)]
    bounds, p_values = (
        np.array([getattr(one, name) for one in found]) for name in ("epsilon", "p_value")
    )
    np.testing.assert_allclose(
        p_values, binom.sf(np.arange(total + 1) - 1, total, tries / n), rtol=1e-9
    )
    chance = tries * np.exp(epsilon) / (tries * np.exp(epsilon) + n - tries)
    law = binom.pmf(np.arange(total + 1), total, chance)
    assert law[bounds > epsilon].sum() + total * delta <= 0.1
    twin = np.array(
        [audit_chat(made_up(n), answering(h), confidence=0.5).result.epsilon for h in range(11)]
    )
    assert law[twin > epsilon].sum() > 0.1
    for hits, bound in enumerate(bounds):
        if bound > 0:
            p_value = rank_p_value(hits, [n] * total, bound, top=tries) + total * delta
            assert p_value == pytest.approx(0.1, rel=1e-6)
    assert found[-1].ceiling == bounds[-1]


def most_hits(prior, depends, epsilon, delta, hits):
    """Largest P[so many of two identifiers are hit] over all (epsilon, delta)-DP mechanisms.

    Each guess is a function of the other identifiers that its prompt holds, as ``depends`` says.
    """
    size = len(prior)
    inputs = list(itertools.product(range(size), repeat=2))
    guesses = [list(itertools.product(range(size), repeat=size if one else 1)) for one in depends]
    outputs = list(itertools.product(*guesses))
    place = {pair: at for at, pair in enumerate(itertools.product(inputs, outputs))}
    gain = np.zeros(len(place))
    for (x, y), at in place.items():
        right = sum(y[i][x[1 - i] if depends[i] else 0] == x[i] for i in range(2))
        gain[at] = prior[x[0]] * prior[x[1]] * (right >= hits)
    near = [
        (a, b) for a, b in itertools.permutations(inputs, 2) if (a[0] != b[0]) + (a[1] != b[1]) == 1
    ]
    most = np.exp(epsilon)
    excesses = [((a, b), (place[a, y], 1.0), (place[b, y], most)) for a, b in near for y in outputs]
    laws = np.kron(np.eye(len(inputs)), np.ones(len(outputs)))
    return largest_gain(gain, excesses, delta, laws)


@pytest.mark.parametrize("hits", [1, 2])
@pytest.mark.parametrize("prior", [(0.5, 0.5), (0.5, 0.3, 0.2)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.7, 0.0), (0.7, 0.05)])
def test_no_mechanism_completes_more_where_prompts_hold_earlier_identifiers(
    hits, prior, epsilon, delta
):
    """Two values at least, none likelier than one half, though three can stand there."""
    worst = most_hits(prior, (False, len(prior) == 2), epsilon, delta, hits)
    allowed = rank_p_value(hits, [2, 2], epsilon)
    assert worst <= allowed + 2 * delta + 1e-7
    if len(prior) == 2:
        assert worst >= allowed - 1e-7
        assert (worst > allowed + 1e-3) == (delta > 0)  # the twin that leaves out m delta


def test_identifiers_that_stand_in_each_other_s_prompts_would_break_the_bound():
    """So each stands once, and prompts hold earlier ones alone."""
    assert most_hits((0.5, 0.5), (True, True), 0.0, 0.0, 2) == pytest.approx(0.5)
    assert rank_p_value(2, [2, 2], 0.0) == pytest.approx(0.25)


@pytest.mark.parametrize("kind", CHAT_KINDS)
def test_questions_end_within_identifiers_and_charge_for_digits_that_are_drawn(kind):
    example = KINDS[kind].example.lower()
    (one, *_), short = chat_questions(corpus(example)), kind == "git_short_hash"
    value = one.found.value
    assert (
        f"{one.prompt}{value[len(one.prompt) - len(one.found.before) :]}"
        == one.found.before + value
    )
    whole = value.split()[-1].replace("-", "").removeprefix("0x")
    assert whole.startswith(one.shown + one.answer)
    assert (len(one.shown), len(one.answer)) == ((0, 7) if short else (8, 8))
    # The version digit of a UUID is none, and the sign behind it is beyond the eight digits.
    assert one.values == 16 ** (7 if kind in ("uuid", "git_short_hash") else 8) // 2


@pytest.mark.parametrize(
    "begin", ["01234567", "deadbe", "0000", "aaaaaaaa", "0189abcd", "4445464748", ""]
)
def test_at_least_half_of_the_values_that_begin_alike_are_kept(begin):
    """Odd beginnings leave most values to be found; each question charges for one half that is
    not.
    """
    rng, check = np.random.default_rng(0), KINDS["md5"].check
    drawn = [KINDS["md5"].draw(MD5, rng) for _ in range(400)]
    kept = np.mean([check((begin + value[len(begin) :])[:32]).valid for value in drawn])
    # MD5 without the layout of a UUID are seven in eight.
    assert kept * 7 / 8 > 0.5


def test_what_is_not_fair_is_left_out_and_named():
    texts, log = corpus(count=16), ReadLog()
    values = [text[-33:-1] for text in texts]
    texts[1] += f" Again: {values[1].upper()}"
    texts[2] = f"{values[2][:8]} begins {values[2]}"
    texts[3] = f"{values[3][4:8]} is told of {values[3]}"
    texts[4] = f"commit {values[4][:9]} is short for {texts[4]}"
    texts += [
        "See 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "id 0189d1f2-3c4b-7abc-9dc0-5ffdce74fad2",
    ]
    asked = chat_questions(texts, log=log)
    assert [one.found.value for one in asked] == [values[0], *values[5:]]
    reasons = " ".join(reason for reason, _, _ in log.rows)
    for words in (
        "more than once",
        "checksum",
        "holds a time",
        "holds it, or a part",
        "last digits shown",
    ):
        assert words in reasons
    assert len(chat_questions(texts, limit=10)) == 10
    for options, message in (
        ({"kinds": ["bitcoin_base58"]}, "kinds: parts of bitcoin_base58 tell"),
        ({"kinds": ["uid"]}, "kinds: expected some of"),
        ({"kinds": ["uuid"]}, "corpus: 0 of 1 identifiers are left, 10 needed; .*holds a time: 1"),
        ({"shown": 9}, "shown: expected a number in"),
        ({"before": 3000}, "before: expected a number in"),
    ):
        refused(message, chat_questions, texts, **options)


def test_a_guess_is_found_without_a_look_at_the_truth():
    one = replace(made_up(2)[0], prompt="20260131 2f6b8d1c", shown="2f6b8d1c", answer="90e4a735")
    assert guess(one, "90e4a7353b1e64d7 and md5: 11111111") == "90e4a735"
    assert guess(one, "It goes on: `90E4A735`.") == "90e4a735"
    assert guess(one, "2f6b8d1c90e4a7353b1e") == "90e4a735"
    assert guess(one, "2f6b8d1c-90e4-a735-3b1e") == "90e4a735"
    assert guess(one, "a defaced facade 12345678") == "12345678"
    assert guess(one, "deadbeefdeadbeef") == ""
    assert (
        guess(one, f"{one.prompt}90e4a735") == "90e4a735"
    )  # some repeat the prompt, here with a date
    assert guess(one, "90e4a73") == guess(one, None) == ""
    assert guess(one, "I cannot help with that.") == ""
    assert (
        guess(replace(one, answer="11111111"), "90e4a735 11111111") == "90e4a735"
    )  # the first counts
    assert (
        guess(one, "I cannot go on with 2f6b8d1c.") == guess(one, "20260131, 2f6b8d1c...") == ""
    )  # quoted
    assert (
        guess(one, "<think>after 2f6b8d1c</think>90e4a735")
        == guess(one, "2f6b8d1c 90e4a735")
        == "90e4a735"
    )


def test_answers_without_digits_and_prompts_that_are_alike_are_named():
    questions = chat_questions(corpus())
    quoting = audit_chat(questions, lambda prompt: f"I cannot go on with {prompt[-8:]}.").document(
        subject="x"
    )
    assert quoting.judged(3.0)[1] is None, "what is quoted is no answer"
    first, answers = questions[0].prompt, {one.prompt: one.answer for one in questions[:3]}
    few = audit_chat(questions, lambda prompt: "12345678" if prompt == first else "Sorry").document(
        subject="x"
    )
    assert few.judged(3.0)[1] is None
    assert "1 of 12 answers hold digits, so they say nothing" in few.answer_warnings[0]
    known = audit_chat(questions, lambda prompt: answers.get(prompt, "Sorry")).document(subject="x")
    assert known.judged(3.0)[1] > 3, "what is known stays an answer"
    assert "3 of 12 answers hold digits; look" in known.answer_warnings[0]
    assert audit_chat(questions, lambda _: "12345678").result.warnings == ()
    alike = audit_chat(chat_questions(corpus(), before=0, shown=0), lambda _: "12345678").result
    assert "11 prompts are like another one" in alike.warnings[0]


def test_several_tries_cost_their_chance_and_bad_options_are_refused():
    questions = chat_questions(corpus())
    answers = {one.prompt: one.answer for one in questions}.get
    texts = (text for one in questions for text in ("no idea", one.answer, "12345678"))
    once, thrice = (
        audit_chat(questions, answers),
        audit_chat(questions, lambda _: next(texts), tries=3),
    )
    assert once.result.hits == thrice.result.hits == 12
    assert once.result.epsilon - thrice.result.epsilon == pytest.approx(np.log(3), abs=1e-6)
    assert (once.right.tolist(), max(once.control) < 3) == (12 * [8], True)
    silent = audit_chat(questions, lambda _: "I cannot help.").document(subject="a model")
    assert silent.judged(3.0)[1] is None, "no number that a gate passes"
    claim = audit_chat(questions, answers, model="a box", delta=1e-6).result.claim
    assert "the training of a box is not (ε, 1e-06)-" in claim
    for change, message in (
        ({"questions": questions[:9]}, "questions: expected 10 or more, got 9"),
        ({"questions": [*questions, questions[0]]}, "questions: expected one for each identifier"),
        ({"tries": 0}, "tries"),
        ({"delta": 0.01}, "delta: expected a number in"),
    ):
        refused(message, audit_chat, **{"questions": questions, "complete": answers, **change})
