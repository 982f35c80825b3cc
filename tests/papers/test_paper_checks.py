"""Errata: every check sees a number that fits and one that does not, and every erratum has a
row.
"""

import re
from typing import Any

import pandas as pd
import pytest

from paperlib.papers.errata import checks, rows
from paperlib.papers.errata.checks import CODED, check_table, entries
from paperlib.papers.errata.rows import claim, compare, half_unit, values, worst
from paperlib.report import paper_table

LISTED = paper_table("errata_checks", as_printed=True)
WORDING = paper_table("errata_wording", as_printed=True)


def check(number: str) -> rows.Comparison:
    """The check of that number, as the tables are now."""
    (row,) = LISTED[LISTED["no"] == number].to_dict("records")
    return (
        CODED[number]()
        if number in CODED
        else rows.by_data(row["rule"], row["printed"], row["follows"])
    )


@pytest.fixture
def doctored(monkeypatch):
    """Replace cells of a shipped table: ``doctored(table, query, column, value)``."""

    def doctor(name: str, query: str, column: str, value: Any) -> None:
        def table(asked: str, *, as_printed: bool = False) -> pd.DataFrame:
            frame = paper_table(asked, as_printed=as_printed)
            if asked == name:
                chosen = paper_table(asked).query(query).index
                frame = frame.astype({column: object})
                frame.loc[chosen, column] = str(value) if as_printed else value
                frame = frame if as_printed else frame.infer_objects()
            return frame

        for module in (rows, checks):
            monkeypatch.setattr(module, "paper_table", table)

    return doctor


ALL, OMITTED, LARGE = "index >= 0", "omitted", "model == 'Pythia-12b'"


@pytest.mark.parametrize(
    ("number", "fits", "name", "query", "column", "value"),
    [
        ("1", True, "panoramia_table07", "target_dp_eps == 15", "eps", 1.20),
        ("2", True, "panoramia_table07", "target_dp_eps == 20", "eps", 1.22),
        ("3a", True, "panoramia_table10", ALL, "eps_tilde", 1.12),
        ("3b", False, "panoramia_table10", ALL, "eps_tilde", 1.15),
        ("4", True, "panoramia_table10", "train_acc_pct < 67", "train_minus_test_acc_pct", -2.62),
        ("5", True, "panoramia_table11", "target_dp_eps == 15", "c_plus_eps_lb", 3.63),
        ("6a", False, "panoramia_table03", "target_model == 'GPT2_E75'", "eps_tilde", 1.56),
        ("6b", False, "panoramia_table07", "target_dp_eps == 1", "eps_tilde", 0.1),
        ("7a", True, "panoramia_table07", "target_dp_eps == 6", "eps_tilde", 0),
        ("7b", True, "panoramia_table03", "target_dp_eps == 2", "eps", 0),
        ("8a", False, "panoramia_table07", "target_dp_eps == 20", "eps", 1.1),
        ("8b", True, "panoramia_table08", "target_dp_eps == 10", "eps", 0.4),
        ("9", True, "panoramia_settings", "value in ['4', '6']", "component", OMITTED),
        ("10", True, "panoramia_table09", "eps > 0", "eps", 0.2),
        ("14b", True, "panoramia_table11", "target_dp_delta == 0", "eps_tilde", 2),
        ("15", True, "panoramia_table11", ALL, "eps_tilde", 0),
        ("16", True, "panoramia_table11", "generator_gamma > 5e-4", "eps_tilde", 0),
        ("20b", False, "panoramia_settings", "setting == 'n_chunks_total'", "value", 105_651),
        ("28a", True, "panoramia_table03", ALL, "c_lb", 0),
        ("45", True, "epsilon_star_text", "quantity == 'epsilon_star_reduction_pct'", "value", 90),
        ("46a", True, "epsilon_star_settings", "setting == 'n_rows'", "value", 49_000),
        ("46c", False, "epsilon_star_settings", "setting == 'n_experiments'", "value", 50),
        ("50", False, "epsilon_star_settings", "setting == 'n_train'", "value", 2),
        ("52", True, "epsilon_star_settings", "setting == 'empirical_clip_low'", "value", 1e-5),
        ("33b", True, "nid_table10", "split == 'test'", "p_value", 0.6),
        ("33c", False, "nid_table10", "subset == 'Dolma c4'", "p_value", 0.02),
        ("34a", False, "nid_text", "subject == 'Pile'", "value", 30_638),
        ("36", True, "nid_table10", f"subset == 'Pile-CC' and {LARGE}", "subset", "Pile UbuntuIRC"),
        ("38a", False, "nid_table01", "subset == 'average' and split == 'test'", "value_pct", 60.0),
        ("38b", True, "nid_table03", "split == 'test'", "value_pct", 50.0),
        (
            "38c",
            True,
            "nid_table01",
            "subset == 'stackexchange' and split == 'test'",
            "value_pct",
            49.0,
        ),
        ("67a", False, "nid_table02", "corpus == 'dolma'", "total", 1),
        ("67b", False, "nid_settings", "setting == 'n_train_subsets'", "value", 27),
        ("67c", False, "nid_table01", "subset == 'average'", "value_pct", 51.0),
        ("57a", True, "output_sets_text", "quantity == 'matched_upper_bound_eps'", "value", 0.75),
        ("57b", False, "output_sets_text", "quantity == 'matched_upper_bound_eps'", "value", 0.75),
        ("59", True, "output_sets_settings", "value == '51200'", "value", 25_600),
        ("60", True, "output_sets_settings", "setting == 'n_records'", "value", 10_000),
        ("62", True, "output_sets_distributions", ALL, "weight", 0.5),
    ],
)
def test_a_check_turns_with_the_table_it_reads(doctored, number, fits, name, query, column, value):
    assert check(number).fits is not fits
    doctored(name, query, column, value)
    assert check(number).fits is fits


