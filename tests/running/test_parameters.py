"""A wrong parameter is an error before anything runs, and says which ones are known."""

from pathlib import Path
from typing import Any

import pytest

from paperlib.running import find_project, notebook_parameters, parse_assignments, split_assignments
from paperlib.running.parameters import (
    assignment,
    check_parameters,
    convert_like,
    parse_parameters,
    swept_values,
    with_values,
)
from paperlib.running.sources import OUTPUTS

SOURCE = """trials = 5  # repetitions
delta = 0.0  # slack
exact = True  # draw the exact line
method = "optimal"  # how to guess
sizes = [100, 400]  # records; "#" inside
epsilons = (0.5, 1.0)
grid = [
    1,
    2,
]  # over lines
path = None  # a file"""
KNOWN = parse_parameters(SOURCE, "demo")


def test_names_defaults_and_comments_are_read() -> None:
    found = {item.name: (item.default, item.comment) for item in KNOWN}
    assert found["trials"] == (5, "repetitions")
    assert found["sizes"] == ([100, 400], 'records; "#" inside')
    assert found["epsilons"] == ((0.5, 1.0), "")
    assert found["grid"] == ([1, 2], "over lines")


@pytest.mark.parametrize(
    "source", ["import os", "a = b", "a = b = 1", "a, b = 1, 2", "a = open('x')", "print(1)"]
)
def test_only_literals_belong_into_the_cell(source: str) -> None:
    with pytest.raises(ValueError, match="demo: "):
        parse_parameters(source, "demo")


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"trials": "7"}, 7),
        ({"delta": "1e-5"}, 1e-5),
        ({"delta": 1}, 1.0),
        ({"exact": "false"}, False),
        ({"method": "7"}, "7"),
        ({"sizes": "[1,2]"}, [1, 2]),
        ({"sizes": (1, 2)}, [1, 2]),
        ({"epsilons": "[1, 2.5]"}, (1.0, 2.5)),
        ({"epsilons": ["1e-5"]}, (1e-5,)),
        ({"path": "a.csv"}, "a.csv"),
        ({"path": "3"}, 3),
    ],
)
def test_values_take_the_type_of_the_default(given: dict[str, Any], value: Any) -> None:
    ((name, _),) = given.items()
    found = check_parameters(KNOWN, given, "demo")[name]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "given",
    [
        {"trials": "x"},
        {"trials": "1.5"},
        {"trials": True},
        {"delta": "small"},
        {"delta": [1]},
        {"exact": 1},
        {"exact": "maybe"},
        {"method": 3},
        {"sizes": "1"},
        {"sizes": "[1, 'a']"},
        {"sizes": "["},
    ],
)
def test_another_type_is_refused_with_name_default_and_value(given: dict[str, Any]) -> None:
    ((name, value),) = given.items()
    with pytest.raises(ValueError, match=f"demo: parameter '{name}' should be") as caught:
        check_parameters(KNOWN, given, "demo")
    assert repr(value) in str(caught.value)


def test_a_typo_lists_the_known_parameters_with_defaults_and_comments() -> None:
    with pytest.raises(ValueError, match=r"unknown parameter 'trails'; did you mean 'trials'\?") as caught:
        check_parameters(KNOWN, {"trails": 3}, "demo")
    assert "trials = 5  # repetitions" in str(caught.value)


COUNTS = parse_parameters(
    "trials = 5  # repetitions\nside = 7  # pixels; 0 keeps the images' own\nworkers = 0\nseed = 0\n"
    "rate = 0.5\nk = 3  # of 10 or 0.5\nshift = -1  # to the left",
    "demo",
)


@pytest.mark.parametrize("given", [{"trials": 0}, {"trials": "-3"}, {"side": -1}, {"seed": -1}, {"k": 0}])
def test_a_count_that_makes_no_sense_is_refused_on_one_line(given: dict[str, Any]) -> None:
    ((name, value),) = given.items()
    with pytest.raises(ValueError, match=rf"demo: parameter '{name}' should be [01] or more, got {value}"):
        check_parameters(COUNTS, given, "demo")


