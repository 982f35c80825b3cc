from .config import TrainingConfig as TrainingConfig
from .ensembles import fit_ensemble as fit_ensemble
from .fitting import fit as fit
from .private.accounting import epsilon_of as epsilon_of
from .private.accounting import noise_for as noise_for
from .private.dp import fit_dp as fit_dp
