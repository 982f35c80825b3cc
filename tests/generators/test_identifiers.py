import itertools
import re
import uuid
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from paperlib.generators.identifiers import (
    KINDS,
    Identifier,
    find_identifiers,
    generate_identifiers,
    kinds_table,
)
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.generators.identifiers.scan import Scanner, StreamScanner, as_identifier
from tests.generators.true_identifiers import KNOWN, LOOK_ALIKES, RANDOM, random_ones
from tests.refusals import refused

MIXED = " ".join(value for values in [*KNOWN.values(), *LOOK_ALIKES.values()] for value in values)
PARTS = [*MIXED.split(" "), "commit", "a", "é", "-", "=", "\n", "bc1", "0x"]
MD5 = KINDS["md5"].example
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def test_every_kind_is_in_the_tables_of_the_tests():
    assert list(KINDS) == list(KNOWN) == list(LOOK_ALIKES) == list(RANDOM)
    assert len(kinds_table()) == len(KINDS)


@every_kind
def test_known_and_random_values_are_found_in_text(kind):
    for value in [
        KINDS[kind].example,
        *KNOWN[kind],
        *random_ones(kind, 2 if kind == "ssh_rsa" else 20),
    ]:
        text = f"see ({value}), and no more"
        assert find_identifiers(text) == [Identifier(kind, value, 5, 5 + len(value))]
        assert as_identifier(value).kind == kind


@every_kind
def test_look_alikes_are_not_found(kind):
    for value in LOOK_ALIKES[kind]:
        assert [found.value for found in find_identifiers(f"see {value}, and no more")] == []


@every_kind
def test_nothing_is_found_next_to_a_letter_digit_underscore_or_what_its_kind_bars(kind):
    value = KINDS[kind].example
    for beside in "aZ7_":
        assert value not in {
            found.value for found in find_identifiers(f"{beside}{value} {value}{beside}")
        }
    for beside in KINDS[kind].not_beside:
        assert kind not in {found.kind for found in find_identifiers(value + beside)}


def test_places_count_characters_of_any_script_and_of_overlapping_ones_the_longest_stays():
    text = "Prüfsumme – 数 2f6b8d1c90e4a7353b1e64d7f08a5c92 😀 commit 83a5ef2é"
    found = find_identifiers(text)
    assert [text[one.start : one.end] for one in found] == [one.value for one in found]
    assert [one.kind for one in found] == ["md5", "git_short_hash"]
    text = "commit 12f4a9cd-1834-4a3c-8afc-127456e890ab"
    assert [found.kind for found in find_identifiers(text)] == ["uuid"]
    broken = "commit 12f4a9cd/1234-4abc"
    assert [found.value for found in find_identifiers(broken)] == ["commit 12f4a9cd"]


@every_kind
@settings(
    derandomize=True, deadline=None, max_examples=6, suppress_health_check=[HealthCheck.too_slow]
)
@given(data=st.data())
def test_generated_ones_are_found_again_in_the_same_form(kind, data):
    value = data.draw(st.sampled_from([KINDS[kind].example, *KNOWN[kind]]))
    found = Identifier(kind, value, 0, len(value))
    drawn = generate_identifiers(found, 5, seed=data.draw(st.integers(0, 2**32)))
    keys = {KINDS[kind].key(one) for one in [value, *drawn]}
    assert len(keys) == 6
    text = "".join(f"<{one}>\n" for one in drawn)
    assert [(one.kind, one.value) for one in find_identifiers(text)] == [
        (kind, one) for one in drawn
    ]
    forms = {KINDS[kind].check(one) for one in [value, *drawn]}
    assert len(forms) == 1
    assert len({len(one) for one in [value, *drawn]}) == 1 or kind == "bitcoin_base58"


