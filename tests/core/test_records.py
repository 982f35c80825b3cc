"""Copies of records are refused, ties of independent records are not."""

import numpy as np
import pandas as pd
import pytest

from paperlib import MembershipScores
from paperlib.audits import audit, audit_features, audit_losses, audit_scores
from paperlib.audits.panoramia.files import audit_files
from paperlib.audits.panoramia.images import bring_images
from paperlib.core.checks import find_ties
from paperlib.core.facts import NAMES_GIVEN
from paperlib.words.audits.panoramia_data import unit_sentence
from paperlib.words.designs import tie_warnings
from tests.refusals import refused

rng = np.random.default_rng(0)
LAWS = {
    "continuous": lambda n: rng.normal(size=n),
    "two digits": lambda n: rng.gamma(2, 1, n).round(2),
    "three digits": lambda n: rng.gamma(2, 1, n).round(3),
    "forest": lambda n: -np.log(np.clip(rng.binomial(100, rng.beta(5, 1, n)) / 100, 1e-3, 1)),
    "labels": lambda n: (rng.random(n) < 0.7) * 1.0,
    "single precision": lambda n: np.float32(-np.log1p(-np.exp(-rng.gamma(3, 4, n)))).astype(float),
    "an atom": lambda n: np.where(rng.random(n) < 0.3, 0.0, rng.normal(size=n)),
    "heavy tail": lambda n: rng.zipf(1.5, n).astype(float),
}


def warnings_of(name, *values):
    """What is said of values that are not refused."""
    return tie_warnings(find_ties(name, *values))


def taken_for_copies(*values):
    try:
        find_ties("scores", *values)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("law", LAWS)
def test_independent_records_are_hardly_ever_refused(law):
    hits = sum(
        taken_for_copies(LAWS[law](n), LAWS[law](n)) for n in (30, 200, 1_000) for _ in range(60)
    )
    assert hits <= 3  # of 180, each with chance 0.001 at most


@pytest.mark.parametrize(("rows", "copied"), [(60, 1.0), (300, 0.6), (2_000, 0.3), (20_000, 0.05)])
def test_copies_are_refused(rows, copied):
    values = rng.normal(size=rows)
    assert taken_for_copies(np.concatenate([values, values[: int(copied * rows)]]))
    assert taken_for_copies(
        values, np.concatenate([rng.normal(size=rows), values[: int(copied * rows)]])
    )
    assert taken_for_copies(np.column_stack([values, values])[np.r_[:rows, : int(copied * rows)]])


def test_a_few_equal_values_of_many_digits_are_a_warning():
    values = rng.normal(size=500)
    assert "4 of 502 are equal" in str(warnings_of("scores", np.append(values, values[:2])))
    assert warnings_of("scores", values.round(3)) == ()
    rows = rng.normal(size=(500, 2)).round(3)
    assert warnings_of("rows", rows) == ()
    assert "2 of 501 are equal" in str(warnings_of("rows", np.vstack([rows, rows[:1]])))


def epochs(seed, rows=10, leak=0.0):
    """Losses of 200 records that differ in difficulty, each at several epochs."""
    draws = np.random.default_rng(seed)
    member = np.repeat(draws.random(200) < 0.5, rows)
    loss = (
        np.repeat(draws.normal(3, 1, 200), rows) + draws.normal(0, 0.2, 200 * rows) - leak * member
    )
    return member, loss, np.repeat(np.arange(200), rows)


def test_a_unit_is_one_record_and_stands_in_the_claim(few_simulations):
    """Without a leak rows taken for records claim one far too often, units at most in one file of
    twenty.
    """
    by_rows = by_units = 0
    for seed in range(20):
        member, loss, ids = epochs(seed)
        if seed < 8:  # which take long
            rows = MembershipScores(loss[member], loss[~member], higher_means_member=False)
            by_rows += audit_scores(rows, design="game").headline.epsilon > 0
        unit = audit_losses(loss[member], loss[~member], unit=(ids[member], ids[~member]))
        by_units += unit.headline.epsilon > 0
        assert unit.headline.total == 200
        assert all("One example is one unit of" in one.result.claim for one in unit if one.result)
    assert by_rows >= 4
    assert by_units <= 5  # binomial(20, 0.05) exceeds 5 with probability 0.0003