@pytest.mark.parametrize("given", [{"side": 0}, {"workers": 0}, {"trials": 1}, {"rate": 0}, {"shift": -5}])
def test_a_zero_is_taken_where_the_comment_or_the_default_allows_it(given: dict[str, Any]) -> None:
    ((name, value),) = given.items()
    assert check_parameters(COUNTS, given, "demo")[name] == value


def test_every_notebook_and_profile_keeps_to_the_least_counts() -> None:
    here = find_project(Path(__file__).parent)
    checked = 0
    for stem in here.stems():
        known = notebook_parameters(here.notebook(stem))
        for profile in here.profiles():
            checked += len(check_parameters(known, here.profile(profile).get(stem, {}), f"{profile}, {stem}"))
        names = {one.name for one in known if "to write" in one.comment}
        assert names <= set(OUTPUTS), "a file that a notebook writes is no data of its run"
    assert checked > 500


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  a=1   b=2 ", ["a=1", "b=2"]),
        ("a='two words' sizes=[1, 2] b=3", ["a=two words", "sizes=[1, 2]", "b=3"]),
        ("a=\"it's\" b=x'y z'w", ["a=it's", "b=xy zw"]),
        ("file='/my data/$HOME/`x`.csv'", ["file=/my data/$HOME/`x`.csv"]),
        ("file=C:\\data\\x.csv", ["file=C:\\data\\x.csv"]),
        ("sizes='[1, 2]' names=[\"a b\", 'c]']", ["sizes=[1, 2]", "names=[\"a b\", 'c]']"]),
        ("pair=(1, 2) map={'x': 1}", ["pair=(1, 2)", "map={'x': 1}"]),
        ("a= b=''", ["a=", "b="]),
    ],
)
def test_one_line_holds_values_with_spaces_quotes_and_lists(text: str, words: list[str]) -> None:
    assert split_assignments(text) == words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("file=my rows.csv", "expected name=value, got 'rows.csv'; put a value with spaces in quotes"),
        ("a='open b=1", "the quote ' is not closed"),
        ("a=[1, 2 b=1", "a bracket is not closed"),
        ('a=["x', 'the quote " is not closed'),
    ],
)
def test_a_line_that_cannot_be_split_says_what_to_write(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"^P: ") as caught:
        split_assignments(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    ["", "plain", "two words", "it's", "'", '"', "a\"b'c d", "[x", "a\\b", "`c`", "$X #y", "x'", "tab\there"],
)
def test_a_written_parameter_is_read_back_as_it_was(value: str) -> None:
    words = [assignment("a", value), assignment("sizes", [1, 2]), assignment("names", [value, "b"])]
    read = parse_assignments(split_assignments(" ".join(words)))
    known = parse_parameters("a = 'x'\nsizes = [5]\nnames = ['y']", "demo")
    assert check_parameters(known, read, "demo") == {"a": value, "sizes": [1, 2], "names": [value, "b"]}


def test_new_values_are_written_where_the_old_ones_stood() -> None:
    values = {"trials": 9, "grid": [3], "method": "wähle", "path": "a.csv"}
    changed = with_values(SOURCE, values)
    found = {item.name: (item.default, item.comment) for item in parse_parameters(changed, "demo")}
    assert found["trials"] == (9, "repetitions")
    assert found["grid"] == ([3], "over lines")
    assert found["method"] == ("wähle", "how to guess")
    assert found["delta"] == (0.0, "slack")
    assert with_values(SOURCE, {}) == SOURCE


def test_words_that_are_no_assignments_are_refused() -> None:
    for word in ("m", "=3", "a b=3", "-m=3"):
        with pytest.raises(ValueError, match="expected name=value"):
            parse_assignments([word])
    with pytest.raises(ValueError, match="'m' is given twice"):
        parse_assignments(["m=1", "m=2"])
    assert parse_assignments(["path=a=b.csv"]) == {"path": "a=b.csv"}


def test_numbers_that_are_not_numbers_reach_the_notebook_as_they_are() -> None:
    assert str(convert_like("nan", 0.0)) == "nan"


