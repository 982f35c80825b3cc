"""The validity study: every bound of the library beside the rules in common use."""

from dataclasses import replace

import pandas as pd

from paperlib.validity import common_rules as rules
from paperlib.validity import mechanisms as known
from paperlib.validity.cases import our_cases
from paperlib.validity.coverage import Case, ValidityConfig, against, simulate
from paperlib.validity.mechanisms import Mechanism


def coverage(config: ValidityConfig) -> pd.DataFrame:
    """Rates of wrong bounds, every bound of the library; columns as in `simulate`."""
    return simulate(our_cases(config), config)


def false_positives(config: ValidityConfig) -> pd.DataFrame:
    """Rates of wrong bounds, the rules in common use; columns as in `simulate`."""
    return simulate(rule_cases(config), config)


def rule_cases(config: ValidityConfig) -> list[Case]:
    """Rules in common use, and a control that needs no correction because it searches nothing.

    A search goes wrong more often the more there is to search: four times as many examples as elsewhere.
    """
    config = replace(config, examples=4 * config.examples)
    pure = [known.no_leakage(), known.laplace(1.0)]
    named: list[tuple[str, rules.Rule]] = [
        ("control: number of guesses fixed in advance", rules.fixed_count),
        ("best threshold, uncorrected", rules.best_threshold),
        ("best cut with everyone guessed, uncorrected", rules.best_cut),
        ("best pair of tails, uncorrected", rules.best_pair),
        ("best Clopper-Pearson threshold, uncorrected", rules.best_clopper_pearson),
        ("best approximate ratio interval, uncorrected", rules.best_ratio),
        ("point estimate at the best threshold", rules.point_estimate),
    ]
    cases = [_rule(name, rule, mechanism, config) for name, rule in named for mechanism in pure]
    # A rate of 6 % at a nominal 5 % shows only in many trials.
    hull = _rule("corrected by the size of the ROC hull", rules.hull_corrected, pure[0], config, 10.0)
    nothing, uneven = known.no_leakage(), known.unbalanced(9 * config.examples // 10, config.examples // 10)
    answered = known.randomized_response(1.0)
    return [
        *cases,
        hull,
        _rule("point estimate at a threshold fixed in advance", rules.fixed_point_estimate, nothing, config),
        _rule("point estimate at a threshold fixed in advance", rules.fixed_point_estimate, answered, config),
        _rule("Gaussian DP with the sign of μ dropped", rules.absolute_mu, nothing, config),
        _rule("unbalanced classes unchecked, number of guesses fixed", rules.fixed_count, uneven, config),
        _rule("unbalanced classes unchecked, ROC hull", rules.hull_corrected, uneven, config),
    ]


def _rule(
    name: str, rule: rules.Rule, mechanism: Mechanism, config: ValidityConfig, share: float = 1.0
) -> Case:
    control = name.startswith("control")
    family = "rules in common use"
    return against(family, name, mechanism, rule, config.examples, share=share, valid=control)
