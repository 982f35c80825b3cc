"""Image classifiers by name, and their outputs."""

from paperlib.models.images.build import ARCHITECTURES as ARCHITECTURES
from paperlib.models.images.build import ImageArchitecture as ImageArchitecture
from paperlib.models.images.build import as_input as as_input
from paperlib.models.images.build import build_image_model as build_image_model
from paperlib.models.images.build import classifier_for as classifier_for
from paperlib.models.images.build import image_features as image_features
from paperlib.models.images.build import image_logits as image_logits
from paperlib.models.images.build import image_losses as image_losses
from paperlib.models.images.build import parameters_of as parameters_of
from paperlib.models.images.build import pretrained_classifier as pretrained_classifier
from paperlib.models.images.networks import CosineFeatures as CosineFeatures
