"""What a column holds says what a record is, whatever its name; sound columns pass."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp

from paperlib import MembershipScores
from paperlib.core import find_ties, records
from paperlib.reading import read_scores
from paperlib.words.designs import tie_warnings
from tests.refusals import refused


def warnings_of(name, *values):
    """What is said of values that are not refused."""
    return tie_warnings(find_ties(name, *values))


def units(seed, *, count=200, rows=10, order="as they come"):
    """Losses that leak nothing of so many units with a coin each, and a number for each unit."""
    rng = np.random.default_rng(seed)
    member = rng.permutation(count) < count // 2
    if order == "members first":
        member = np.sort(member)[::-1]
    unit = np.repeat(np.arange(count), rows)
    if order == "shuffled":
        unit = rng.permutation(unit)
    loss = rng.normal(size=count)[unit] + 0.05 * rng.normal(size=unit.size)
    return unit, pd.DataFrame({"loss": loss.round(6), "member": member[unit].astype(int)})


SPELLINGS = {
    "text": "u{}",
    "numbers": "{}",
    "floats": "{}.0",
    "paths": "data/{}.png",
    "mails": "{}@example.org",
}


@pytest.mark.parametrize("name", ["sample_id", "user_id", "uid", "patient", "path"])
@pytest.mark.parametrize("order", ["as they come", "members first", "shuffled"])
def test_a_column_of_units_is_refused_whatever_its_name(name, order, tmp_path):
    """Once 37 of 40 such files without a leak claimed one."""
    for seed, spelling in enumerate(SPELLINGS.values()):
        unit, frame = units(seed, order=order)
        frame.insert(0, name, [spelling.format(number) for number in unit])
        frame.insert(1, "epoch", np.arange(2_000) % 10)
        path = tmp_path / "losses.csv"
        frame.to_csv(path, index=False)
        message = refused(rf"column '{name}' names units: 200 of its 200 values", read_scores, path)
        assert f"--unit {name} " in message
        assert len(read_scores(path, unit_column=name).scores) == 200
        assert len(read_scores(path, group_column=name).scores) == 2_000
        files = [tmp_path / "members.csv", tmp_path / "others.csv"]
        for file, side in zip(files, (1, 0), strict=True):
            frame[frame["member"] == side].drop(columns="member").to_csv(file, index=False)
        assert "names units" in refused(rf"column '{name}'", read_scores, *files)


@pytest.mark.parametrize(("count", "rows"), [(200, 2), (200, 5), (120, 10), (60, 30)])
def test_measured_numbers_that_each_row_of_a_unit_repeats_are_refused(count, rows, tmp_path):
    path = tmp_path / "losses.csv"
    unit, frame = units(5, count=count, rows=rows, order="shuffled")
    incomes = np.random.default_rng(6).lognormal(10, 0.5, count).round(2)
    frame["income"] = incomes[unit]
    frame.to_csv(path, index=False)
    assert "--unit income " in refused("column 'income' names units", read_scores, path)
    frame["income"] = incomes[np.random.default_rng(7).permutation(unit)]  # rows of their own
    frame.to_csv(path, index=False)
    read_scores(path)


def test_measured_numbers_that_tell_of_membership_name_no_units(tmp_path):
    """Sides that follow the numbers, by a leak or by a date, are no sides of units."""
    path, rng = tmp_path / "losses.csv", np.random.default_rng(8)
    for shift, digits in ((3.0, 1), (0.5, 1), (8.0, 1), (3.0, 2)):
        member = rng.random(2_000) < 0.5
        other = (rng.normal(size=2_000) - shift * member).round(digits)
        frame = pd.DataFrame({"loss": rng.normal(size=2_000), "other": other, "member": member * 1})
        frame.to_csv(path, index=False)
        read_scores(path)


def test_few_units_with_rows_of_any_number_and_units_of_units_are_refused(tmp_path):
    path = tmp_path / "losses.csv"
    for seed, count, rows in ((1, 30, 10), (2, 200, 2), (3, 12, 40)):
        unit, frame = units(seed, count=count, rows=rows, order="shuffled")
        frame.assign(site=[f"s{number}" for number in unit]).to_csv(path, index=False)
        refused("column 'site' names units", read_scores, path)
    unit, frame = units(4, count=60)
    frame["visit"], frame["patient"] = np.arange(600) // 2, unit
    frame.to_csv(path, index=False)
    refused("column 'patient' names units", read_scores, path, unit_column="visit")


def test_records_of_both_sides_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    names = rng.choice(10**9, 100, replace=False)
    frame = pd.DataFrame({"customer": np.tile(names, 2), "loss": rng.normal(size=200)})
    frame["member"] = np.repeat([1, 0], 100)
    path = tmp_path / "losses.csv"
    frame.to_csv(path, index=False)
    refused("'customer' names records of both sides: 100 of its 100 values", read_scores, path)
    assert len(read_scores(path, group_column="customer").scores) == 200


def counted_anew(member, size):
    numbers = np.empty(member.size, dtype=int)
    for side in (member, ~member):
        numbers[side] = np.arange(side.sum()) // size
    return numbers


def days(numbers, form="%Y-%m-%d"):
    first = datetime.date(2020, 1, 1)
    return [(first + datetime.timedelta(int(number))).strftime(form) for number in numbers]


SOUND = {
    "classes": lambda rng, member: rng.integers(0, 100, member.size),
    "ages": lambda rng, member: np.clip(rng.normal(50, 15, member.size), 0, 99).astype(int),
    "sexes": lambda rng, member: rng.choice(["m", "f"], member.size),
    "batches": lambda rng, member: np.arange(member.size) // 32,
    "batches of each side": lambda rng, member: counted_anew(member, 4),
    "days": lambda rng, member: days(rng.integers(0, 365, member.size)),
    "a split by days": lambda rng, member: days(rng.integers(0, 300, member.size) + 300 * member),
    "days first": lambda rng, member: days(
        rng.integers(0, 300, member.size) + 300 * member, "%d/%m/%Y"
    ),
    "folds": lambda rng, member: rng.integers(0, 5, member.size) + 5 * member,
    "folders of classes": lambda rng, member: [
        f"{'train' if is_member else 'test'}/n{37 * number:05d}"
        for is_member, number in zip(member, rng.integers(0, 60, member.size), strict=True)
    ],
    "models": lambda rng, member: rng.choice(["gpt", "bert"], member.size),
    "one value": lambda rng, member: np.full(member.size, 7),
    "features": lambda rng, member: rng.normal(size=member.size),
    "another score": lambda rng, member: (rng.normal(size=member.size) + 8 * member).round(1),
    "whole scores": lambda rng, member: np.floor(20 * (rng.normal(size=member.size) + 8 * member)),
    "row numbers": lambda rng, member: np.arange(member.size),
    "row numbers of each side": lambda rng, member: counted_anew(member, 1),
    "prompts": lambda rng, member: rng.integers(0, member.size // 3, member.size),
    "missing": lambda rng, member: np.where(rng.random(member.size) < 0.9, "", "x"),
}


@pytest.mark.parametrize("column", SOUND)
def test_columns_of_rows_with_coins_of_their_own_pass(column):
    refusals = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        member = rng.random(int(rng.choice([60, 300, 1_000]))) < rng.choice([0.3, 0.5, 0.8])
        if seed % 3 == 0:
            member = np.sort(member)[::-1]  # members first
        scores = rng.normal(size=member.size) + seed % 4 * member
        cells = np.asarray(SOUND[column](rng, member)).tolist()
        try:
            records.check_column("column 'x'", "x", cells, member, scores)
        except ValueError:
            refusals += 1
    assert refusals == 0


def test_a_check_that_takes_every_order_for_chance_is_caught(monkeypatch):
    """The twin that does not look at the scores of one value refuses the split by days."""
    monkeypatch.setattr(records, "_are_alike", lambda *_: True)
    with pytest.raises(AssertionError):
        test_columns_of_rows_with_coins_of_their_own_pass("a split by days")


def oversampled(seed, times):
    """Scores that leak nothing; rare members, which score higher, stand ``times`` times."""
    rng = np.random.default_rng(900 + seed)
    rare = rng.random(1_000) < 0.2
    scores = rng.normal(size=1_000) + 2 * rare
    member = rng.random(1_000) < 0.5
    copies = {"3 or 4": rng.integers(3, 5, 1_000), "any": 1 + rng.poisson(2, 1_000)}.get(
        times, times
    )
    repeats = np.where(rare, copies, 1)[member].astype(int)
    return np.repeat(scores[member], repeats), scores[~member], repeats


@pytest.mark.parametrize("times", [2, 3, 4, 5, "3 or 4", "any"])
@pytest.mark.parametrize("digits", [16, 4])
def test_copies_of_members_are_refused_however_often_they_stand(times, digits):
    """Once 3, 4 and 5 copies passed and nearly every audit claimed a leak that was not there."""
    for seed in range(5):
        members, others, repeats = oversampled(seed, times)
        message = refused(
            "scores: ", find_ties, "scores", members.round(digits), others.round(digits)
        )
        if digits == 16:
            assert f"{(repeats > 1).sum():,} values stand" in message or times == "3 or 4"


def test_copies_that_chance_would_not_put_on_one_side_are_told_from_a_leak():
    """Equal scores of a strong leak stand on one side as well, but so do their neighbours."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        member = rng.random(2_000) < 0.5
        scores = rng.normal(size=2_000) + 8 * member
        for equal in (scores.round(1), np.float16(scores).astype(float), np.floor(20 * scores)):
            find_ties("scores", equal[member], equal[~member])