def test_unknown_profiles_and_broken_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notebooks" / "profiles").mkdir(parents=True)
    project = find_project(tmp_path)
    (project.notebooks / "profiles" / "smoke.yaml").write_text("demo:\n  trials: 1\nother:\n")
    assert project.profile("smoke") == {"demo": {"trials": 1}, "other": {}}
    with pytest.raises(ValueError, match=r"expected one of smoke; got 'smok'; did you mean 'smoke'\?"):
        project.profile("smok")
    for text, words in {
        "[1]": "expected notebook names",
        "a: [": "not valid YAML",
        "a: 3": "expected notebook",
    }.items():
        (project.notebooks / "profiles" / "smoke.yaml").write_text(text)
        with pytest.raises(ValueError, match=words):
            project.profile("smoke")


def test_a_profile_lists_only_what_differs_from_its_base(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks" / "profiles"
    folder.mkdir(parents=True)
    project = find_project(tmp_path)
    (folder / "paper.yaml").write_text("one:\n  m: 9\n  options: {a: 1, b: 2}\ntwo: {}\n")
    (folder / "small.yaml").write_text("base: paper\ndata: made up\none:\n  options: {b: 3}\n")
    assert project.profile("small") == {"one": {"m": 9, "options": {"a": 1, "b": 3}}, "two": {}}
    assert [project.made_up(name) for name in project.profiles()] == [False, True]
    for text, words in {
        "base: papers": "base: expected one of",
        "base: small": "base: expected one of",
        "data: invented": "data: expected 'made up'",
    }.items():
        (folder / "small.yaml").write_text(text)
        with pytest.raises(ValueError, match=words):
            project.profile("small")


def test_a_project_is_found_from_below_and_missed_outside(tmp_path: Path) -> None:
    (tmp_path / "a" / "notebooks" / "profiles").mkdir(parents=True)
    assert find_project(tmp_path / "a" / "notebooks").root == tmp_path / "a"
    with pytest.raises(ValueError, match="inside a checkout"):
        find_project(tmp_path)


SWEPT = parse_parameters(
    'seed = 0\nrate = 0.1\nexact = True\ndata = "adult"\nepochs = [1]\nnested = [[1, 2]]\n'
    'pair = (1.0, 2.0)\nnetwork = {"width": 4}\npath = None\nshift = -2\nfiles = ["a.csv"]',
    "demo",
)


@pytest.mark.parametrize(
    ("name", "word", "values"),
    [
        ("seed", "0..4", [0, 1, 2, 3, 4]),
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
        ("epochs", "[20,50];[100]", [[20, 50], [100]]),
        ("epochs", "[20] ; [50]", [[20], [50]]),
        ("nested", "[[1,2],[3]];[[4]]", [[[1, 2], [3]], [[4]]]),
        ("pair", "[1,2];(3,4)", [(1.0, 2.0), (3.0, 4.0)]),
        ("network", '{"width":4};{"width":8}', [{"width": 4}, {"width": 8}]),
        ("path", "a.csv,None", ["a.csv", None]),
        ("files", '["a;b.csv"]', [["a;b.csv"]]),
    ],
)
def test_a_word_gives_several_values_with_the_type_of_the_default(
    name: str, word: str, values: list[Any]
) -> None:
    read = swept_values(SWEPT, {name: word}, "demo")[name]
    assert read == values
    assert list(map(type, read)) == list(map(type, values))


@pytest.mark.parametrize(
    ("name", "word", "said"),
    [
        ("seed", "0..x", "parameter 'seed' should be a whole number"),
        ("seed", "-1..1", "'seed' should be 0 or more, got -1"),
        ("seed", "4..0", "'seed': no number from 4 to 0"),
        ("seed", "0..3,2", "'seed': 2 is given twice in '0..3,2'"),
        ("rate", "0..4", "parameter 'rate' should be a number"),
        ("exact", "true,maybe", "parameter 'exact' should be true or false"),
        ("epochs", "20,50,100", r"'epochs' is a list: write its values whole .* such as \[20,50\];\[100\]"),
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
        swept_values(SWEPT, {name: word}, "demo")
