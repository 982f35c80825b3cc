"""What a claimed curve may be, and what is refused."""

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from paperlib.audits.claimed import claimed_curve, read_claimed_curve
from paperlib.bounds.claims.audit import audit_curve
from paperlib.bounds.claims.curves import ClaimedCurve, gaussian_profile
from paperlib.core import MembershipScores
from tests.refusals import refused

E = np.array([0.1, 0.5, 1.0, 2.0])
SUBSAMPLED = SelfComposedDpEvent(PoissonSampledDpEvent(0.05, GaussianDpEvent(1.0)), 40)


def test_steps_of_gaussian_noise_are_a_gaussian_curve_and_its_noise_can_be_scaled():
    curve = claimed_curve("gaussian(sigma=2, steps=4)")
    np.testing.assert_allclose(curve.profile(E), gaussian_profile(1.0)(E))
    assert curve.with_noise is not None
    np.testing.assert_allclose(curve.with_noise(2.0)(E), gaussian_profile(0.5)(E))
    np.testing.assert_allclose(claimed_curve(" gaussian( mu = 1 )").profile(E), curve.profile(E))


def test_sampled_batches_have_the_curve_of_their_accountant_rounded_up():
    exact = np.array(PLDAccountant().compose(SUBSAMPLED).get_delta(E))
    curve = claimed_curve("gaussian(sigma=1, q=0.05, steps=40)").profile(E)
    assert (curve >= exact).all()
    np.testing.assert_allclose(curve, exact, rtol=0.05, atol=1e-9)


def test_the_curve_of_a_weaker_accountant_is_above():
    by_moments = claimed_curve(RdpAccountant().compose(SUBSAMPLED)).profile(E)
    assert (by_moments >= claimed_curve("gaussian(sigma=1, q=0.05, steps=40)").profile(E)).all()


def test_a_claim_of_too_much_noise_is_refuted_and_the_true_one_is_not():
    rng = np.random.default_rng(4)
    coins = rng.random(1_000) < 0.5
    scores = MembershipScores.from_labels(coins + rng.standard_normal(1_000), coins)
    false = audit_curve(scores, claimed_curve("gaussian(sigma=3)"))
    true = audit_curve(scores, claimed_curve("gaussian(sigma=1)"))
    assert (false.refuted, true.refuted) == (True, False)
    assert false.noise_share is not None
    assert true.noise_share is not None
    assert 1 / 3 < false.noise_share < 1 < true.noise_share


def test_a_table_of_pairs_is_a_curve(tmp_path):
    path = tmp_path / "curve.csv"
    path.write_text("epsilon,delta\n1.0,0.01\n0,0.2\n2.0,1e-5\n")
    profile = read_claimed_curve(path).profile
    np.testing.assert_allclose(profile(np.array([0.0, 1.0, 2.0, 9.0])), [0.2, 0.01, 1e-5, 1e-5])
    path.write_text("epsilon,p\n1.0,0.01\n")
    refused("no delta", read_claimed_curve, path)
    path.write_text("epsilon,delta\n1.0,small\n")
    refused("must be numbers", read_claimed_curve, path)


def test_a_curve_stays_as_it_is():
    curve = ClaimedCurve("mine", gaussian_profile(1.0))
    assert claimed_curve(curve) is curve


@pytest.mark.parametrize(
    ("message", "claimed"),
    [
        ("expected gaussian", "laplace(b=1)"),
        ("expected gaussian", "gaussian(1)"),
        ("expected gaussian", "gaussian(q=0.1)"),
        ("expected gaussian", "gaussian(sigma=1, sigma=2)"),
        ("expected gaussian", "gaussian(sigma=1, rate=0.1)"),
        ("expected gaussian", "gaussian(sigma=one)"),
        ("expected gaussian", 3.0),
        ("sigma", "gaussian(sigma=0)"),
        ("sigma", "gaussian(sigma=nan)"),
        ("q", "gaussian(sigma=1, q=2)"),
        ("steps", "gaussian(sigma=1, steps=0)"),
        ("whole number", "gaussian(sigma=1, steps=1.5)"),
        ("mu", "gaussian(mu=-1)"),
    ],
)
def test_claims_of_another_form_are_refused(message, claimed):
    refused(message, claimed_curve, claimed)
