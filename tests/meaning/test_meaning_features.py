"""Features in another form or order of columns give the same audit, copies of rows are refused."""

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import audit_features
from paperlib.core.checks import check_vector

TRIALS = 12  # of each property


def audited(features, membership):
    try:
        return round(audit_features(features, membership).epsilon, 9)
    except ValueError as error:
        return "refused" if "\n" not in str(error) else str(error)


def example(rng):
    """Two signals with three decimals in binary, so that single precision changes nothing."""
    member = rng.random(160) < 0.5
    return (rng.normal(size=(160, 2)) + 2 * member[:, None]).round(2) // 2**-10 * 2**-10, member


def retyped(rng, features, member):
    forms = [np.float32, np.float64, object]
    rows = features.astype(forms[rng.integers(3)])
    rows = [rows, rows.tolist(), pd.DataFrame(rows), np.asfortranarray(rows)][rng.integers(4)]
    flags = member.astype([bool, int, float, np.int8][rng.integers(4)])
    return rows, [flags, flags.tolist(), pd.Series(flags)][rng.integers(3)]


def copied(rng, features, member):
    times = int(rng.integers(2, 5))
    order = rng.permutation(times * len(member))
    return np.tile(features, (times, 1))[order], np.tile(member, times)[order]


def by_text(features, membership):
    """Takes every value that is not empty for a member."""
    flags = np.array([value is not None for value in membership])
    flags[::2] = False
    return audited(features, flags)


def no_look(features, membership):
    """Looks at no copies."""
    rows = np.asarray(features, float)
    return audited(rows + 1e-7 * np.arange(len(rows))[:, None], membership)


@pytest.mark.parametrize(("change", "broken"), [(retyped, by_text), (copied, no_look)])
def test_changed_features_give_the_same_audit_or_are_refused(change, broken):
    wrong = {audited: 0, broken: 0}
    for seed in range(TRIALS):
        rng = np.random.default_rng([seed, 19])
        features, member = example(rng)
        given = change(rng, features, member)
        right = audited(features, member) if change is retyped else "refused"
        for entry in wrong if seed < 3 else [audited]:
            wrong[entry] += entry(*given) not in (right, "refused")
    assert wrong[audited] == 0
    assert wrong[broken] > 0


def test_a_form_is_read_and_not_refused():
    rng = np.random.default_rng(4)
    features, member = example(rng)
    assert all(audited(*retyped(rng, features, member)) != "refused" for _ in range(5))
    assert check_vector("x", features[:, 0].tolist()).dtype == float
