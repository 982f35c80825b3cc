from . import audits as audits
from . import bounds as bounds
from . import core as core
from .audits import audit_images as audit_images
from .audits import audit_language_model as audit_language_model
from .audits import audit_scores as audit_scores
from .audits import audit_table as audit_table
from .audits import audit_text as audit_text
from .bounds import AuditPlan as AuditPlan
from .bounds import audit_bayesian as audit_bayesian
from .bounds import audit_clopper_pearson as audit_clopper_pearson
from .bounds import audit_f_dp as audit_f_dp
from .bounds import audit_gaussian_dp as audit_gaussian_dp
from .bounds import audit_one_run as audit_one_run
from .bounds import audit_output_set as audit_output_set
from .bounds import audit_panoramia as audit_panoramia
from .bounds import audit_ranks as audit_ranks
from .bounds import epsilon_star as epsilon_star
from .bounds import epsilon_star_normals as epsilon_star_normals
from .bounds import fit_output_set as fit_output_set
from .bounds import one_run_epsilon as one_run_epsilon
from .bounds import one_run_p_value as one_run_p_value
from .bounds import optimal_output_set as optimal_output_set
from .bounds import plan_audit as plan_audit
from .core import AuditResult as AuditResult
from .core import MembershipScores as MembershipScores

__version__: str
