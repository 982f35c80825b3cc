"""Versions of a text keep its meaning: what is not prose, and every letter that no rule names, stay
as they are.
"""

import numpy as np
import pytest

from paperlib.generators.versions import make_versions

PROSE = "The organisers don't favour grey towards the centre - others did..."


def versions(text: str, count: int = 8, **options: bool) -> list[str]:
    return make_versions(text, count, rng=np.random.default_rng(0), **options)


def test_versions_are_different_and_begin_with_the_text():
    made = versions(PROSE)
    assert (len(set(made)), made[0]) == (8, PROSE)
    words = {word for version in made for word in version.split()}
    assert {"organisers", "favour", "favor", "gray", "centre", "center", "–"} <= words


@pytest.mark.parametrize(
    "kept",
    [
        "```\ngrey = centre\n- a\n- b\n\n```",
        "    grey towards centre",
        "colour = 'grey'",
        "if (grey) { centre; }",
        'He said: "the grey centre".',
        "See `colour` and https://example.org/colour and grey_centre and a@grey.org.",
        "Grey Street, Centre Court",
        "isn't it, don't you",
        "the greyhound's dis-colour",
        "1 - 2 and A - B",
        "- grey: setting\n- colour: other\n\n",
        "- wash\n- then dry\n\n",
        "- one\n- two\n  of several lines\n\n",
        "- one\n- two\nmore of two",
    ],
)
def test_what_is_no_prose_is_in_every_version(kept):
    assert versions(kept, 2) in ([], [kept, kept.replace("'", "’")])
    made = versions(f"{PROSE}\n\n{kept}\n\n{PROSE}")
    assert len(made) == 8
    assert all(kept in version.replace("’", "'") for version in made)


def test_lists_change_their_order_alone():
    items = "- apples\n- pears\n- plums\n- figs\n"
    made = versions(f"What to buy\n\n{items}\nand no more.")
    assert len(made) == 8
    assert all(sorted(version.split("\n")) == sorted(made[0].split("\n")) for version in made)
    assert versions(f"Buy the first of these.\n\n{items}\n") == []


def test_a_way_of_writing_is_kept_throughout_a_text():
    for version in versions("grey colour, grey colour, grey favour and grey honour", 12):
        words = version.replace(",", "").split()
        assert len({word for word in words if word.startswith("gr")}) == 1


def test_short_texts_get_an_identifier_or_no_versions():
    assert versions("No way.", 2) == []
    made = versions("No way.", 8, identifier=True)
    assert len({version[-9:-1] for version in made}) == 8
    assert all(version.startswith("No way. [ref ") for version in made)


@pytest.mark.parametrize("text", ["x" * 10**6, "“" * 10**5, "- a\n" * 10**5, "```\n" * 50_001])
def test_long_texts_without_ways_end(text):
    """Patterns that try every pair of places would take hours, and time out."""
    assert versions(text, 2) == []
