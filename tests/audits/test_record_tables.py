"""Columns of releases, tables and texts that say what a record is, and rows that are alike."""

import datetime

import numpy as np
import pandas as pd
import pytest

from paperlib.audits import audit_release
from paperlib.audits.releases.records import alike_rows_warnings, check_record_columns
from tests.refusals import refused

COLUMNS = {
    "sex": lambda rng, rows: rng.choice(["m", "f"], rows),
    "site": lambda rng, rows: rng.choice([f"s{at}" for at in range(30)], rows),
    "age": lambda rng, rows: np.clip(rng.normal(50, 15, rows), 0, 99).astype(int),
    "visit": lambda rng, rows: [
        (datetime.date(2020, 1, 1) + datetime.timedelta(int(day))).isoformat()
        for day in rng.integers(0, 700, rows)
    ],
    "post code": lambda rng, rows: [f"{code:05d}" for code in rng.integers(0, 300, rows)],
    "small site": lambda rng, rows: [f"c{size}" for size in np.minimum(rng.zipf(1.6, rows), 500)],
    "key": lambda rng, rows: rng.permutation(10**6)[:rows],
    "income": lambda rng, rows: np.exp(rng.normal(9, 0.6, rows)).round().astype(int),
    "weight": lambda rng, rows: rng.normal(70, 12, rows).round(1),
    "missing": lambda rng, rows: np.where(rng.random(rows) < 0.8, "", "x"),
    "batch": lambda rng, rows: np.arange(rows) // 8,
    "doctor": lambda rng, rows: [f"dr {number}" for number in rng.integers(0, rows // 5, rows)],
}
NAMES = ["kennung", "who", "x", "visit", "post code", "a b"]


def sound_table(seed):
    """A table of rows with a coin each, and their membership."""
    rng = np.random.default_rng([seed, 57])
    rows = int(rng.choice([60, 150, 400]))
    chosen = rng.choice(list(COLUMNS), 5, replace=False)
    table = pd.DataFrame({name: COLUMNS[name](rng, rows) for name in chosen})
    return table, rng.random(rows) < rng.choice([0.3, 0.5, 0.7])


def table_of_units(seed, *, in_order=False):
    """A table of units of 2 to 5 rows with a coin each, their membership, and what they are
    called.
    """
    rng = np.random.default_rng([seed, 58])
    people = int(rng.choice([30, 60, 150]))
    unit = np.repeat(np.arange(people), rng.integers(2, 6))
    columns = {name: COLUMNS[name](rng, unit.size) for name in ("sex", "income", "weight")}
    name = NAMES[seed % len(NAMES)]
    spelling = ["{}", "u{}", "{}@example.org"][seed % 3]
    columns["born"] = rng.integers(1940, 2005, people)[unit]
    columns[name] = [spelling.format(number) for number in unit]
    member = rng.permutation(people) < people // 2
    if in_order:
        member = np.arange(people) < people // 2
    order = rng.permutation(unit.size)
    return pd.DataFrame(columns).iloc[order], member[unit][order], name


def refusals(tables):
    """What is said of each table that is refused."""
    messages = []
    for table, member in tables:
        try:
            check_record_columns(table[member], table[~member])
        except ValueError as error:
            messages.append(str(error))
    return messages


def test_tables_of_rows_with_coins_of_their_own_pass():
    assert refusals(map(sound_table, range(60))) == []


@pytest.mark.parametrize("in_order", [False, True])
def test_a_column_of_units_is_refused_whatever_its_name_and_order(in_order):
    for seed in range(20):
        table, member, name = table_of_units(seed, in_order=in_order)
        (message,) = refusals([(table, member)])
        repeated = table[name].nunique()
        assert f"column '{name}' names units: {repeated} of its {repeated} values" in message
        assert f"--unit {name} (in Python unit=), or --group-column {name} if" in message
        check_record_columns(table[member], table[~member], groups=[name, "born"])


def test_records_of_both_sides_and_strata_that_were_split_evenly_are_counted():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"couple": np.tile(rng.permutation(900)[:100], 2)})
    table["weight"] = rng.normal(size=200)
    member = np.repeat([True, False], 100)
    (message,) = refusals([(table, member)])
    assert "column 'couple' names records of both sides: 100 of its 100 values" in message
    assert "--group-column couple if each row is a record of its own" in message


