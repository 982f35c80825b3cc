"""Images in another form are the same images or refused; copies and images on both sides are
refused.
"""

import numpy as np
import pytest

from paperlib.audits.panoramia import images as module
from paperlib.audits.panoramia.images import bring_images

TRIALS = 120  # of each property


@pytest.fixture(autouse=True)
def no_helpers(monkeypatch):
    monkeypatch.setattr(module, "_helper", lambda *_: None)


def read(images, labels, nonmembers=None):
    """The images and labels of an audit, in their order, or "refused"."""
    made = np.random.default_rng(1).integers(0, 256, (8, 1, 4, 4), dtype=np.uint8), np.arange(8) % 2
    try:
        shown = bring_images(images, labels, generated=made, nonmembers=nonmembers)
    except (ValueError, TypeError) as error:
        return "refused" if "\n" not in str(error) else str(error)
    x, y = shown.members
    return sorted(zip(map(bytes, x), y.tolist(), strict=True))


def retyped(rng, x, y):
    forms = [x, x.astype(np.int64), x / 255, x.astype(np.int8), x.tolist(), np.asfortranarray(x)]
    marks = [y, y.astype(np.uint8), y.astype(float), y.astype(str), y.tolist(), y[:, None], y - 1]
    return {"images": forms[rng.integers(len(forms))], "labels": marks[rng.integers(len(marks))]}


def permuted(rng, x, y):
    order = rng.permutation(len(x))
    return {"images": x[order], "labels": y[order]}


def copied(rng, x, y):
    order = rng.permutation(2 * len(x))
    return {"images": np.tile(x, (2, 1, 1, 1))[order], "labels": np.tile(y, 2)[order]}


def on_both_sides(rng, x, y):
    some = rng.random(len(x)) < 0.8
    return {"images": x, "labels": y, "nonmembers": (x[some], y[some])}


def cast(images, labels, nonmembers=None):
    """Casts whatever it is given."""
    return read(
        np.asarray(images).astype(np.uint8), np.asarray(labels).astype(int).ravel() % 4, nonmembers
    )


def unlabelled(images, labels, nonmembers=None):
    """Loses the pairing of images and labels."""
    return read(images, np.sort(labels), nonmembers)


def trusting(images, labels, nonmembers=None):
    """Looks for no copies."""
    places = np.arange(len(images), dtype=np.uint8)[:, None, None]
    images = images.copy()
    images[:, :, 0, 0] = places[:, 0]
    return read(images, labels)


@pytest.mark.parametrize(
    ("change", "broken"),
    [(retyped, cast), (permuted, unlabelled), (copied, trusting), (on_both_sides, trusting)],
)
def test_changed_images_are_the_same_or_refused(change, broken):
    wrong, answered = {read: 0, broken: 0}, 0
    for seed in range(TRIALS):
        rng = np.random.default_rng([seed, 7])
        x, y = rng.integers(0, 256, (60, 1, 4, 4), dtype=np.uint8), rng.integers(0, 4, 60)
        given = change(rng, x, y)
        right = "refused" if change in (copied, on_both_sides) else read(x, y)
        for entry in wrong if seed < 30 else [read]:
            shown = entry(**given)
            wrong[entry] += shown not in (right, "refused")
            answered += entry is read and shown == right
    assert wrong[read] == 0
    assert wrong[broken] > 0
    assert answered > TRIALS / 20  # a refusal is allowed, but not of everything