def test_a_formula_that_does_not_fit_does_where_both_forms_agree():
    for number, fitting in (
        ("31", {"delta": 1e-3}),
        ("64", {"eps": 0.0}),
        ("41", {"delta": 0.0}),
        ("42", {"delta": 0.5}),
        ("68", {"top": 1, "epsilon": 20.0}),
        ("57c", {"b": 8.0}),
        ("58", {"theta": 0.0}),
    ):
        assert not CODED[number]().fits
        assert CODED[number](**fitting).fits


@pytest.fixture
def ranges(monkeypatch):
    """What the propositions leave of Table 11, made up: computing it takes seconds, and test_dp.py
    does.
    """
    ends = {"c_lb low": 2, "c_lb high": 2.4, "c_plus_eps_lb low": 2, "c_plus_eps_lb high": 2.4}
    frame = pd.DataFrame(
        {"epsilon": 2.0, "delta": [0.0, 1e-5], "c_lb": 2.3, "c_plus_eps_lb": 2.3, **ends}
    )
    monkeypatch.setattr(checks, "_left", lambda: frame)
    return frame


def test_table_eleven_and_folded_cells_fit_where_their_range_error_and_cells_are_others(
    ranges, monkeypatch
):
    assert check("63a").fits
    ranges["c_lb"] = 2.5
    assert not check("63a").fits
    assert check("63d").fits
    monkeypatch.setattr(checks, "ERROR", 0.0125)  # half of the error in each test
    assert not check("63d").fits
    assert not check("37").fits
    fair = pd.DataFrame({"value_pct": [49.0, 51.0] * 30})
    monkeypatch.setattr(checks, "auc_cells", lambda split="": fair)
    assert check("37").fits


def test_every_erratum_has_a_row_and_every_computation_its_texts():
    numbers = {int(re.match(r"\d+", one)[0]) for one in [*LISTED["no"], *WORDING["no"]]}
    assert numbers | {43} == set(
        range(1, max(numbers) + 1)
    )  # 43 was a damaged letter of the text at hand
    assert set(LISTED.loc[LISTED["rule"] == "code", "no"]) == set(CODED)
    assert LISTED["no"].is_unique
    for table in (LISTED[["place", "compared"]], WORDING):
        assert (table != "").all(axis=None)


def test_rounding_is_half_a_unit_of_the_last_digit_and_the_worst_and_exceptions_are_counted():
    assert half_unit("0.10") == pytest.approx(0.005)
    assert (half_unit("120"), half_unit("120", about=True)) == (0, 5)
    assert compare("0.33", 0.32, 0.01).fits
    assert not compare("0.33", 0.31, 0.01).fits
    mixed = worst([compare("1.0", 1.02), compare("1.0", 1.5)])
    assert (mixed.fits, mixed.follows) == (False, "1.5 (1 of 2 fit)")
    assert claim("all", [True, False, False]).off == 2
    assert claim("all", [True]).fits


def test_terms_follow_with_their_rounding(monkeypatch):
    made_up = pd.DataFrame({"a": ["1.5", "2.25"], "b": ["2", "1"]})
    monkeypatch.setattr(rows, "paper_table", lambda name, as_printed=False: made_up)
    for terms, value, reach in (
        ("a", [1.5, 2.25], [0.05, 0.005]),
        ("a - b", [-0.5, 1.25], [0.05, 0.005]),
        ("a + b", [3.5, 3.25], [0.05, 0.005]),
        ("clipped a - b", [0.0, 1.25], [0.05, 0.005]),
        ("half a", [0.75, 1.125], [0.025, 0.0025]),
        ("sum a", [3.75], [0.055]),
        ("half sum b", [1.5], [0.0]),
        ("product b", [2.0], [0.0]),
        ("count b", [2.0], [0.0]),
    ):
        follows = values(f"made up | | {terms}")
        assert follows[0] == pytest.approx(value)
        assert follows[1] == pytest.approx(reach)


@pytest.mark.usefixtures("ranges")
def test_every_entry_has_one_row_with_the_check_that_fits_least():
    table = check_table()
    assert table["no"].tolist() == LISTED["no"].tolist()
    shown = entries(table).set_index("no")
    numbers = table["no"].str.rstrip("abcdefgh")
    assert shown.index.tolist() == list(dict.fromkeys(numbers))
    assert shown["checks"].sum() == len(table)
    assert shown["fitting"].sum() == table["fits"].sum()
    for number, part in table.groupby(numbers):
        assert shown["fits"][number].startswith("yes") == bool(part["fits"].all())
    assert shown.loc["2", ["printed", "follows", "fits"]].tolist() == [
        "1.22",
        "1.34",
        "no: 0.12 > 0.01",
    ]
