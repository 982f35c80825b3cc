"""Audit the privacy of machine-learning models without retraining them.

The names of this package are loaded when they are first used, so that ``import paperlib`` stays
fast.

>>> from paperlib import MembershipScores, audit_one_run
>>> scores = MembershipScores(member=range(20, 60), nonmember=range(40))
>>> print(audit_one_run(scores, design="game").headline)
ε ≥ 1.200 (δ = 0, confidence 0.95; 13 of 13 guesses right, 40 examples)
"""

import lazy_loader

from paperlib.core.earlier_names import with_earlier_names

__version__ = "1.0.0rc1"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_EARLIER = {
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
}
"""Names that this package exported until 1.0.0rc1, and where they are."""

__getattr__ = with_earlier_names(__name__, _load, _EARLIER)