def test_features_of_one_unit_are_averaged(few_simulations):
    member, loss, ids = epochs(1, leak=3)
    result = audit_features(np.column_stack([-loss, loss**2]), member, unit=ids)
    assert result.total == 200
    assert "One example is one unit of" in result.claim
    with pytest.raises(ValueError, match=r"features: .*copies"):
        audit_features(np.tile(np.column_stack([-loss, loss**2]), (2, 1)), np.tile(member, 2))


def test_rows_that_look_at_their_neighbours_cannot_read_the_order_of_the_file():
    """A model whose answer is the mean of a window tells nothing, though members stand first in the
    file.
    """

    class Window:
        def fit(self, X, y):
            self.known, self.flags = X[:, 0], np.asarray(y, float)
            return self

        def predict_proba(self, X):
            near = self.flags[np.abs(self.known[:, None] - X[None, :, 0]).argmin(axis=0)]
            smooth = np.convolve(near, np.ones(25) / 25, mode="same")
            return np.column_stack([1 - smooth, smooth])

    wrong = 0
    for seed in range(4):
        draws = np.random.default_rng(seed)
        member = np.sort(draws.random(600) < 0.5)[::-1]
        told = np.where(draws.random(600) < 1 / (1 + np.exp(-0.2)), member, ~member)
        rows = told[:, None] + draws.normal(0, 0.01, (600, 1))
        wrong += audit_features(rows, member, model=Window(), seed=seed).epsilon > 0.2
    assert wrong <= 1


def test_a_file_with_rows_of_one_record_asks_for_the_unit(tmp_path, few_simulations):
    member, loss, ids = epochs(3, leak=4)
    path = tmp_path / "epochs.csv"
    pd.DataFrame({"id": ids, "loss": loss, "member": member}).to_csv(path, index=False)
    refused(r"epochs.csv: 2,000 rows hold 200 records", audit, path)
    result = audit(path, unit="id")
    assert result.headline.total == 200
    assert result.to_dict()["claim"].endswith("unit of id: all its rows, their values averaged.")


def test_images_and_texts_of_one_unit_are_one_record(monkeypatch):
    rng = np.random.default_rng(3)
    shots = rng.integers(0, 256, (90, 1, 4, 4), dtype=np.uint8)
    people = np.arange(90) % 45
    made = rng.integers(0, 256, (90, 1, 4, 4), dtype=np.uint8), np.arange(90) % 2
    monkeypatch.setattr("paperlib.audits.panoramia.images._helper", lambda *_: None)
    data = bring_images(shots, people % 2, generated=made, unit=people)
    images = {bytes(image) for image in data.members[0]}
    assert len(images) == len(data.members[0]) == 45
    assert all(len({bytes(shots[at]), bytes(shots[at + 45])} & images) == 1 for at in range(45))
    assert data.unit == NAMES_GIVEN
    assert "one unit named by unit=, with all its rows" in unit_sentence(data.unit)
    with pytest.raises(ValueError, match="unit: expected 90 names, one for each row, got 91"):
        bring_images(shots, people % 2, generated=made, unit=[*people, 99])


def test_the_unit_of_a_table_is_a_column_of_the_file_and_stands_in_the_claim(tmp_path):
    rng = np.random.default_rng(0)
    customers = pd.DataFrame({"customer": np.repeat(np.arange(60), 2), "x": rng.normal(size=120)})
    customers.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "model.py").write_text("def losses(rows):\n    return abs(rows['x'])\n")
    options = {"generated": str(tmp_path / "rows2.csv"), "repetitions": 1, "restarts": 1}
    customers.assign(x=rng.normal(size=120)).to_csv(options["generated"], index=False)
    files = (str(tmp_path / "rows.csv"), f"{tmp_path / 'model.py'}:losses")
    others = str(tmp_path / "others.csv")
    customers.assign(customer=customers["customer"] + 60, x=rng.normal(size=120)).to_csv(
        others, index=False
    )
    audit = audit_files("table", *files, unit="customer", nonmembers=others, **options)
    for result in (audit.result, audit.real):
        assert result.to_dict()["unit"] == "customer"
        assert result.claim.endswith(
            "one unit of customer, with all its rows; one row of each was drawn."
        )
    refused("unit: a column of a table", audit_files, "images", *files, unit="customer", **options)
    refused(
        "unit: expected one of the columns", audit_files, "table", *files, unit="client", **options
    )
