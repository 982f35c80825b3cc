"""The page "Calculator" in Chromium shows what paperlib.bounds computes, and says what to
correct.
"""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from paperlib.bounds import one_run_epsilon, plan_audit
from paperlib.bounds.one_run.anytime import AnytimeCounts
from paperlib.bounds.one_run.forecast import perfect_epsilon
from paperlib.core.results import round_down
from paperlib.words.claims import lower_bound_claim

pytestmark = pytest.mark.browser

CONFIDENCES = [0.01, 0.5, 0.95, 0.99, 1 - 1e-6, 1 - 1e-12]
COUNTS = sorted(
    {
        (correct, guesses)
        for guesses in (1, 2, 7, 100, 1_001, 1_000_000)
        for correct in (
            0,
            1,
            guesses // 2,
            6 * guesses // 10,
            9 * guesses // 10,
            guesses - 1,
            guesses,
        )
    }
)
SIZES = [2, 3, 30, 1_001, 1_000_000, 10_000_000]
SHOWN = """name => Object.fromEntries([...document.querySelectorAll(`#calc-${name} [data-value]`)]
  .map(node => [node.dataset.name, [Number(node.dataset.value), node.innerText]]))"""


@pytest.fixture
def page_of(visit, book):
    def opened(**screen: str):
        return visit(book / "calculator.html", **screen)

    return opened


def fill(tab, form: str, **values: object) -> None:
    for name, value in values.items():
        tab.fill(f"#calc-{form} [name={name}]", str(value))


@pytest.mark.parametrize(
    ("delta", "times", "confidences"),
    [
        (0.0, 1, CONFIDENCES),
        (1e-9, 1, [0.95]),
        (1e-5, 10, [0.5, 0.95, 1 - 1e-6]),
        (0.01, 1, [0.95]),
    ],
    ids=lambda value: f"{value}" if isinstance(value, float) else "",
)
def test_the_bound_is_that_of_the_library(page_of, delta, times, confidences):
    tab, (right, made) = page_of(), np.array(COUNTS).T
    for confidence in confidences:
        settings = [
            [v, r, {"total": r * times, "delta": delta, "confidence": confidence}]
            for v, r in COUNTS
        ]
        shown = tab.evaluate("all => all.map(one => OneRun.epsilon(...one))", settings)
        expected = one_run_epsilon(
            right, made, total=made * times, delta=delta, confidence=confidence
        )
        np.testing.assert_allclose(shown, expected, rtol=0, atol=1e-6)


def test_a_bound_at_the_wrong_level_is_seen(page_of):
    shown = page_of().evaluate("() => OneRun.epsilon(90, 100, {confidence: 0.949999})")
    assert abs(shown - one_run_epsilon(90, 100)) > 1e-6


@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-12])
def test_the_plan_is_that_of_the_library(page_of, confidence):
    asked = [[n, epsilon] for n in SIZES for epsilon in (0.01, 1, 5.5, 30)]
    shown = page_of().evaluate(
        """([asked, confidence]) => asked.map(([n, epsilon]) => {
        const k = OneRun.median(n, epsilon);
        return [k, OneRun.searched(n, n, confidence), OneRun.searched(k, n, confidence)]; })""",
        [asked, confidence],
    )
    for (n, epsilon), (median, most, typical) in zip(asked, shown, strict=True):
        assert median == binom.ppf(0.5, n, expit(epsilon))
        assert most == pytest.approx(perfect_epsilon(n, confidence=confidence), abs=1e-6)
        counts = np.array([median]), np.array([n])
        searched, _ = AnytimeCounts(1 - confidence, most=n).best(*counts)
        assert typical == pytest.approx(searched, abs=1e-6)


