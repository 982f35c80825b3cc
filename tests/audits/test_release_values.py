"""Releases written in another form than the records: copies are seen, or the column is named."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import audit_release
from paperlib.audits.releases.chance import equal_by_chance
from paperlib.audits.releases.rows import alike
from paperlib.audits.releases.spellings import is_written_otherwise
from paperlib.audits.releases.values import read_values
from paperlib.core.facts import RefusalCode
from tests.audits.test_releases import people
from tests.refusals import refused

FIRST = ["Ada", "José", "Ingrid", "Wei", "Fatima", "Olu", "Kim", "Raj"]


def patients(rows, seed):
    """Independent rows as a CSV holds them: dates, times, amounts, names and telephones as text."""
    rng = np.random.default_rng(seed)
    born = pd.Timestamp("1930-01-01") + pd.to_timedelta(rng.integers(0, 27_000, rows), "D")
    seen = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 1_440, rows), "min")
    last = rng.integers(0, 3_000, rows)
    return pd.DataFrame(
        {
            "born": born.strftime("%Y-%m-%d"),
            "seen": seen.strftime("%H:%M"),
            "paid": [f"{amount:.2f}" for amount in rng.gamma(2, 2_000, rows)],
            "name": [f"{rng.choice(FIRST)} Ñame{number}" for number in last],
            "telephone": [f"030 {number:07d}" for number in rng.integers(1e6, 1e7, rows)],
            "ward": rng.choice(list("ABCDEF"), rows),
        }
    )


def dates_in(form, text):
    return pd.to_datetime(text).dt.strftime(form)


def german(text):
    return text.map(lambda amount: f"{float(amount):,.2f}".translate(str.maketrans(",.", ".,")))


def turned(text):
    return text.map(lambda name: ", ".join(name.split()[::-1]))


SPELLED = {
    "day first": ("born", partial(dates_in, "%d/%m/%Y")),
    "month first": ("born", partial(dates_in, "%m/%d/%Y")),
    "points": ("born", partial(dates_in, "%d.%m.%Y")),
    "a name of the month": ("born", partial(dates_in, "%d %B %Y")),
    "midnight": ("born", partial(dates_in, "%Y-%m-%d 00:00:00")),
    "no marks": ("born", partial(dates_in, "%Y%m%d")),
    "a zone": ("born", partial(dates_in, "%Y-%m-%dT00:00:00Z")),
    "half a day": ("seen", lambda text: dates_in("%I:%M %p", "2026-01-01 " + text)),
    "seconds": ("seen", lambda text: text + ":00"),
    "a currency": ("paid", lambda text: "€ " + text),
    "a unit": ("paid", lambda text: text + " EUR"),
    "thousands": ("paid", lambda text: text.map(lambda amount: f"{float(amount):,.2f}")),
    "a decimal comma": ("paid", german),
    "capitals": ("name", lambda text: text.str.upper()),
    "no accents": ("name", lambda text: text.str.replace("Ñ", "N")),
    "family name first": ("name", turned),
    "the code of the country": ("telephone", lambda text: "+49 " + text.str[1:]),
    "brackets": ("telephone", lambda text: text.str.replace(r"^(\d+) ", r"(\1) ", regex=True)),
}


@pytest.mark.parametrize("spelling", SPELLED)
def test_copies_in_another_spelling_are_the_records(spelling):
    members, others, release = (patients(300, seed) for seed in range(3))
    release = pd.concat([members[:60], release[60:]], ignore_index=True)
    column, write = SPELLED[spelling]
    plain = alike(release, [members, others])
    written = alike(release.assign(**{column: write(release[column])}), [members, others])
    assert (written.warnings, plain.warnings) == ((), ())
    copied = written.release[column][:60].reset_index(drop=True)
    assert copied.equals(written.pool[column][:60])
    assert written.release[column].isin(written.pool[column]).sum() == (
        plain.release[column].isin(plain.pool[column]).sum()
    )


def rewritten(table):
    """The table with each of its columns in another form."""
    return table.assign(
        **{column: write(table[column]) for column, write in dict(SPELLED.values()).items()}
    )


def test_copies_with_every_column_in_another_form_are_reproduced():
    members, others = patients(300, 0), patients(300, 1)
    shuffled = rewritten(members.sample(frac=1, random_state=0))
    refused("release: it holds just the members", audit_release, shuffled, members, others)
    release = rewritten(pd.concat([members[:30], patients(270, 2)]))
    audit = audit_release(release, members, others, design="game")
    assert audit.rates.set_index("rate").loc["reproduced", "member_hits"] == 30
    assert audit.result.epsilon > 0.5
    assert any("column 'name': " in note for note in audit.result.notes)
    mixed = pd.concat([members[:30].assign(born=dates_in("%d.%m.%Y", members["born"])), release])
    assert alike(mixed[["born"]], [members[["born"]]]).release.dtypes["born"].kind == "M"


def test_dates_that_moved_by_one_day_are_as_near_as_dates():
    members, others = (patients(300, seed)[["born", "seen", "ward"]] for seed in (0, 1))
    moved = pd.to_datetime(members["born"]) + pd.Timedelta(1, "D")
    release = members.assign(born=moved.dt.strftime("%d/%m/%Y"))
    assert audit_release(release, members, others, design="game").result.epsilon > 2


def test_the_whole_column_decides_between_day_and_month_and_an_open_order_is_doubted():
    members, others = patients(300, 0)[["born"]], patients(300, 1)[["born"]]
    early = members[pd.to_datetime(members["born"]).dt.day <= 12]
    for form in ("%d/%m/%Y", "%m/%d/%Y"):
        tables = {"release": early.assign(born=dates_in(form, early["born"])), "members": members}
        read, (doubt,) = read_values(tables)
        assert (doubt.column, len(doubt.forms)) == ("born", 2)
        (warning,) = alike(tables["release"], [members]).warnings
        assert warning.startswith("column 'born': its values can be read in several ways")
        assert read["release"]["born"].equals(pd.to_datetime(early["born"]).astype("M8[us]"))
        alone = dict.fromkeys(("release", "members"), tables["release"])
        assert read_values(alone)[1] == ()  # one form on all sides: equal values stay equal
        late = pd.concat([tables["release"], members.assign(born=dates_in(form, members["born"]))])
        assert read_values({"release": late, "members": members, "others": others})[1] == ()


def test_codes_words_and_numbers_of_words_stay_what_they_are():
    table = pd.DataFrame(
        {
            "zip": ["01234", "10115", "99999"] * 10,
            "diagnosis": ["I10", "E11", "J45"] * 10,
            "blood": ["A+", "A-", "0+"] * 10,
            "room": ["ward 1", "ward 2", "ward 3"] * 10,
            "version": ["1.5.2", "1.5.3", "1.6.0"] * 10,
            "day": [20210304, 20210305, 20210306] * 10,
        }
    )
    read, unclear = read_values({"release": table, "members": table})
    assert unclear == ()
    pd.testing.assert_frame_equal(read["release"], table)
    spelled = alike(table, [table])
    assert spelled.notes == ()
    assert spelled.release["blood"].nunique() == 3


def test_words_that_the_release_hardly_shares_with_the_records_are_refused_by_name():
    members, others, release = (patients(300, seed) for seed in range(3))
    for column, change in (
        ("ward", lambda text: text.map({name: f"Station {name}" for name in "ABCDEF"})),
        ("born", lambda text: dates_in("%d of %B in %Y", text)),
        ("born", lambda text: (pd.to_datetime(text) - pd.Timestamp("1899-12-30")).dt.days.map(str)),
    ):
        strange = release.assign(**{column: change(release[column])})
        compared = alike(strange, [members, others])
        (refusal,) = compared.refusals
        assert refusal.code == RefusalCode.NOT_COMPARABLE
        hardly = f"release: column '{column}': hardly any released value, such as "
        assert refusal.sentence.startswith(hardly)
        assert (compared.warnings, compared.uncertain) == ((), ())
    leaky = members.assign(born=strange["born"])  # a leak that other columns show is no answer
    document = audit_release(leaky, members, others, design="game").document()
    assert [refusal.code for refusal in document.refusals] == [RefusalCode.NOT_COMPARABLE]
    assert document.judged(9.0)[1] is None


@pytest.mark.parametrize("factor", [1.0, 2.2046])
def test_a_doubted_column_is_no_answer_only_where_no_leak_is_shown(factor):
    rng = np.random.default_rng(0)
    weights = [pd.DataFrame({"weight": rng.normal(75, 10, 200).round(2)}) for _ in range(3)]
    members, others, fresh = (table.assign(ward=rng.choice(list("ABCD"), 200)) for table in weights)
    copied = members[:190].assign(weight=(factor * members["weight"][:190]).round(1))
    release = pd.concat([copied, fresh[190:].assign(weight=factor * fresh["weight"][190:])])
    audit = audit_release(release, members, others, design="game")
    codes = [refusal.code for refusal in audit.result.refusals]
    assert codes == ([] if factor == 1 else [RefusalCode.NOT_COMPARABLE])
    assert (audit.result.epsilon > 0.5) == (factor == 1)
    assert (audit.document().judged(0.5)[1] is None) == (factor != 1)
    assert str(audit).count("unlike those of the records") == (factor != 1)
    beds = [
        table.assign(**{name: rng.normal(size=200) for name in ("pulse", "height", "age")})
        for table in (members, others)
    ]
    leak = audit_release(
        beds[0].assign(weight=factor * members["weight"] + 0.01), *beds, design="game"
    )
    assert leak.result.epsilon > 0.5
    assert len(leak.warnings) == (factor != 1)
    assert leak.result.refusals == ()


def keyed(table, numbers, key):
    return table.assign(key=[key(number) for number in numbers])


@pytest.mark.parametrize("key", ["PT-{:06d}".format, int, "{:06d}".format])
def test_copies_under_a_new_key_are_reproduced_and_the_key_is_named(key):
    numbers = np.random.default_rng(9).permutation(900_000)
    members, others, fresh = (
        keyed(people(300, seed), numbers[300 * seed : 300 * seed + 300], key) for seed in range(3)
    )
    copied = pd.concat([members[:280], fresh[280:]]).assign(key=fresh["key"].to_numpy())
    audit = audit_release(copied, members, others, design="game")
    assert audit.rates.set_index("rate").loc["reproduced", "member_hits"] >= 280
    (note,) = [note for note in audit.result.notes if note.startswith("column 'key': ")]
    assert note.endswith("it is left out of all distances and rates")
    assert not [text for text in audit.warnings if "'key'" in text]
    other = copied.assign(key=[f"row {row} of it" for row in range(300)])
    if copied["key"].dtype.kind not in "iu":
        (doubt,) = alike(other, [members, others]).warnings
        assert doubt.startswith("column 'key' is left out: released values, such as row 0 of it")
    kept = alike(copied, [members, others], kept="key")
    assert (list(kept.release), kept.notes) == (list(copied), ())
    own = pd.concat([members[:30], fresh[30:]])  # copies that kept their key
    assert "key" in alike(own, [members, others]).release


def test_a_number_that_belongs_to_its_row_is_no_key_however_rarely_it_repeats():
    rng = np.random.default_rng(0)
    members, others, release = (people(300, seed) for seed in range(3))
    for table in (members, others, release):
        table["cents"] = (1e6 * np.exp(0.3 * table["age"] + rng.normal(size=300))).astype("int64")
    assert "cents" in alike(release, [members, others]).release
    for scale in (1, 100):  # in another unit too
        copied = members[:60].assign(cents=scale * members["cents"] + 1)
        fresh = release[60:].assign(cents=scale * rng.permutation(release["cents"])[60:])
        assert "cents" in alike(pd.concat([copied, fresh]), [members, others]).release
    codes = [pd.DataFrame({"code": 2 * np.arange(40) + side}) for side in (0, 1)]
    refused("no column is left to compare: 'code'", alike, codes[0], [codes[1]])


def test_a_few_different_rows_may_agree_with_the_members_by_chance():
    few = pd.DataFrame({"sex": ["f", "m"] * 40})
    codes = [few.assign(code=[f"{side}x{row}" for row in range(80)]) for side in "abc"]
    audit = audit_release(*codes, design="game")
    assert audit.result.epsilon == 0
    assert "column 'code'" in " ".join(audit.reading)


@pytest.mark.parametrize("key", ["P-{:02d}".format, "{:03d}".format, int])
def test_keys_of_few_rows_that_meet_by_chance_are_keys(key):
    rng = np.random.default_rng(3)
    members, others, fresh = (people(20, seed) for seed in range(3))
    numbers = rng.permutation(99)
    for table, chosen in ((members, numbers[:20]), (others, numbers[20:40])):
        table["key"] = [key(number) for number in chosen]
    fresh["key"] = [key(number) for number in rng.permutation(99)[:20]]
    assert fresh["key"].isin(members["key"]).any()
    copied = members.assign(key=fresh["key"])
    assert "key" not in alike(copied, [members, others]).release
    owned = pd.concat([members[:10], fresh[10:]])  # half of them kept their key
    assert "key" in alike(owned, [members, others]).release


def test_forms_that_are_compared_in_one_spelling_are_not_doubted():
    rng = np.random.default_rng(0)
    letters = list("abcdefghijklm")
    words = ["".join(rng.choice(letters, 7)) for _ in range(360)]
    names = pd.Series(
        [f"{first} {last}" for first, last in zip(words[::2], words[1::2], strict=True)]
    )
    telephones = pd.Series([f"030 {number}" for number in rng.integers(1e6, 1e7, 180)])
    turned_names = names.str.replace(r"(\w+) (\w+)", r"\2, \1", regex=True)
    short_names = names.str.replace(r"(\w)\w* (\w+)", r"\1. \2", regex=True)
    assert not is_written_otherwise(turned_names[:60], names[60:])
    assert is_written_otherwise(short_names[:60], names[60:])
    assert not is_written_otherwise("+49 " + telephones[:60].str[1:], telephones[60:])
    assert is_written_otherwise(telephones[:60].str[4:], telephones[60:])


def test_rows_of_few_words_are_equal_by_chance_and_copies_of_long_numbers_are_not():
    rng = np.random.default_rng(0)
    height, weight = rng.normal(size=(2, 400))
    rounded = np.column_stack([np.round(170 + 8 * height), np.round(70 + 9 * height + weight)])
    few = np.column_stack([rng.integers(0, 2, 400), rng.integers(0, 1440, 400)])
    exact = np.column_stack([rng.normal(size=400), rng.integers(0, 2, (400, 3))])
    for rows in (rounded, few):
        assert len(np.unique(rows, axis=0)) < 400
        assert equal_by_chance(rows)
    assert not equal_by_chance(np.vstack([exact, exact[:5]]))
    assert equal_by_chance(rng.integers(0, 9, (400, 1)).astype(float))


def test_names_that_all_are_members_are_no_keys_though_all_else_is_written_otherwise():
    members, others = (patients(60, seed)[["name", "born"]] for seed in (0, 1))
    unlike = dates_in("%d of %B in %Y", members["born"])
    copied = members.assign(born=unlike).sample(frac=1, random_state=0)
    compared = alike(copied, [members, others])
    assert "name" in compared.release
    assert compared.uncertain[0].code == RefusalCode.NOT_COMPARABLE


def test_a_new_key_hides_no_copies_where_the_other_column_never_repeats_either():
    codes = [f"{number:05d}" for number in np.random.default_rng(0).permutation(99_999)[:300]]
    tables = [pd.DataFrame({"zip": codes[100 * side : 100 * side + 100]}) for side in range(3)]
    for side, table in enumerate(tables):
        table["key"] = [f"PT-{4 * row + side:06d}" for row in range(100)]
    members, others, fresh = tables
    copied = pd.concat([members[:10], fresh[10:]]).assign(key=fresh["key"].to_numpy())
    compared = alike(copied, [members, others])
    assert list(compared.release) == ["zip"]
    assert compared.release["zip"].isin(compared.pool["zip"]).sum() == 10