def release_of_units(seed):
    table, member, name = table_of_units(seed)
    fresh = table_of_units(seed + 100)[0].set_axis(table.columns, axis=1)
    return fresh, table[member], table[~member], name


def test_audit_release_refuses_units_unless_they_are_named_or_said_to_be_groups():
    release, members, others, name = release_of_units(1)
    refused(f"column '{name}' names units", audit_release, release, members, others, design="game")
    units = [*members[name], *others[name]]
    tables = [table.drop(columns=name) for table in (release, members, others)]
    audit = audit_release(*tables, unit=units, design="game")
    assert audit.result.total <= len(set(units))
    refused(
        "group column: expected one of the columns",
        audit_release,
        release,
        members,
        others,
        group_columns=["nobody"],
        design="game",
    )


def rows_of_people(seed, people=100, each=10):
    """Rows that nearly repeat those of people, and the coins of these people."""
    rng = np.random.default_rng([seed, 59])
    unit = np.repeat(np.arange(people), each)
    rows = rng.normal(size=(people, 4))[unit] + 0.05 * rng.normal(size=(unit.size, 4))
    table = pd.DataFrame(rows, columns=list("abcd"))
    table["sex"] = rng.choice(["m", "f"], people)[unit]
    return table, (rng.random(people) < 0.5)[unit]


def test_rows_that_are_alike_and_share_their_side_are_a_warning():
    seen = [bool(alike_rows_warnings(*rows_of_people(seed))) for seed in range(6)]
    assert sum(seen) >= 5
    false = [alike_rows_warnings(*sound_table(seed)) for seed in range(20)]
    assert not any(false)


def test_an_audit_of_a_release_asks_whether_rows_that_are_alike_have_a_coin_each(monkeypatch):
    """Where no classifier refuses them before."""
    monkeypatch.setattr("paperlib.audits.releases.audit.check_one_draw", lambda *_: None)
    table, member = rows_of_people(1)
    release = rows_of_people(2)[0][:60]
    audit = audit_release(release, table[member], table[~member], design="game")
    assert "rows: rows that are near to each other" in " ".join(audit.warnings)


def keys(rng, rows=200):
    """Two keys, drawn anew."""
    drawn = rng.choice(10**8, (2, rows), replace=False)
    return pd.DataFrame({"patient": drawn[0], "policy": [f"P-{number:08d}" for number in drawn[1]]})


def test_a_release_of_nothing_but_keys_is_refused_and_amounts_are_audited():
    """Once it had "no leak", whatever was copied."""
    rng = np.random.default_rng(1)
    for columns in ({}, {"constant": 1}):
        tables = [keys(rng).assign(**columns) for _ in range(3)]
        message = "no column is left to compare: 'patient', 'policy' hardly share a value"
        refused(message, audit_release, *tables, design="game")
    running = [pd.DataFrame({"number": first + rng.permutation(200)}) for first in (1_000, 1, 201)]
    refused("no column is left to compare: 'number'", audit_release, *running, design="game")
    amounts = [pd.DataFrame({"pay": np.exp(rng.normal(14, 1, 200)).astype(int)}) for _ in range(3)]
    assert audit_release(*amounts, design="game").result.epsilon == 0
    tied = [pd.DataFrame({"start": rng.permutation(10**7)[:200]}) for _ in range(3)]
    for table in tied:
        table["end"] = table["start"] + rng.permutation(10**5)[:200]
    assert audit_release(*tied, design="game").result.epsilon == 0
