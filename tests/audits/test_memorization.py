"""A generator that copies is caught, one that does not is not."""

import numpy as np
import pytest

from paperlib.audits.panoramia.memorization import copies, near_duplicates


def real(seed, size=400):
    return np.random.default_rng(seed).normal(size=(size, 4))


def test_fresh_draws_give_no_warning_in_all_but_few_of_many_runs():
    warned = sum(bool(copies(real(3 * at), real(3 * at + 1), real(3 * at + 2)).warnings) for at in range(40))
    assert warned <= 1


@pytest.mark.parametrize("change", [0.0, 1e-3])
def test_copies_and_near_copies_of_training_data_are_caught(change):
    trained = real(1)
    result = copies(trained + change, trained, real(2))
    assert result.copied == (not change)
    assert result.nearer > 0.95
    assert "memorises" in result.warnings[0]


def test_a_generator_that_says_the_same_again_is_caught():
    result = copies(np.repeat(real(0)[:100], 4, axis=0), real(1), real(2))
    assert result.repeated == 0.75
    assert "repeats itself" in result.warnings[0]


def test_repeats_that_are_as_common_in_real_data_are_no_copies():
    """Few values: everything equals something, in held-out data as in training data."""
    coins = [np.random.default_rng(seed).integers(0, 2, (300, 3)).astype(float) for seed in range(3)]
    result = copies(*coins)
    assert result.copied == result.copied_others == 1
    assert result.warnings == ()


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="equal shapes"):
        copies(real(0), real(1), real(2)[:, :2])
    with pytest.raises(ValueError, match="trained_on: expected shape"):
        copies(real(0), np.empty((0, 4)), real(2))


def test_near_duplicates_are_counted_by_pixels():
    trained, held = real(1), real(2)
    drawn = np.concatenate([trained[:30] + 1e-3, real(0)[:70]])
    result, usual = near_duplicates(drawn, trained, held)
    fresh, _ = near_duplicates(real(0), trained, held)
    assert result == pytest.approx(0.3 + 0.7 * fresh, abs=0.05)
    assert usual == pytest.approx(fresh, abs=0.05)
    assert 0 < usual < 0.2
