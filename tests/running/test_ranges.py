"""A word names several values of a parameter, each checked against the notebook's own cell."""

from typing import Any

import pytest

from paperlib.running.parameters import parse_parameters
from paperlib.running.ranges import values_of_all

KNOWN = parse_parameters(
    'seed = 0\nrate = 0.1\nexact = True\ndata = "adult"\nepochs = [1]\nnested = [[1, 2]]\n'
    'pair = (1.0, 2.0)\nnetwork = {"width": 4}\npath = None\nshift = -2\nfiles = ["a.csv"]',
    "demo",
)


@pytest.mark.parametrize(
    ("name", "word", "values"),
    [
        ("seed", "0..4", [0, 1, 2, 3, 4]),
        ("seed", "7", [7]),
        ("seed", "20, 50,100", [20, 50, 100]),
        ("seed", "0..2,9,20..21", [0, 1, 2, 9, 20, 21]),
        ("seed", "[3,1]", [3, 1]),
        ("shift", "-1..1", [-1, 0, 1]),
        ("rate", "0.1,1e-3,2", [0.1, 1e-3, 2.0]),
        ("exact", "true,false", [True, False]),
        ("data", "adult,mnist", ["adult", "mnist"]),
        ("data", "0..4", ["0..4"]),
        ("data", ",adult", ["", "adult"]),
        ("data", '["a,b","c"]', ["a,b", "c"]),
        ("epochs", "[20,50]", [[20, 50]]),
        ("epochs", "[20,50];[100]", [[20, 50], [100]]),
        ("epochs", "[20] ; [50]", [[20], [50]]),
        ("nested", "[[1,2],[3]];[[4]]", [[[1, 2], [3]], [[4]]]),
        ("pair", "[1,2];(3,4)", [(1.0, 2.0), (3.0, 4.0)]),
        ("network", '{"width":4};{"width":8}', [{"width": 4}, {"width": 8}]),
        ("path", "1..3", [1, 2, 3]),
        ("path", "a.csv,None", ["a.csv", None]),
        ("files", '["a;b.csv"]', [["a;b.csv"]]),
    ],
)
def test_a_word_gives_its_values_with_the_type_of_the_default(
    name: str, word: str, values: list[Any]
) -> None:
    found = values_of_all(KNOWN, {name: word}, "demo")[name]
    assert found == values
    assert [type(one) for one in found] == [type(one) for one in values]


@pytest.mark.parametrize(
    ("name", "word", "said"),
    [
        ("seed", "0..x", "parameter 'seed' should be a whole number"),
        ("seed", "1,,2", "parameter 'seed' should be a whole number"),
        ("seed", "-1..1", "'seed' should be 0 or more, got -1"),
        ("seed", "4..0", "'seed': no number from 4 to 0"),
        ("seed", "0..3,2", "'seed': 2 is given twice in '0..3,2'"),
        ("rate", "0..4", "parameter 'rate' should be a number"),
        ("exact", "true,maybe", "parameter 'exact' should be true or false"),
        ("epochs", "20,50,100", r"'epochs' is a list: write its values whole .* such as \[20,50\];\[100\]"),
        ("epochs", "0..4", "'epochs' is a list"),
        ("epochs", "[20];50", "'epochs' is a list"),
        ("epochs", "[20];[x]", "parameter 'epochs' should be a list"),
        ("epochs", "[20];[20]", r"'epochs': \[20\] is given twice"),
        ("network", "[4]", r"'network' is a dict: .* such as \{\"a\":1\};\{\"a\":2\}"),
        (
            "sed",
            "0..4",
            "parameter 'sed'; did you mean 'seed'.; the known ones are:\n  seed = 0\n  rate = 0.1",
        ),
    ],
)
def test_a_word_that_names_no_values_is_refused(name: str, word: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"demo: .*{said}"):
        values_of_all(KNOWN, {name: word}, "demo")
