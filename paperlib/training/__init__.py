"""Training: one model, many at once, with and without differential privacy."""

from paperlib.training.accounting import Privacy as Privacy
from paperlib.training.accounting import epsilon_of as epsilon_of
from paperlib.training.accounting import noise_for as noise_for
from paperlib.training.accounting import paper_delta as paper_delta
from paperlib.training.accounting import privacy_of as privacy_of
from paperlib.training.checkpoints import CheckpointError as CheckpointError
from paperlib.training.config import TrainingConfig as TrainingConfig
from paperlib.training.dp import fit_dp as fit_dp
from paperlib.training.ensembles import fit_ensemble as fit_ensemble
from paperlib.training.fit import Fitted as Fitted
from paperlib.training.fit import TrainingDiverged as TrainingDiverged
from paperlib.training.fit import fit as fit
from paperlib.training.modules import ModuleEnsemble as ModuleEnsemble
from paperlib.training.modules import fit_module_ensemble as fit_module_ensemble
from paperlib.training.replacement import replacement_epsilon as replacement_epsilon
from paperlib.training.trained import DivergenceWarning as DivergenceWarning
from paperlib.training.trained import Ensemble as Ensemble
from paperlib.training.trained import MLPEnsemble as MLPEnsemble
