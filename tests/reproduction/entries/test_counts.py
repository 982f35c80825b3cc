"""The counts of made-up rows, as the book has them: intervals, page, and the first files again."""

from pathlib import Path

import pandas as pd
import pytest

from paperlib.audits.language.blind import BLIND_LEVEL
from paperlib.core.intervals import share_interval
from paperlib.reproduction.entries import interval_coverage, shared_coins, sound_files, text_sides
from paperlib.reproduction.entries.counting import FIRST, count_rows
from paperlib.reproduction.running import find_project

HERE = find_project(Path(__file__).parent)
PAGE = "".join(
    (HERE.root / "book" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("what_a_number_means", "audit_texts")
)


def counts(name: str, heading: str) -> pd.DataFrame:
    """The committed table of this name, its rows by what ``heading`` holds."""
    return pd.read_csv(HERE.measured / "estimates" / f"{name}.csv").set_index(heading)


SHARED = counts("shared_coins", shared_coins.HEADING)
SOUND = counts("sound_files", sound_files.HEADING)
SIDES = counts("text_sides", text_sides.HEADING)
COVERED = counts("interval_coverage", interval_coverage.HEADING)


def page_rows(table: pd.DataFrame, count: str, *columns: str) -> list[str]:
    """The rows of a table as the page shows them: name, files, columns, and the count with the
    interval of its share in percent.
    """
    lines: list[str] = []
    for name, row in table.astype(object).iterrows():
        low, high = (100 * row[end] for end in ("low", "high"))
        shown = [name, f"{row['files']:,}", *(row[column] for column in columns)]
        lines.append(f"| {' | '.join(map(str, shown))} | {row[count]:,} [{low:.1f}, {high:.1f}] |")
    return lines


ON_THE_PAGE = [
    *page_rows(SHARED, "above", "refused", "warned"),
    *page_rows(SOUND, "refused", "doubted"),
    *page_rows(SIDES, "apart", "above", "left"),
    *page_rows(COVERED, "covered", "truth"),
]


@pytest.mark.parametrize(
    ("table", "count", "names"),
    [
        (SHARED, "above", shared_coins.ROWS),
        (SOUND, "refused", sound_files.ENTRIES),
        (SIDES, "apart", text_sides.SIDES),
        (COVERED, "covered", interval_coverage.SETTINGS),
    ],
)
def test_the_intervals_are_those_of_the_counts(table, count, names):
    assert list(table.index) == list(names)
    assert [row["files"] for _, row in table.iterrows()] == [row.files for row in names.values()]
    for _, row in table.iterrows():
        low, high = share_interval(int(row[count]), int(row["files"]))
        assert (row["low"], row["high"]) == (round(low, 4), round(high, 4))


def test_the_pages_show_the_counts():
    assert [row for row in ON_THE_PAGE if row not in PAGE] == []


@pytest.mark.parametrize("name", sound_files.ENTRIES)
def test_no_entry_refuses_more_than_one_sound_file_in_a_thousand(name):
    assert SOUND.loc[name, "refused"] <= SOUND.loc[name, "files"] / 1_000


def test_sides_by_coins_are_told_apart_as_seldom_as_the_level_says():
    for name, sides in text_sides.SIDES.items():
        if sides.difference == 0:
            assert SIDES.loc[name, "low"] <= BLIND_LEVEL
        else:
            assert SIDES.loc[name, "left"] <= SIDES.loc[name, "above"]


@pytest.mark.parametrize("name", shared_coins.ROWS)
def test_the_first_files_that_share_coins_drawn_again_are_judged_alike(name):
    again = shared_coins.counted(shared_coins.outcomes_of(name, FIRST))
    assert again == {key: SHARED.loc[name, f"{key}_of_first"] for key in again}


@pytest.mark.parametrize("name", text_sides.SIDES)
def test_the_first_sides_of_texts_drawn_again_are_judged_alike(name):
    again = text_sides.counted(name, FIRST)
    assert again == {key: SIDES.loc[name, f"{key}_of_first"] for key in again}


@pytest.mark.parametrize("name", sound_files.ENTRIES)
def test_the_first_sound_files_drawn_again_have_the_bounds_of_the_table(name, tmp_path):
    again = [sound_files.outcome_of(name, number, tmp_path) for number in range(FIRST)]
    assert SOUND.loc[name, "bounds_of_first"] == pytest.approx(
        sum(outcome.epsilon for outcome in again), abs=1e-3
    )


@pytest.mark.parametrize("name", ["AUC, N(0,1), 20 and 20", "AUC, N(10,4), 300 and 300"])
def test_the_first_intervals_drawn_again_cover_as_often(name):
    first = interval_coverage.FIRST_INTERVALS
    covers = interval_coverage.covered(interval_coverage.SETTINGS[name], first)
    assert 0 < covers.sum() == COVERED.loc[name, "covered_of_first"]


def test_a_run_that_ended_early_goes_on_with_the_rows_that_are_missing(tmp_path):
    path, made = tmp_path / "counts.csv", []

    def count(name: str) -> dict[str, object]:
        made.append(name)
        return {"files": 1}

    count_rows(path, "rows", {"a": lambda: count("a")})
    count_rows(path, "rows", {"a": lambda: count("a"), "b": lambda: count("b")})
    assert made == ["a", "b"]
    assert list(pd.read_csv(path)["rows"]) == ["a", "b"]
