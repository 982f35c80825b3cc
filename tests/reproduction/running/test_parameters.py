"""A wrong parameter is an error before anything runs, and says which ones are known."""

from pathlib import Path

import pytest

from paperlib.reproduction.running import (
    find_project,
    notebook_parameters,
    parse_assignments,
    split_assignments,
)
from paperlib.reproduction.running.parameters import (
    assignment,
    check_parameters,
    parse_parameters,
    swept_values,
    with_values,
)
from paperlib.reproduction.running.sources import OUTPUTS
from tests.refusals import refused

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


def test_only_literals_belong_into_the_cell():
    for source in ("import os", "a = b", "a = b = 1", "a, b = 1, 2", "a = open('x')", "print(1)"):
        refused("demo: ", parse_parameters, source, "demo")


def test_values_take_the_type_of_the_default_and_another_type_is_refused_with_name_and_value():
    for name, given, value in (
        ("trials", "7", 7),
        ("delta", "1e-5", 1e-5),
        ("delta", 1, 1.0),
        ("exact", "false", False),
        ("method", "7", "7"),
        ("sizes", "[1,2]", [1, 2]),
        ("sizes", (1, 2), [1, 2]),
        ("epsilons", "[1, 2.5]", (1.0, 2.5)),
        ("epsilons", ["1e-5"], (1e-5,)),
        ("path", "a.csv", "a.csv"),
        ("path", "3", 3),
    ):
        found = check_parameters(KNOWN, {name: given}, "demo")[name]
        assert found == value
        assert type(found) is type(value)
    for name, values in {
        "trials": ("x", "1.5", True),
        "delta": ("small", [1], "nan", "-inf"),
        "exact": (1, "maybe"),
        "method": (3,),
        "epsilons": ("[NaN]",),
        "sizes": ("1", "[1, 'a']", "["),
    }.items():
        for value in values:
            said = f"demo: parameter '{name}' should be"
            assert repr(value) in refused(said, check_parameters, KNOWN, {name: value}, "demo")


COUNTS = parse_parameters(
    "trials = 5  # repetitions\nside = 7  # pixels; 0 keeps the images' own\nworkers = 0\nseed = "
    "0\nrate = 0.5\nk = 3  # of 10 or 0.5\nshift = -1  # to the left",
    "demo",
)


@pytest.mark.parametrize(
    "given", [{"trials": 0}, {"trials": "-3"}, {"side": -1}, {"seed": -1}, {"k": 0}]
)
def test_a_count_that_makes_no_sense_is_refused_on_one_line(given):
    """A zero is taken where the comment or the default allows it."""
    ((name, value),) = given.items()
    with pytest.raises(
        ValueError, match=rf"demo: parameter '{name}' should be [01] or more, got {value}"
    ):
        check_parameters(COUNTS, given, "demo")
    taken = {"side": 0, "workers": 0, "trials": 1, "rate": 0, "shift": -5}
    assert check_parameters(COUNTS, taken, "demo").items() >= taken.items()


def test_a_file_that_a_notebook_writes_is_no_data_of_its_run():
    here = find_project(Path(__file__).parent)
    every = [one for stem in here.stems() for one in notebook_parameters(here.notebook(stem))]
    assert {one.name for one in every if "to write" in one.comment} == set(OUTPUTS)


def test_one_line_holds_values_with_spaces_quotes_and_lists_or_says_what_to_write():
    for text, words in (
        ("", []),
        ("  a=1   b=2 ", ["a=1", "b=2"]),
        ("a='two words' sizes=[1, 2] b=3", ["a=two words", "sizes=[1, 2]", "b=3"]),
        ("a=\"it's\" b=x'y z'w", ["a=it's", "b=xy zw"]),
        ("file=C:\\data\\x.csv", ["file=C:\\data\\x.csv"]),
        ("sizes='[1, 2]' names=[\"a b\", 'c]']", ["sizes=[1, 2]", "names=[\"a b\", 'c]']"]),
        ("pair=(1, 2) map={'x': 1}", ["pair=(1, 2)", "map={'x': 1}"]),
        ("a= b=''", ["a=", "b="]),
    ):
        assert split_assignments(text) == words
    for text, said in (
        (
            "file=my rows.csv",
            "expected name=value, got 'rows.csv'; put a value with spaces in quotes",
        ),
        ("a='open b=1", "the quote ' is not closed"),
        ("a=[1, 2 b=1", "a bracket is not closed"),
    ):
        assert said in refused("^P: ", split_assignments, text)


def test_a_written_parameter_is_read_back_as_it_was_and_words_that_are_no_assignments_are_refused():
    for value in (
        "",
        "plain",
        "two words",
        "it's",
        "'",
        '"',
        "a\"b'c d",
        "[x",
        "a\\b",
        "`c`",
        "$X #y",
        "x'",
        "tab\there",
    ):
        words = [
            assignment("a", value),
            assignment("sizes", [1, 2]),
            assignment("names", [value, "b"]),
        ]
        read = parse_assignments(split_assignments(" ".join(words)))
        known = parse_parameters("a = 'x'\nsizes = [5]\nnames = ['y']", "demo")
        assert check_parameters(known, read, "demo") == {
            "a": value,
            "sizes": [1, 2],
            "names": [value, "b"],
        }
    for word in ("m", "=3", "a b=3", "-m=3"):
        refused("expected name=value", parse_assignments, [word])
    refused("'m' is given twice", parse_assignments, ["m=1", "m=2"])
    assert parse_assignments(["path=a=b.csv"]) == {"path": "a=b.csv"}


