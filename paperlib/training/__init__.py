"""Training: one model, many at once, with and without differential privacy."""

from paperlib.training.checkpoints import CheckpointError as CheckpointError
from paperlib.training.config import TrainingConfig as TrainingConfig
from paperlib.training.fitting import Fitted as Fitted
from paperlib.training.fitting import TrainingDiverged as TrainingDiverged
from paperlib.training.fitting import fit as fit
from paperlib.training.many.ensembles import fit_ensemble as fit_ensemble
from paperlib.training.many.trained import DivergenceWarning as DivergenceWarning
from paperlib.training.many.trained import MLPEnsemble as MLPEnsemble
from paperlib.training.private.accounting import Privacy as Privacy
from paperlib.training.private.accounting import epsilon_of as epsilon_of
from paperlib.training.private.accounting import noise_for as noise_for
from paperlib.training.private.accounting import paper_delta as paper_delta
from paperlib.training.private.accounting import privacy_of as privacy_of
from paperlib.training.private.accounting import replacement_epsilon as replacement_epsilon
from paperlib.training.private.dp import fit_dp as fit_dp
