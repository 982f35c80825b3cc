"""A word that is nearly right is recognised."""

import pytest

from paperlib.core import did_you_mean


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("los", "; did you mean 'loss'?"),
        ("Loss", "; did you mean 'loss'?"),
        ("membr", "; did you mean 'Member'?"),
        ("entirely_else", ""),
        ("", ""),
    ],
)
def test_the_nearest_known_word_is_suggested_and_no_far_one(word, expected):
    assert did_you_mean(word, ["loss", "Member", "id"]) == expected


def test_nothing_is_suggested_where_nothing_is_known():
    assert did_you_mean("loss", []) == ""
