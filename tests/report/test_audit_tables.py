"""The most exposed records and the table of groups."""

import numpy as np
import pandas as pd
import pytest

from paperlib.core import MembershipScores, ScoreAudit
from paperlib.core.intervals import score_measures
from paperlib.report import audit_report
from paperlib.report.audit.tables import exposed_section, group_table, most_exposed, with_interval

REFUSED = ScoreAudit(title="Main", kind="lower bound", purpose="p", result=None, refused="r")


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    return MembershipScores(rng.normal(1, 1, 300), rng.normal(0, 1, 310))


@pytest.mark.parametrize("higher", [True, False])
def test_the_most_exposed_are_those_a_sort_of_the_members_puts_first(scores, higher):
    sign = 1 if higher else -1
    given = MembershipScores(
        sign * scores.member, sign * scores.nonmember, higher_means_member=higher
    )
    ids = [f"r{at}" for at in range(len(given))]
    exposed = most_exposed(given, ids, count=15)
    order = np.argsort(-scores.member)[:15]
    assert exposed["record"].tolist() == [f"r{at}" for at in order]
    assert exposed["score"].tolist() == given.member[order].tolist()
    above = [int((scores.nonmember >= scores.member[at]).sum()) for at in order]
    assert exposed["nonmembers_as_extreme"].tolist() == above
    assert exposed["share"].to_numpy() == pytest.approx(np.array(above) / 310)


def test_only_members_who_stand_out_are_listed_by_number_without_ids_and_ties_counted():
    assert most_exposed(MembershipScores([0, 5, 5, 9], [1]))["record"].tolist() == [4, 2, 3, 1]
    scores = MembershipScores([7.0, *[3.0] * 10], [1.0])
    assert most_exposed(scores, count=4)["record"].tolist() == [1, 2, 3, 4]
    assert (
        exposed_section(scores, None, count=4).note
        == "7 more members have the score of the last row."
    )
    assert exposed_section(scores, None).note == ""
    tied = MembershipScores(
        [-0.0] * 200 + [1.0], [-0.0] * 126 + [1.0] * 159, higher_means_member=False
    )
    section = exposed_section(tied, None)
    assert "0 of 201 members stand out" in section.text
    assert not section.rows
    scores = MembershipScores([-0.0] * 3 + [1.0] * 100, [0.5] * 100, higher_means_member=False)
    section = exposed_section(scores, None)
    assert "3 of 103 members stand out" in section.text
    assert {score for _, score, _ in section.rows} == {"0"}


def test_each_group_has_the_measures_of_its_own_scores(scores):
    groups = np.array(["a", "b"])[(np.arange(len(scores)) % 3 == 0).astype(int)]
    table = group_table(scores, groups, 0.9).set_index("group")
    assert table.index.tolist() == ["a", "b"]
    for name in "ab":
        here = groups == name
        part = MembershipScores(scores.member[here[:300]], scores.nonmember[here[300:]])
        measures = score_measures(part, confidence=0.9)
        row = table.loc[name]
        assert (row["members"], row["nonmembers"]) == (part.member.size, part.nonmember.size)
        assert (row["auc"], row["auc_low"], row["auc_high"]) == (
            measures.auc,
            *measures.auc_interval,
        )
        assert row["tpr"] == measures.rates[1].true_positive_rate
    losses = MembershipScores(-scores.member, -scores.nonmember, higher_means_member=False)
    assert group_table(losses, ["a"] * len(scores))["auc"][0] == pytest.approx(scores.auc())


def test_groups_of_one_class_have_a_reason_and_the_largest_come_first(scores):
    few = MembershipScores([1.0, 2.0, 3.0], [0.0, 1.0])
    table = group_table(few, ["a", "a", None, "b", float("nan")]).set_index("group")
    assert table.loc["a", "note"] == "no non-members"
    assert table.loc["b", "note"] == "no members"
    assert table.loc["not given", "members"] == 1
    assert pd.isna(table.loc["a", "auc"])
    assert "needs 100 non-members" in table.loc["not given", "note"]
    groups = np.repeat(np.arange(61), 10)
    groups[-5:] = 7
    table = group_table(scores, groups, most=50)
    assert len(table) == 50
    assert table["group"][0] == "7"
    page = audit_report(scores, [REFUSED], title="a", facts={}, groups=groups)
    assert "11 smaller groups are not shown" in page


def test_names_of_records_and_groups_are_escaped_and_ends_of_intervals_rounded_outwards(scores):
    names = ["<i>"] * len(scores)
    page = audit_report(scores, [REFUSED], title="a", facts={}, ids=names, groups=names)
    assert "<i>" not in page
    assert page.count("&lt;i&gt;") == 21
    for what in ("ids", "groups"):
        with pytest.raises(
            ValueError, match=f"{what}: expected one for each of 610 examples, got 2"
        ):
            audit_report(scores, [REFUSED], title="a", facts={}, **{what: ["a", "b"]})
    assert with_interval(0.5, 0.4996, 0.5004) == "0.500 [0.499, 0.501]"
    assert with_interval(1.0, 0.99951, 1.0) == "1.000 [0.999, 1.000]"
