"""Target architectures and per-example losses."""

from paperlib.models.losses import binary_margin_loss as binary_margin_loss
from paperlib.models.losses import cross_entropy as cross_entropy
from paperlib.models.losses import margin_loss as margin_loss
from paperlib.models.losses import multiclass_margin_loss as multiclass_margin_loss
from paperlib.models.mlp import MLP as MLP
