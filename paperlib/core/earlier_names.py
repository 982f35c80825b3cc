"""Names that a package exported before, which work until the next release and name their place."""

import importlib
import warnings
from collections.abc import Callable

PLACES = {
    "paperlib": {
        "AuditPlan": "paperlib.bounds.one_run.planning",
        "AuditResult": "paperlib.core",
        "audit_bayesian": "paperlib.bounds",
        "audit_clopper_pearson": "paperlib.bounds",
        "audit_f_dp": "paperlib.bounds",
        "audit_gaussian_dp": "paperlib.bounds",
        "audit_losses": "paperlib.audits",
        "audit_output_set": "paperlib.bounds",
        "audit_panoramia": "paperlib.bounds",
        "audit_ranks": "paperlib.bounds",
        "epsilon_star": "paperlib.bounds",
        "epsilon_star_normals": "paperlib.bounds",
        "fit_output_set": "paperlib.bounds",
        "one_run_epsilon": "paperlib.bounds",
        "one_run_p_value": "paperlib.bounds",
        "optimal_output_set": "paperlib.bounds",
    },
    "paperlib.bounds": {
        "AuditPlan": "paperlib.bounds.one_run.planning",
        "BayesianResult": "paperlib.bounds.many_runs.bayesian",
        "ClopperPearsonResult": "paperlib.bounds.many_runs.clopper_pearson",
        "CombinedResult": "paperlib.bounds.one_run.combine",
        "DetectionLimit": "paperlib.bounds.one_run.detection",
        "EpsilonStarResult": "paperlib.bounds.loss_rates.audit",
        "FdpResult": "paperlib.bounds.one_run.f_dp",
        "GameSpread": "paperlib.bounds.one_run.fair_coins",
        "GaussianDpResult": "paperlib.bounds.many_runs.gaussian_dp",
        "ManyRunsResult": "paperlib.bounds.many_runs.clopper_pearson",
        "OneRunResult": "paperlib.bounds.one_run.audit",
        "OutputSetResult": "paperlib.bounds.output_sets.audit",
        "PanoramiaResult": "paperlib.bounds.panoramia",
        "RankAuditResult": "paperlib.bounds.ranks.audit",
        "SelectionRule": "paperlib.bounds.output_sets.choices",
        "clopper_pearson_epsilon": "paperlib.bounds.many_runs.clopper_pearson",
        "f_dp_parameter": "paperlib.bounds.one_run.f_dp",
        "fair_coin_p_value": "paperlib.bounds.one_run.fair_coins",
        "gaussian_dp_epsilon": "paperlib.bounds.many_runs.gaussian_dp",
        "panoramia_ceiling": "paperlib.bounds.panoramia",
        "perfect_epsilon": "paperlib.bounds.one_run.forecast",
        "play_game": "paperlib.bounds.one_run.fair_coins",
        "rank_limit_of_detection": "paperlib.bounds.ranks.detection",
        "rank_scores": "paperlib.bounds.one_run.combine",
        "rank_success_probability": "paperlib.bounds.ranks.p_values",
        "ratio_scores": "paperlib.bounds.output_sets.choices",
    },
    "paperlib.audits": {
        "AuditData": "paperlib.audits.panoramia.audit",
        "AuditDocument": "paperlib.audits.document",
        "Audits": "paperlib.audits.score_results",
        "CandidateScores": "paperlib.audits.candidates",
        "ChatAudit": "paperlib.audits.language.chat",
        "ChatQuestion": "paperlib.audits.language.chat",
        "ChatResult": "paperlib.audits.language.chat",
        "DpCheck": "paperlib.audits.dp_training.checks",
        "DpTrainingAudit": "paperlib.audits.dp_training.audit",
        "FeaturesResult": "paperlib.audits.features",
        "FoundIdentifier": "paperlib.audits.language.corpus",
        "ImageDefaults": "paperlib.audits.panoramia.images",
        "LanguageModelAudit": "paperlib.audits.language.language_model",
        "PanoramiaAudit": "paperlib.audits.panoramia.audit",
        "ReleaseAudit": "paperlib.audits.releases.audit",
        "ScoreAudit": "paperlib.audits.score_results",
        "SealedPlan": "paperlib.audits.planned.sealed_plan",
        "TextDefaults": "paperlib.audits.panoramia.text",
        "TextsAudit": "paperlib.audits.language.texts",
        "corpus_identifiers": "paperlib.audits.language.corpus",
        "open_corpus": "paperlib.audits.language.corpus",
    },
}
"""By package, each earlier name and the module or package that has it."""


def with_earlier_names(package: str, load: Callable[[str], object]) -> Callable[[str], object]:
    """``__getattr__`` of a package that also finds its earlier names.

    Args:
        package: As in ``PLACES``.
        load: The package's ``__getattr__`` for the names that it exports.

    Returns:
        A function of a name. An earlier name comes from its place, with a `DeprecationWarning`
        that says where it is; every other name goes to ``load``, with its AttributeError.
    """
    places = PLACES[package]

    def attribute(name: str) -> object:
        if name not in places:
            return load(name)
        warnings.warn(
            f"{package} no longer exports {name}: write from {places[name]} import {name}",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(places[name]), name)

    return attribute
