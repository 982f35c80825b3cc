"""Arguments of a wrong kind are refused in one line that names them."""

import numpy as np
import pytest
import torch

from paperlib import MembershipScores, audit_one_run
from paperlib.core.checks import as_floats, as_rows, check_in
from tests.refusals import refused

ROWS = torch.ones(2, 2)
NO_ARRAYS = {
    "sparse": ROWS.to_sparse(),
    "without values": torch.empty(3, device="meta"),
    "complex": ROWS.to(torch.complex64),
    "in a list": [ROWS.to_sparse()],
    "with gradients in a list": [torch.ones((), requires_grad=True)],
}
RAGGED = {
    "lists": [[1.0, 2.0], [3.0]],
    "a number among lists": [[1.0, 2.0], 3.0],
    "arrays": [np.zeros(2), np.zeros(3)],
    "tensors": [torch.ones(2), torch.ones(3)],
}


@pytest.mark.parametrize("values", NO_ARRAYS.values(), ids=NO_ARRAYS)
def test_a_tensor_that_no_array_stands_for_is_refused_by_name(values):
    refused("losses: expected real numbers, got a tensor", as_floats, "losses", values)
    refused("losses: expected numbers", as_rows, "losses", values)
    refused("member scores: expected real numbers", MembershipScores, values, [1.0])


@pytest.mark.parametrize("values", RAGGED.values(), ids=RAGGED)
def test_rows_of_several_lengths_are_refused_by_name(values):
    refused("losses: expected rows of one length", as_floats, "losses", values)
    refused("nonmember scores: expected rows of one length", MembershipScores, [1.0], values)


def test_tensors_with_an_array_are_taken():
    kinds = (torch.bfloat16, torch.float64, torch.int64, torch.bool)
    for kind in kinds:
        assert as_floats("losses", torch.ones(2, dtype=kind)).tolist() == [1.0, 1.0]
    assert as_floats("losses", torch.ones(2, requires_grad=True)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("value", [10**400, -(10**400), 10**5000], ids=["large", "small", "vast"])
def test_a_whole_number_that_no_float_is_near_is_refused_by_name(value):
    refused(r"share: expected numbers up to 1\.8e\+308", check_in, "[0, 1]", "share", value)
    scores = MembershipScores([1.0, 2.0], [0.0, 1.0])
    refused("confidence: expected numbers", audit_one_run, scores, confidence=value)
    refused("delta: expected numbers", audit_one_run, scores, delta=value)


def test_a_tensor_without_a_value_is_no_number():
    empty = torch.empty((), device="meta")
    refused("share: expected a number, got", check_in, "[0, 1]", "share", empty)