def test_names_defaults_and_comments_are_read_and_new_values_written_in_their_place():
    expected = {
        "trials": (5, "repetitions"),
        "delta": (0.0, "slack"),
        "sizes": ([100, 400], 'records; "#" inside'),
        "epsilons": ((0.5, 1.0), ""),
        "grid": ([1, 2], "over lines"),
    }
    assert {item.name: (item.default, item.comment) for item in KNOWN}.items() >= expected.items()
    changed = with_values(SOURCE, {"trials": 9, "grid": [3], "method": "wähle", "path": "a.csv"})
    expected |= {"trials": (9, "repetitions"), "grid": ([3], "over lines")}
    expected |= {"method": ("wähle", "how to guess")}
    found = {item.name: (item.default, item.comment) for item in parse_parameters(changed, "demo")}
    assert found.items() >= expected.items()
    assert with_values(SOURCE, {}) == SOURCE


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "a" / "notebooks" / "profiles"
    folder.mkdir(parents=True)
    (folder / "paper.yaml").write_text("one:\n  m: 9\n  options: {a: 1, b: 2}\ntwo:\n")
    (folder / "small.yaml").write_text("base: paper\ndata: made up\none:\n  options: {b: 3}\n")
    return find_project(folder.parent)


def test_a_profile_lists_only_what_differs_from_its_base(project):
    assert project.profile("small") == {"one": {"m": 9, "options": {"a": 1, "b": 3}}, "two": {}}
    assert [project.made_up(name) for name in project.profiles()] == [False, True]
    assert project.notebooks.is_relative_to(project.root), "it was found from below"
    refused("inside a checkout", find_project, project.root.parent)


def test_a_profile_for_a_gpu_passes_that_on_but_to_its_rehearsal(project):
    for name, content in {
        "gpu": "base: paper\ndevice: gpu\n",
        "part": "base: gpu\n",
        "tried": "base: gpu\ndata: made up\n",
    }.items():
        (project.notebooks / "profiles" / f"{name}.yaml").write_text(content)
    needing = [name for name in project.profiles() if project.needs_gpu(name)]
    assert needing == ["gpu", "part"]
    assert project.profile("gpu") == project.profile("paper")


def test_unknown_and_broken_profiles_are_refused(project):
    refused(
        r"expected one of paper, small; got 'smal'; did you mean 'small'\?", project.profile, "smal"
    )
    for text, words in (
        ("[1]", "expected notebook names"),
        ("a: [", "not valid YAML"),
        ("a: 3", "expected notebook"),
        ("base: papers", "base: expected one of"),
        ("base: small", "base: expected one of"),
        ("data: invented", "data: expected 'made up'"),
        ("device: tpu", "device: expected 'gpu'"),
    ):
        (project.notebooks / "profiles" / "small.yaml").write_text(text)
        refused(words, project.profile, "small")


SWEPT = parse_parameters(
    'seed = 0\nrate = 0.1\nexact = True\ndata = "adult"\nepochs = [1]\nnested = [[1, 2]]\n'
    'pair = (1.0, 2.0)\nnetwork = {"width": 4}\npath = None\nshift = -2\nfiles = ["a.csv"]',
    "demo",
)


def test_a_word_gives_several_values_with_the_type_of_the_default_or_is_refused():
    for name, word, values in (
        ("seed", "0..4", [0, 1, 2, 3, 4]),
        ("seed", "0..2,9,20..21", [0, 1, 2, 9, 20, 21]),
        ("shift", "-1..1", [-1, 0, 1]),
        ("rate", "0.1,1e-3,2", [0.1, 1e-3, 2.0]),
        ("exact", "true,false", [True, False]),
        ("data", "0..4", ["0..4"]),
        ("data", ",adult", ["", "adult"]),
        ("data", '["a,b","c"]', ["a,b", "c"]),
        ("epochs", "[20,50];[100]", [[20, 50], [100]]),
        ("nested", "[[1,2],[3]];[[4]]", [[[1, 2], [3]], [[4]]]),
        ("pair", "[1,2];(3,4)", [(1.0, 2.0), (3.0, 4.0)]),
        ("network", '{"width":4};{"width":8}', [{"width": 4}, {"width": 8}]),
        ("path", "a.csv,None", ["a.csv", None]),
        ("files", '["a;b.csv"]', [["a;b.csv"]]),
    ):
        read = swept_values(SWEPT, {name: word}, "demo")[name]
        assert read == values
        assert list(map(type, read)) == list(map(type, values))
    for name, word, said in (
        ("seed", "-1..1", "'seed' should be 0 or more, got -1"),
        ("seed", "4..0", "'seed': no number from 4 to 0"),
        ("seed", "[]", r"'seed': no value in '\[\]'; give one or more, such as seed=1,2"),
        ("seed", "0..3,2", "'seed': 2 is given twice in '0..3,2'"),
        ("exact", "true,maybe", "parameter 'exact' should be true or false"),
        (
            "epochs",
            "20,50,100",
            r"'epochs' is a list: write its values whole .* such as \[20,50\];\[100\]",
        ),
        ("rate", "0..4", "parameter 'rate' should be a number"),
        ("epochs", "[20];[x]", "parameter 'epochs' should be a list"),
        ("network", "[4]", r"'network' is a dict: .* such as \{\"a\":1\};\{\"a\":2\}"),
    ):
        refused(f"demo: .*{said}", swept_values, SWEPT, {name: word}, "demo")
    said = "demo: .*parameter 'sed'; did you mean 'seed'.; the known ones are:\n  seed = 0\n  rate"
    with pytest.raises(ValueError, match=said):
        swept_values(SWEPT, {"sed": "0..4"}, "demo")
