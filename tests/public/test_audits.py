"""Five audits as somebody makes them who installed the package and has no checkout.

Nothing here imports the tests of the checkout, and what needs a package of an extra is skipped
where it is missing.
"""

import numpy as np
import pandas as pd
import pytest

import paperlib
from paperlib import audits, bounds

SIZE = 200
LEAK = 4.0
"""Distance of members from non-members, in standard deviations: nearly every record leaks."""


def draw(leak: float) -> tuple[np.ndarray, np.ndarray]:
    """Memberships by fair coins, and losses that are lower for members by ``leak``."""
    rng = np.random.default_rng(0)
    member = rng.random(SIZE) < 0.5
    return member, rng.normal(-leak * member)


@pytest.mark.parametrize("leak", [0.0, LEAK])
def test_a_file_of_scores(tmp_path, leak):
    member, losses = draw(leak)
    path = tmp_path / "losses.csv"
    pd.DataFrame({"loss": losses, "member": member.astype(int)}).to_csv(path, index=False)
    epsilon = paperlib.audit(path).headline.epsilon
    assert epsilon == 0 if leak == 0 else epsilon > 2


@pytest.mark.parametrize("leak", [0.0, LEAK])
def test_losses_of_members_and_others(leak):
    member, losses = draw(leak)
    result = paperlib.audits.audit_losses(
        losses[member], losses[~member], design="randomized"
    ).headline
    assert result.epsilon == 0 if leak == 0 else result.epsilon > 2
    assert result.claim
    assert result.assumptions


@pytest.mark.parametrize(("rank", "leaks"), [(None, False), (1, True)])
def test_ranks_among_alternatives(rank, leaks):
    alternatives = 16
    ranks = np.random.default_rng(0).integers(1, alternatives + 1, SIZE)
    if rank is not None:
        ranks[:] = rank
    result = bounds.audit_ranks(ranks, alternatives)
    assert (result.epsilon > 2) == leaks


@pytest.mark.parametrize("learned", [False, True])
def test_labels_that_coins_dealt(learned):
    rng = np.random.default_rng(0)
    labels, proxies = rng.integers(0, 2, (2, SIZE))
    probabilities = np.full((SIZE, 2), 0.5)
    if learned:
        probabilities[np.arange(SIZE), labels] = 0.99
        probabilities[np.arange(SIZE), 1 - labels] = 0.01
    else:
        probabilities[:, 0] = rng.random(SIZE)
        probabilities[:, 1] = 1 - probabilities[:, 0]
    result = audits.audit_labels(probabilities, labels, proxies, tossed=True).headline
    assert (result.epsilon > 2) == learned


@pytest.mark.parametrize("copied", [False, True])
def test_a_released_table(copied):
    pytest.importorskip("sklearn", reason="the extra `features` brings scikit-learn")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(3 * SIZE, 5)).round(6), columns=list("abcde"))
    members, others, fresh = rows[:SIZE], rows[SIZE : 2 * SIZE], rows[2 * SIZE :]
    release = pd.concat([members[SIZE // 4 :], fresh[: SIZE // 4]]) if copied else fresh
    result = audits.audit_release(release, members, others).result
    assert (result.epsilon > 2) == copied


def test_a_loop_of_dp_sgd_that_adds_no_noise_is_named():
    torch = pytest.importorskip("torch", reason="the extra `train` brings torch")
    x = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
    data = x, (x[:, 0] > 0).long()

    def train(data, seed):
        torch.manual_seed(seed)
        model = torch.nn.Linear(5, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(8):
            batch = torch.rand(len(data[0])) < 0.25
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(data[0][batch]), data[1][batch]).backward()
            optimizer.step()
        return model

    with pytest.raises(AssertionError, match=r"(?i)noise|clipping"):
        paperlib.assert_private(
            train,
            data,
            epsilon=3,
            delta=1e-3,
            noise_multiplier=1.0,
            clipping_norm=1.0,
            sampling_rate=0.25,
            steps=8,
            seeds=3,
        )