@pytest.mark.parametrize(
    ("correct", "guesses", "delta", "total", "confidence"),
    [
        (90, 100, 0, None, 0.95),
        (50, 100, 0, None, 0.95),
        (1, 1, 0, None, 0.95),
        (0, 9, 0.5, 9, 0.95),
        (900, 1000, 1e-5, 10_000, 0.95),
        (0, 1000, 0, None, 0.999),
        (60, 100, 0.01, 400, 0.9),
        (1_000_000, 1_000_000, 1e-7, 1_000_000, 0.8),
    ],
)
def test_the_form_shows_the_bound_and_the_sentence(
    page_of, correct, guesses, delta, total, confidence
):
    tab = page_of()
    options = {"delta": delta, "confidence": confidence}
    fill(tab, "bound", correct=correct, guesses=guesses, total=total or "", **options)
    epsilon, ceiling = one_run_epsilon(
        [correct, guesses], guesses, total=total or guesses, **options
    )
    value, text = tab.evaluate(SHOWN, "bound")["epsilon"]
    assert value == pytest.approx(epsilon, abs=1e-6)
    assert text == f"ε ≥ {round_down(epsilon):.3f}"
    assert tab.inner_text("#calc-bound .calc-claim") == lower_bound_claim(
        epsilon, delta, confidence, "add/remove", ceiling=ceiling
    )


def test_the_plan_shows_both_bounds_and_the_sentence(page_of):
    tab = page_of()
    fill(tab, "plan", examples=5000, epsilon=1.5, confidence=0.9)
    right, shown = int(binom.ppf(0.5, 5000, expit(1.5))), tab.evaluate(SHOWN, "plan")
    assert f"{right} right" in tab.inner_text("#calc-plan")
    expected = {
        "most-fixed": one_run_epsilon(5000, 5000, confidence=0.9),
        "most-searched": (plan := plan_audit(5000, confidence=0.9)).perfect,
        "typical-fixed": one_run_epsilon(right, 5000, confidence=0.9),
    }
    assert {name: shown[name][0] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert plan.claim in tab.inner_text("#calc-plan .calc-claim")
    assert set(shown) == {*expected, "typical-searched"}


@pytest.mark.parametrize(
    ("form", "values", "field", "advice"),
    [
        ("bound", {"guesses": "many"}, "guesses", "Write a whole number from 1"),
        ("bound", {"guesses": 10.5}, "guesses", "Write a whole number from 1"),
        ("bound", {"confidence": 1}, "confidence", "between 0 and 1"),
        ("bound", {"correct": 101}, "correct", "from 0 to 100, the number of guesses"),
        ("bound", {"confidence": 95}, "confidence", "0.95 for 95 %"),
        ("bound", {"delta": 1}, "delta", "Write 0, or a number below 1"),
        ("bound", {"delta": 0.1}, "total", "Write a whole number from 100"),
        ("bound", {"total": 99}, "total", "the number of guesses"),
        ("plan", {"examples": 1}, "examples", "from 2 to"),
        ("plan", {"epsilon": -1}, "epsilon", "from 0 to 100"),
        ("plan", {"confidence": ""}, "confidence", "between 0 and 1"),
    ],
)
def test_a_wrong_entry_gets_one_line_of_advice(page_of, form, values, field, advice):
    tab = page_of()
    fill(tab, form, **values)
    assert tab.evaluate(SHOWN, form) == {}
    wrong = tab.locator(f"#calc-{form} [aria-invalid=true]")
    assert wrong.evaluate_all("all => all.map(one => one.name)") == [field]
    line = tab.inner_text(f"#{wrong.get_attribute('aria-describedby')}")
    assert advice in line
    assert "\n" not in line


def test_the_calculator_works_from_the_keyboard_alone(page_of):
    tab = page_of(screen="phone", scheme="dark")
    tab.focus("#calc-guesses")
    for entry in ("200", "150", "0.99"):
        tab.keyboard.press("Control+A")
        tab.keyboard.type(entry)
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "calc-delta"
    tab.keyboard.press("Enter")
    value, _ = tab.evaluate(SHOWN, "bound")["epsilon"]
    assert value == pytest.approx(one_run_epsilon(150, 200, confidence=0.99), abs=1e-6)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.get_attribute("#calc-bound .calc-result", "aria-live") == "polite"
