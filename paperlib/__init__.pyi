from . import audits as audits
from . import bounds as bounds
from . import core as core
from .audits import assert_private as assert_private
from .audits import audit as audit
from .audits import audit_dp_training as audit_dp_training
from .audits import audit_features as audit_features
from .audits import audit_images as audit_images
from .audits import audit_labels as audit_labels
from .audits import audit_language_model as audit_language_model
from .audits import audit_release as audit_release
from .audits import audit_scores as audit_scores
from .audits import audit_table as audit_table
from .audits import audit_text as audit_text
from .audits import audit_texts as audit_texts
from .audits import losses as losses
from .audits import seal_plan as seal_plan
from .bounds import audit_one_run as audit_one_run
from .bounds import combine_runs as combine_runs
from .bounds import plan_audit as plan_audit
from .core import Coins as Coins
from .core import MembershipScores as MembershipScores
from .core import toss_coins as toss_coins
from .io import read_scores as read_scores

__version__: str
