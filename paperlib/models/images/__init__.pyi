from .build import build_image_model as build_image_model
from .build import classifier_for as classifier_for
from .build import image_logits as image_logits
from .build import image_losses as image_losses
