"""Small tables, texts and images, and quick settings for them."""

import numpy as np
import pandas as pd

from paperlib.attacks.learned.images import ImageStack
from paperlib.audits.panoramia.image_models import ImageHelper
from paperlib.audits.panoramia.images import ImageDefaults
from paperlib.generators.images import FlowConfig


class Examples:
    """An attack whose score is the example itself."""

    def scores(self, inputs):
        return inputs.examples[:, 0].astype(float)


def table(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    size, other = rng.normal(size=(2, rows))
    word = np.where(rng.random(rows) < 0.5, "a", "b")
    label = (size + (word == "a") > 0.5).astype(int)
    return pd.DataFrame({"size": size, "other": other, "word": word, "label": label})


def pages(count, seed):
    rng = np.random.default_rng(seed)
    words = [
        "the",
        "privacy",
        "of",
        "models",
        "is",
        "audited",
        "with",
        "generated",
        "text",
        "and",
        "coins",
    ]
    return [" ".join(rng.choice(words, 40)) + f" page {seed}-{at}" for at in range(count)]


def blobs(count=160, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    images = rng.integers(0, 100, (count, 1, 4, 4)) + 120 * labels[:, None, None, None]
    return images.astype(np.uint8), labels


SMALL_PICTURES = ImageDefaults(
    generator=FlowConfig(width=16, blocks=1, steps=20, sampler_steps=2),
    helper=ImageHelper(name="helper", data="real", architecture="mlp", width=8, epochs=1),
    attack=ImageStack(architecture="mlp", width=8, epochs=1, evaluations=1, loss_steps=20),
)