def test_a_few_copies_are_counted_truly_in_the_warning():
    values = np.random.default_rng(5).normal(size=500)
    assert "9 of 506 are equal" in str(
        warnings_of("scores", np.r_[values, np.repeat(values[:3], 2)])
    )
    assert "4 of 503 are equal" in str(
        warnings_of("scores", np.r_[values, np.repeat(values[0], 3)])
    )


def test_a_column_that_holds_no_single_values_is_left_alone(tmp_path):
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"loss": rng.normal(size=40), "member": np.arange(40) % 2})
    frame["tokens"] = [[1, 2]] * 40
    frame["unit"] = np.arange(40) // 2 % 8
    frame.to_parquet(tmp_path / "losses.parquet")
    assert isinstance(read_scores(tmp_path / "losses.parquet").scores, MembershipScores)
    frame["unit"] = (np.arange(40) % 2) + 2 * (np.arange(40) // 4)
    frame.to_parquet(tmp_path / "losses.parquet")
    refused("column 'unit' names units", read_scores, tmp_path / "losses.parquet")


def rows_of_users(seed, spread):
    """Scores that leak nothing of 100 users with 10 rows each, near but not equal, a coin each."""
    rng = np.random.default_rng([seed, 9])
    scores = np.repeat(rng.normal(size=100), 10) + spread * rng.normal(size=1_000)
    return scores, np.repeat(rng.random(100) < 0.5, 10)


LEAKS = {
    "none": lambda rng, member: rng.normal(size=member.size),
    "shifts": lambda rng, member: rng.normal(size=member.size) + rng.uniform(0, 4) * member,
    "memorised": lambda rng, member: (
        rng.normal(size=member.size) + 6 * (member & (rng.random(member.size) < 0.1))
    ),
    "heavy tails": lambda rng, member: rng.standard_cauchy(member.size) + 2 * member,
    "other widths": lambda rng, member: rng.normal(size=member.size) * (1 + 2 * member),
}


def false_warnings(leak):
    """Of 40 files of scores and as many of losses."""
    warned = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 10])
        member = rng.random(int(rng.choice([100, 1_000]))) < rng.choice([0.3, 0.5, 0.8])
        scores = LEAKS[leak](rng, member)
        warned += records.neighbours_share_coins(scores, member)
        warned += records.neighbours_share_coins(-scores, member)
    return warned


