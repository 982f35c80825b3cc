"""Train a small causal language model on documents, plainly or with DP-SGD by ghost clipping."""

from paperlib.training.language.clipping import add_clipped_gradients as add_clipped_gradients
from paperlib.training.language.clipping import check_layers as check_layers
from paperlib.training.language.fitting import FittedLanguageModel as FittedLanguageModel
from paperlib.training.language.fitting import document_losses as document_losses
from paperlib.training.language.fitting import fit_language_model as fit_language_model