@settings(derandomize=True, deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_draws_depend_on_seed_and_value_alone(seed, other):
    first = generate_identifiers(MD5, 3, seed)
    assert first == generate_identifiers(Identifier("md5", MD5, 9, 41), 3, seed)
    assert first == generate_identifiers(MD5, 5, seed)[:3]
    assert (first == generate_identifiers(MD5, 3, other)) == (seed == other)
    assert not set(first) & set(generate_identifiers(first[0], 3, seed))


def test_what_is_kept_of_a_value_and_of_an_rsa_key():
    version_7 = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    assert {one[:19] for one in generate_identifiers(version_7, 20, 0)} == {version_7[:19]}
    assert {one[:16] for one in generate_identifiers("https://bit.ly/3xK9aQz", 9, 0)} == {
        "https://bit.ly/3"
    }
    upper = generate_identifiers("83A5EF2C9D0B3E71F6A8C3D25B190E47", 20, 0)
    assert all(one == one.upper() for one in upper)
    negative = generate_identifiers("serialVersionUID = -849794470754667710L", 20, 0)
    assert all(re.fullmatch(r"serialVersionUID = -[1-9]\d{17}L", one) for one in negative)
    from paperlib.generators.identifiers.encodings import parse_ssh_rsa

    example = KINDS["ssh_rsa"].example
    keys = [parse_ssh_rsa(value) for value in [example, *generate_identifiers(example, 20, 0)]]
    assert {key.exponent for key in keys} == {65537}
    assert {key.modulus.bit_length() for key in keys} == {2048}
    assert len({key.modulus >> 2032 for key in keys}) == 1
    assert len({key.modulus >> 2016 for key in keys}) > 10
    assert all(key.modulus % prime for key in keys for prime in (2, 3, 5, 7, 11, 997))


def test_bad_requests_say_what_is_wrong():
    generate = generate_identifiers
    refused("expected the text of one identifier", generate, "hello", 1, 0)
    refused("few different digits", generate, Identifier("md5", "0" * 32, 0, 32), 1, 0)
    refused("expected a valid md5", generate, Identifier("md5", "xyz", 0, 3), 1, 0)
    refused("kinds: expected some of md5", generate, Identifier("md6", "xyz", 0, 3), 1, 0)
    refused("count: expected 0 or more", generate, MD5, -1, 0)
    refused("seed: expected 0 or more", generate, MD5, 1, -1)
    refused("got bytes", find_identifiers, b"abc")
    refused("'md6'", find_identifiers, "", kinds=["md6"])
    refused("engine", Scanner, checked_kinds(None), "hyperscan")
    assert find_identifiers("") == []
    assert find_identifiers(f"\ud800 {MD5}")[0].start == 2
    assert find_identifiers(MIXED, kinds="uuid") == find_identifiers(MIXED, kinds=["uuid"])


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(PARTS), max_size=30))
def test_both_engines_find_the_same(words):
    for glue in (" ", "", "/"):
        scanners = [Scanner(checked_kinds(None), engine) for engine in ("re2", "re")]
        assert scanners[0].scan(glue.join(words).encode()) == scanners[1].scan(
            glue.join(words).encode()
        )


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 9_000), max_size=12), st.integers(0, 3))
def test_pieces_of_any_size_find_what_the_whole_does(cuts, padding):
    whole = (("x " * 2_500 * padding) + MIXED + " " + KINDS["ssh_rsa"].example * 3).encode() * 2
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    scanner = Scanner(checked_kinds(None))
    stream = StreamScanner(scanner)
    found = []
    for low, high in itertools.pairwise(edges):
        found += stream.feed(whole[low:high], more=True)
    found += stream.feed(b"", more=False)
    assert [one.value for one in found] == [one.value for one in scanner.scan(whole)]
    assert len(found) > 40


def test_a_long_run_of_base64_stays_within_bounded_memory():
    stream = StreamScanner(Scanner(checked_kinds(None)))
    assert stream.feed(b"ssh-rsa AAAAB3NzaC1yc2EAAAA" + b"A" * 20_000, more=True) == []
    for _ in range(20):
        assert stream.feed(b"A" * 20_000, more=True) == []
        assert len(stream._held) < 5_000
    assert stream.feed(b" 2f6b8d1c90e4a7353b1e64d7f08a5c92", more=False)[0].kind.name == "md5"


@every_kind
def test_fresh_values_stay(kind):
    """At most one in a hundred goes; digits alone and letters alone may be a number or a word, and
    go too.
    """
    rng, drawn = np.random.default_rng(5), 300 if kind.startswith(("ssh", "bitcoin")) else 3_000
    example = (KNOWN[kind] or random_ones(kind, 1))[0]
    forms = Counter(KINDS[kind].check(KINDS[kind].draw(example, rng)) for _ in range(drawn))
    gone = sum(
        times for form, times in forms.items() if not form.valid and "number" not in form.name
    )
    assert gone <= binom.isf(1e-6, drawn, 0.01)


@pytest.mark.parametrize("version", [1, 3, 4, 5])
def test_alternatives_of_a_uuid_without_hyphens_keep_its_version(version):
    rng = np.random.default_rng(version)
    values = [uuid.UUID(bytes=rng.bytes(16), version=version).hex for _ in range(12)]
    values = [
        value for value in values if find_identifiers(value)
    ]  # of version 1 some hold a time of today
    for value in values:
        others = generate_identifiers(value, 9, 0)
        assert {other[12] for other in others} == {str(version)}
        assert {other[16] for other in others} <= set("89ab")
    assert len(values) > 8
    assert not find_identifiers(uuid.uuid1().hex)
