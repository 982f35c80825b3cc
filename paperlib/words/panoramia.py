"""What a PANORAMIA audit supports: its claim, its assumptions and its warnings."""

from typing import TYPE_CHECKING

from paperlib.core.results import round_down, round_up
from paperlib.words.claims import NEIGHBOURS, lower_bound_claim

if TYPE_CHECKING:
    from paperlib.bounds.one_run.search import RecallTest
    from paperlib.bounds.panoramia import PanoramiaResult
    from paperlib.bounds.panoramia_terms import Terms


def condition(known_c: float | None) -> str:
    """What must stand beside the number; ``known_c`` is the generator's c where it is known."""
    if known_c is None:
        return (
            "a measurement: it speaks of leakage only if no better baseline could tell real "
            "from generated records"
        )
    return (
        f"assumes that the generator's c is at most {known_c:g} by construction: it "
        "speaks of replacing one record"
    )


def headline(result: "PanoramiaResult") -> str:
    """The number, nats, on one line, with both bounds and what must be seen beside it: a bound on
    epsilon where c is known, else a measurement.
    """
    both_bounds = (
        f"c ≥ {round_down(result.c_lb):.3f}, c + ε ≥ {round_down(result.c_plus_epsilon_lb):.3f}"
    )
    ending = f"δ = {result.delta:g}, confidence {result.confidence:g}"
    after = f"; {result.beside}" if result.beside else ""
    if result.epsilon is not None:
        return (
            f"ε ≥ {round_down(result.epsilon):.3f} (known c = {result.known_c:g}; {both_bounds}; "
            f"{ending}){after}"
        )
    measured = f"{round_down(result.epsilon_tilde):.3f}"
    return f"ε~ = {measured} (a measurement; {both_bounds}; {ending}){after}"


def claim(result: "PanoramiaResult") -> str:
    """The sentence that the two bounds support."""
    if result.epsilon is None:
        return _measured(result)
    return _bounded(result, result.epsilon, result.known_c or 0.0)


def _bounded(result: "PanoramiaResult", epsilon: float, known_c: float) -> str:
    """The claim where the generator's c is known, so that epsilon has a lower bound."""
    most = max(0.0, result.ceiling - known_c)
    bound = lower_bound_claim(epsilon, result.delta, result.confidence, "replace", ceiling=most)
    return (
        f"Lower bound on the mechanism, given a generator with c = {known_c:g}. {bound} "
        f"Here c + epsilon is at least {round_down(result.c_plus_epsilon_lb):.3f}, and at the same "
        f"confidence of its own c is at least {round_down(result.c_lb):.3f} ({_terms(result)})."
    )


def _measured(result: "PanoramiaResult") -> str:
    """The claim where c is bounded from below only, so that the difference is a measurement."""
    c_lb, both_lb = round_down(result.c_lb), round_down(result.c_plus_epsilon_lb)
    most = ""
    if result.epsilon_tilde <= 0:
        ceiling = f"{round_up(result.ceiling):.3f}"
        most = f" A perfect attack on so many examples would show c + epsilon of at most {ceiling}."
        if result.ceiling <= 0:
            most = " So few examples can show nothing, however good the attack: nothing is learned."
    return (
        "Measurement of the trained model, not a lower bound on epsilon: PANORAMIA could not "
        f"reject a claim of c-closeness for the generator at c = {c_lb:.3f}, and if this claim is "
        "tight, then the model cannot be the output of a mechanism that is (epsilon, "
        f"{result.delta:g})-differentially private under {NEIGHBOURS['replace']} for any epsilon "
        f"below {round_down(result.epsilon_tilde):.3f}. With confidence {result.confidence:g}, c "
        f"is at least {c_lb:.3f} and c + epsilon at least {both_lb:.3f}, both together "
        f"({_terms(result)}).{most}"
    )


def _terms(result: "PanoramiaResult") -> str:
    """Adjacency and relaxations of both bounds."""
    return f"replacement adjacency, delta = {result.delta:g}, gamma = {result.gamma:g}"


def assumptions(order: str, total: int, terms: "Terms") -> tuple[str, ...]:
    """What a result takes for granted.

    Args:
        order: "learned", or the search over ``total`` recall levels: "union" or "anytime".
        total: Number of examples.
        terms: What both tests take for granted.
    """
    coins = (
        "a fair coin decided for each audit example whether it is a real member or a "
        "generated point"
    )
    if terms.design == "game":
        coins += (
            f": drawn here with seed {terms.seed}. Another seed gives another result; picking the "
            "largest over seeds is a search that the confidence does not cover"
        )
    correction = {
        "union": (
            f"the threshold search is corrected by a union bound over {total} recall levels "
            "per test"
        ),
        "anytime": (
            "every guess count is tested at once by a supermartingale in the order of the scores"
        ),
        "learned": "every guess count is tested at once by a supermartingale; which example is "
        "guessed next, and which is only looked at, depends on nothing but the features and the "
        "coins revealed before it",
    }[order]
    gamma, known_c = terms.gamma, terms.known_c
    closeness = "the generator gives every point at least e^-c of its true probability"
    if gamma > 0:
        closeness += f", outside a set of true probability {gamma:g}"
    shared = "the two tests share the error equally"
    if known_c is None:
        leakage = (
            "epsilon~ speaks of leakage only if the baseline is as good at telling real from "
            "generated points as the target's information allows; check it with a null model, a "
            "target that never saw the members, for which epsilon~ must be 0"
        )
    else:
        shared = "the attack's test has the whole error; the baseline's is a check of c beside it"
        leakage = f"the generator's c is at most {known_c:g} by construction, not by estimation"
    seen = "scores"
    fixed = (
        "attack, baseline and their settings were fixed on other examples; this test split is "
        "touched once"
    )
    if order == "learned":
        seen = "features"
        fixed = (
            "features, model and settings were fixed without a look at these coins, which are "
            "used once"
        )
    return (
        coins,
        closeness,
        (
            f"the baseline's {seen} depend on the examples alone; generated points are independent "
            "of the model"
        ),
        f"{shared}; {correction}",
        fixed,
        leakage,
    )


def warnings(tests: "tuple[RecallTest, RecallTest]", known_c: float | None) -> tuple[str, ...]:
    """Problems of this very run.

    Args:
        tests: The baseline's and the attack's, in this order.
        known_c: The generator's c where it is known, nats; else None.
    """
    baseline, attack = tests
    messages: list[str] = []
    if baseline.bound > baseline.ceiling / 2:
        messages.append(
            f"c_lb {round_down(baseline.bound):.3f} is above half of this test's ceiling "
            f"{round_down(baseline.ceiling):.3f}: the generator is easily told from real data, and "
            "epsilon~ may be positive for a model that never saw the members; compare with a null "
            "model"
        )
    if known_c is not None and baseline.bound > known_c:
        messages.append(
            f"known_c = {known_c:g} is refuted by the baseline, which shows c of at least "
            f"{round_down(baseline.bound):.3f}; so that no lower bound on epsilon follows"
        )
    if attack.bound > 0.99 * attack.ceiling > 0:  # as good as all that the test can show
        messages.append(
            f"c + epsilon sits at the ceiling {round_down(attack.ceiling):.3f} of a perfect attack "
            "at this size: it measures the size of the test"
        )
    for test in tests:
        if test.ceiling <= 0:
            advice = "relax less"
            if test.search == "union":
                advice = "use search='anytime' or a smaller relaxation"
            messages.append(
                f"the {test.name} test cannot refute anything at this size, gamma and delta, "
                f"whatever the scores: {advice}"
            )
    return tuple(messages)
