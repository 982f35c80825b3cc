"""From scores or counts to epsilon: pure functions, one module per family of bounds.

Names are imported when they are first used, so that an audit loads the family of its bound alone.
"""

# pyright: basic
import lazy_loader  # without types

from paperlib.core.earlier_names import with_earlier_names

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_EARLIER = {
    "AuditPlan": "paperlib.bounds.one_run.planning",
    "BayesianResult": "paperlib.bounds.many_runs.bayesian",
    "ClopperPearsonResult": "paperlib.bounds.many_runs.clopper_pearson",
    "CombinedResult": "paperlib.bounds.one_run.combine",
    "DetectionLimit": "paperlib.bounds.one_run.detection",
    "EpsilonStarResult": "paperlib.bounds.loss_rates.audit",
    "FdpResult": "paperlib.bounds.claims.f_dp",
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
}
"""Names that this package exported until 1.0.0rc1, and where they are."""

__getattr__ = with_earlier_names(__name__, _load, _EARLIER)