@pytest.mark.parametrize("leak", LEAKS)
def test_rows_with_coins_of_their_own_are_not_taken_for_rows_of_users(leak):
    assert false_warnings(leak) == 0  # of 80, each with chance 0.001 at most


def test_a_check_that_takes_a_leak_for_shared_coins_is_caught(monkeypatch):
    """The twin that fits no curve warns of a shift."""
    monkeypatch.setattr(records, "_fitted_chances", lambda sides: np.full(sides.size, sides.mean()))
    assert false_warnings("shifts") > 20


def test_rows_of_users_that_are_nearly_equal_are_a_warning():
    """Once 29 of 40 such audits without a leak claimed one, mostly without a word."""
    warned = 0
    for seed in range(20):
        scores, member = rows_of_users(seed, 0.05)
        warnings = warnings_of("scores", scores[member], scores[~member])
        warned += "does each row have its own coin?" in " ".join(warnings)
    assert warned >= 15


def of_precision(kind, random, count):
    """Scores of independent rows as models store them, shape (count,)."""
    normal = random.normal(size=count)
    if kind == "half":
        return normal.astype(np.float16)
    if kind == "bfloat16":
        return (normal.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    if kind == "single":
        return normal.astype(np.float32)
    if kind == "certain probabilities":
        return expit(4 * normal + 6).astype(np.float32)
    # Losses of classes that are nearly certain: log-sum-exp minus the label's logit.
    logits = (6 * random.normal(size=(count, 10))).astype(np.float32)
    return logsumexp(logits, axis=1) - logits.max(axis=1)


@pytest.mark.parametrize(
    "kind", ["half", "bfloat16", "single", "certain probabilities", "certain losses"]
)
def test_equal_scores_that_their_precision_explains_are_no_copies(kind):
    """At a level of .001, one warning in 40 files is already rare."""
    warned = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        sides = np.float64(of_precision(kind, random, 2000)).reshape(2, -1)
        warned += any("check for copies" in text for text in warnings_of("scores", *sides))
    assert warned <= 1


@pytest.mark.parametrize(("kind", "copies"), [("single", 3), ("double", 1)])
def test_copies_beyond_what_the_precision_explains_are_seen(kind, copies):
    """The twin: the same scores, a few of them copied."""
    for seed in range(20):
        scores = np.random.default_rng(seed).normal(size=(2, 1000))
        if kind == "single":
            scores = np.float64(of_precision(kind, np.random.default_rng(seed), 2000))
            scores = scores.reshape(2, -1)
        members = np.append(scores[0], scores[0][:copies])
        warnings = warnings_of("scores", members, scores[1])
        assert any("check for copies" in text for text in warnings)


def units_of_unlike_rows(seed, count):
    """Units of three rows each, unlike in their scores, half of them members."""
    rng = np.random.default_rng([seed, count])
    member = rng.permutation(count) < count // 2
    unit = np.repeat(np.arange(count), 3)
    return [f"u{number}" for number in unit], member[unit], rng.normal(size=unit.size)


def test_units_whose_sides_are_in_order_by_chance_are_seen():
    """Once 5 changes of side among 24 units were taken for the order of a split by time."""
    seeds = []
    for seed in range(3_000):
        cells, member, _ = units_of_unlike_rows(seed, 24)
        if (np.diff(member.astype(int)) != 0).sum() == 5:
            seeds.append(seed)
    assert len(seeds) >= 3
    for seed in seeds:
        cells, member, scores = units_of_unlike_rows(seed, 24)
        refused("names units: 24 of its 24", records.check_column, "column 'x'", "x", cells, member)
        refused("names units", records.check_column, "column 'x'", "x", cells, member, scores)


@pytest.mark.parametrize("sides", [[1] * 12 + [0] * 12, [1] * 8 + [0] * 8 + [1] * 8])
def test_months_in_one_or_three_periods_are_the_order_of_a_split(sides):
    member = np.repeat(np.array(sides, dtype=bool), 30)
    month = np.repeat(np.arange(24), 30)
    scores = np.random.default_rng(0).normal(size=member.size)
    for rows in (None, scores, np.column_stack([scores, scores**2])):
        records.check_column("column 'x'", "x", month.tolist(), member, rows)


def test_units_in_the_order_of_the_sides_are_seen_by_any_column_beside_them():
    rng = np.random.default_rng(1)
    unit = np.repeat(np.arange(60), 4)
    beside = np.column_stack([rng.normal(size=240), rng.normal(size=60)[unit]])
    arguments = ("column 'x'", "x", unit.tolist(), unit < 30)
    records.check_column(*arguments, beside[:, 0])
    refused("names units: 60 of its 60", records.check_column, *arguments, beside)
