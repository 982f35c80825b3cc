"""Audits of releases: the bound keeps its level, finds copies, and stays below a known epsilon."""

from functools import partial
from io import BytesIO
from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from paperlib.audits import audit_features, audit_release
from paperlib.audits.releases.distances import nearness, table_space
from paperlib.audits.releases.rows import alike, check_one_draw, space_of
from paperlib.core import toss_coins
from paperlib.generators import NoisyTree
from tests.refusals import refused


def people(rows, seed):
    """Independent rows of mixed types, some with few values."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, rows)
    frame = pd.DataFrame({"age": np.round(20 + 10 * rng.gamma(3, 0.6, rows) + 3 * group)})
    frame["income"] = np.round(np.exp(rng.normal(9 + 0.3 * group, 0.6)))
    frame["gain"] = np.where(rng.random(rows) < 0.9, 0, np.round(rng.gamma(2, 1000, rows)))
    frame["job"] = rng.choice(list("abcdefgh"), rows)
    frame["group"] = np.array(list("wxyz"))[group]
    return frame.assign(owner=rng.random(rows) < 0.5)


DAY = pd.Timestamp("2026-01-01")


def with_copies(release, members, count):
    return pd.concat([members[:count], release[count:]], ignore_index=True)


def interpolated(members, seed):
    """Points between a row and one of its nearest, as SMOTE draws them."""
    rng = np.random.default_rng(seed)
    numbers = list(members.columns.intersection(["age", "income", "gain"]))
    ranks = members[numbers].rank(pct=True).to_numpy()
    apart = np.abs(ranks[:, None] - ranks).sum(axis=2)
    first = rng.integers(0, len(members), len(members))
    second = np.argsort(apart[first], axis=1)[:, rng.integers(1, 6)]
    drawn, far = (
        members.iloc[first].reset_index(drop=True),
        members.iloc[second].reset_index(drop=True),
    )
    share = rng.random((len(members), 1))
    drawn[numbers] = np.round((1 - share) * drawn[numbers] + share * far[numbers].to_numpy())
    return drawn


def epsilon(release, members, others, **options):
    return audit_release(release, members, others, **{"design": "game", **options}).result.epsilon


def test_a_release_of_fresh_rows_shows_no_leak_and_one_of_its_members_does():
    fresh, leaky = [], []
    for seed in range(8):
        members, others, release = (people(300, 3 * seed + at) for at in range(3))
        fresh.append(epsilon(release, members, others, seed=seed))
        if seed < 2:  # the same test on a release that copies
            leaky.append(epsilon(with_copies(release, members, 60), members, others, seed=seed))
    assert sum(value > 0 for value in fresh) <= 2  # 5 % each: more has a chance of 0.6 %
    assert min(leaky) > 0.5


def test_how_isolated_a_row_is_tells_nothing_of_its_side_however_unequal_they_are():
    members, others, release = people(150, 0), people(600, 1), people(300, 2)
    assert epsilon(release, members, others) == 0
    parts = [nearness(table_space(release, side)).signals() for side in (members, others)]
    wrong = np.vstack([np.column_stack(list(signals.values())) for signals in parts])
    twin = audit_features(
        wrong, np.arange(750) < 150, design="game"
    )  # isolation within the own side
    assert twin.epsilon > 0.3


def test_copied_and_interpolated_rows_are_found_and_counted_beside_phantoms():
    members, others, release = (people(1500, seed) for seed in range(3))
    copied = audit_release(with_copies(release, members, 20), members, others, design="game")
    bounds = [copied.result.epsilon]
    for seed in (1, 2):
        rows, unseen, fresh = (people(1500, 3 * seed + side) for side in range(3))
        bounds.append(epsilon(with_copies(fresh, rows, 20), rows, unseen, seed=seed))
    assert np.median(bounds) > 0.7
    reproduced = copied.rates.set_index("rate").loc["reproduced"]
    assert (reproduced["member_hits"], reproduced["control_hits"]) == (20, 0)
    assert 0 < reproduced["excess_low"] < 20 / 1500 < reproduced["excess_high"]
    assert set(copied.exposed["record"][:10]) <= set(range(1, 21))
    assert copied.exposed["reproduced"][:10].all()
    assert (copied.exposed["release_row"] == copied.exposed["record"])[:10].all()
    between = audit_release(interpolated(members, 0), members, others, design="game")
    assert between.result.epsilon > 2
    assert (between.rates.set_index("rate").loc[["linked", "inferred"], "excess_low"] > 0).all()
    assert "The training procedure is all that made the release" in between.result.claim
    assert (
        between.document()
        .verdict.sentences[0]
        .startswith("For some record and some outcome, whoever sees the release")
    )


def named(rows, seed):
    """Names of which most are in few rows, and numbers."""
    rng = np.random.default_rng(seed)
    names = [f"{first}é {last}" for first, last in rng.integers(0, [60, 400], (rows, 2))]
    return pd.DataFrame({"name": names, "income": rng.normal(size=rows).round(2)})


def test_copied_words_are_a_leak_and_make_the_sides_no_more_different():
    members, others, release = (named(300, seed) for seed in range(3))
    half = with_copies(release, members, 150)
    assert epsilon(half, members, others) > 1.5
    other = half.assign(name=half["name"].map(partial(normalize, "NFD")))  # accents as characters
    assert epsilon(other, members, others) > 1.5
    rng = np.random.default_rng(0)
    texts = [f"user{at} city{rng.integers(8)}" for at in rng.permutation(40_000)[:4_000]]
    order = rng.permutation(4_000)  # all members are released
    check_one_draw(space_of(texts[:2_000], [texts[at] for at in order]).pool, order < 2_000, 0)


def test_a_private_generator_stays_below_its_epsilon_and_one_that_memorises_does_not():
    pytest.importorskip("mbi")
    few = ["age", "income", "group"]  # the fit compiles code for every pair of columns
    members, others = people(1000, 0)[few], people(1000, 1)[few]
    made = NoisyTree(epsilon=0.5, iterations=100).fit(members).sample(1000, 0)
    assert epsilon(made, members, others) <= 2 * 0.5  # replacing one row is removing and adding one
    assert epsilon(interpolated(members, 0), members, others) > 2 * 0.5


def test_a_filter_that_keeps_away_from_members_tells_of_them():
    members, others, many = people(400, 0), people(400, 1), people(4000, 2)
    ranks = pd.concat([members, many])[["age", "income", "gain"]].rank(pct=True).to_numpy()
    near = np.abs(ranks[400:, None] - ranks[:400]).sum(axis=2).min(axis=1)
    audit = audit_release(many[near > np.median(near)], members, others, design="game")
    assert audit.warnings[0].startswith("members lie farther from the release")
    assert audit.document().judged(0)[1] is not None  # a limit can judge it


def test_distances_among_the_rows_of_a_pool_are_those_without_a_release():
    """With its rows in the release, members lay farther apart and were told from others unasked."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(40)])
    texts = [" ".join(rng.choice(words, 6)) for _ in range(360)]
    images = rng.integers(0, 256, (360, 8, 8)).astype(np.uint8)
    table = people(360, 0)
    for rows in (table, table[["income"]], texts, images):
        pool, fresh = rows[:240], rows[240:]
        if isinstance(rows, pd.DataFrame):
            pool, fresh = pool.reset_index(drop=True), fresh.reset_index(drop=True)
        copied, unseen = (space_of(release, pool) for release in (pool[:120], fresh))
        assert copied.equal[:120].all()
        among = [nearness(space).in_pool for space in (copied, unseen)]
        assert among[0] == pytest.approx(among[1], rel=1e-5, abs=1e-6)


def one_column(rows, seed, kind):
    """A table of one column of numbers, that hardly repeat or do."""
    rng = np.random.default_rng(seed)
    values = {
        "normal": rng.normal(size=rows),
        "amount": np.round(rng.gamma(2, 1000, rows), 2),
        "whole": np.round(np.exp(rng.normal(9, 0.6, rows))),
    }
    return pd.DataFrame({"value": values[kind]})


@pytest.mark.parametrize("kind", ["normal", "amount", "whole"])
def test_one_column_of_numbers_shows_copies_and_near_copies_and_no_leak_of_fresh_rows(kind):
    fresh = 0
    for seed in range(3):
        members, others, release = (one_column(300, 3 * seed + at, kind) for at in range(3))
        fresh += epsilon(release, members, others, seed=seed) > 0
    assert fresh <= 1  # 5 % each: more has a chance of 0.7 %
    assert epsilon(with_copies(release, members, 150), members, others) > 1.5
    spread = members["value"].std()
    near = members + 1e-3 * spread * np.random.default_rng(0).normal(size=(300, 1))
    assert epsilon(near, members, others) > 0.5


def test_numbers_at_the_ends_of_what_floats_hold_and_missing_ones_have_places():
    largest = np.finfo(np.float64).max
    for values in ([-largest, 0.0, largest], [-np.inf, 1.0, np.inf], [5e-324, 1.0, np.nan]):
        pool = pd.DataFrame({"value": values * 10})
        release = pd.DataFrame({"value": [*values, -1.0, 3.0, np.nan]})
        space = table_space(release, pool)
        placed = np.vstack([space.release, space.pool])[:, 0]
        missing = np.isnan([*release["value"], *pool["value"]])
        assert (placed[missing] == -1).all()
        assert ((placed[~missing] >= 0) & (placed[~missing] <= 1)).all()
        order = np.argsort(release["value"][:5].to_numpy(), kind="stable")
        assert (np.diff(space.release[order, 0])[: -1 if missing[:3].any() else None] >= 0).all()
        assert space.equal.all()
    unknown = table_space(release, pool.assign(value=np.nan))
    assert (unknown.pool == -1).all()


def test_rates_are_those_of_their_definitions():
    members, others = people(60, 0), people(60, 1)
    for frame in (members, others):
        frame["code"] = 2 * np.arange(60) + (frame is others)
    release = pd.concat([members[:30], others[:10]], ignore_index=True)
    rates = audit_release(release, members, others, design="game", secret="code").rates.set_index(
        "rate"
    )
    assert rates.loc["reproduced", ["member_hits", "control_hits"]].tolist() == [30, 10]
    linked = rates.loc["linked"]
    assert linked["member_hits"] > linked["control_hits"] + 10  # a copy is nearest in both halves
    inferred = rates.loc["inferred"]
    assert (inferred["member_hits"] > 28, inferred["member_total"]) == (True, 60)
    alone = rates.loc["singled out"]
    assert alone["member_rate"] > alone["control_rate"]
    assert alone["member_total"] == alone["control_total"] <= 1_000
    low, high = rates.loc["reproduced", ["member_low", "member_high"]]
    assert low < 0.5 < high


def test_missing_cells_dates_and_one_column_are_audited():
    parts = [people(200, seed) for seed in range(3)]
    for seed, part in enumerate(parts):
        rng = np.random.default_rng(seed)
        part["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(
            rng.integers(0, 900, 200), unit="D"
        )
        part["visits"] = pd.array(rng.integers(0, 90, 200), dtype="Int64")
        part.loc[rng.random(200) < 0.2, ["income", "job", "day", "visits"]] = None
    members, others, fresh = parts
    assert (
        len(audit_release(with_copies(fresh, members, 50), members, others, design="game").rates)
        == 5
    )
    income = [part[["income"]] for part in (fresh, members, others)]
    assert list(audit_release(*income, design="game").rates["rate"]) == [
        "reproduced",
        "nearly reproduced",
    ]


def test_released_values_in_another_unit_or_spelling_are_doubted():
    members, others, release = (people(300, seed) for seed in range(3))
    for part, rows in enumerate((members, others, release)):
        rows["name"] = [
            f"{at}a{part}" for at in range(300)
        ]  # a name that is released is nobody's here
    changed = release.assign(income=100 * release["income"], job=release["job"].str.upper())
    assert alike(release, [members, others])[2] == ()
    (income,) = alike(changed, [members, others]).warnings
    assert income.startswith("column 'income': released values, such as ")
    share = alike(release.assign(income=release["income"] / 100), [members, others])[2]
    assert len(share) == 1  # within the range of the records
    (text,) = alike(["JOB A"] * 20, [["job a"] * 20])[2]
    assert text.startswith("column 'text': released values, such as JOB A, are in the records but")
    numbered = [part.reset_index(names="Unnamed: 0") for part in (release, members, others)]
    assert "number the rows" in alike(numbered[0], numbered[1:])[2][0]
    found = audit_release(changed, members, others, design="game")
    assert f"Warning: {income}" in str(found)
    assert income in found.document().warnings
    images = np.random.default_rng(0).integers(0, 256, (3, 30, 8, 8)).astype(np.uint8)
    assert alike(images[0], images[1:])[2] == ()
    for scaled in (images[0] / 255, images[0] / 127.5 - 1):
        (mean,) = alike(scaled, images[1:])[2]
        assert mean.startswith("column 'mean of an image': released values")


def test_texts_and_images_are_audited_by_what_they_hold():
    rng = np.random.default_rng(0)
    words = np.array([f"word{at}" for at in range(300)])
    texts = [" ".join(rng.choice(words, 12)) for _ in range(900)]
    release = [text.replace("word1", "other") for text in texts[:300]]
    text = audit_release(release, texts[:300], texts[300:600], design="game")
    assert text.result.epsilon > 2
    assert list(text.rates["rate"]) == ["reproduced", "nearly reproduced"]
    assert epsilon(texts[600:], texts[:300], texts[300:600]) == 0
    accents = [text.replace("w", "é") for text in texts]
    assert (
        epsilon([normalize("NFD", text) for text in accents[:299]], accents[:300], accents[300:600])
        > 2
    )
    texts = [
        "".join(chr(0x4E00 + at) for at in rng.integers(0, 900, 40)) for _ in range(900)
    ]  # no spaces
    release = [text[:9] + "x" + text[10:] for text in texts[:300]]
    assert epsilon(release, texts[:300], texts[300:600]) > 2
    assert epsilon(texts[600:], texts[:300], texts[300:600]) == 0
    images = rng.integers(0, 255, (900, 24, 24, 3)).astype(np.uint8)
    assert epsilon(images[:300] // 2 + 60, images[:300], images[300:600]) > 2
    assert epsilon(images[600:], images[:300], images[300:600]) == 0


def test_coins_tell_membership_by_id_in_any_order():
    rows, coins = people(500, 0), toss_coins(500, seed=0)
    order = np.random.default_rng(1).permutation(500)
    release = rows[coins.training(range(500))].reset_index(drop=True)
    release["income"] += 1
    shuffled = rows.iloc[order].reset_index(drop=True)
    audit = audit_release(release, shuffled, coins=coins, ids=order.tolist())
    assert audit.result.epsilon > 2
    assert "adding or removing" in audit.result.claim
    assert set(map(int, audit.exposed["record"])) <= set(np.flatnonzero(coins.included))
    assert coins.commitment in " ".join(audit.result.assumptions)


def test_what_cannot_be_audited_is_refused_in_one_line():
    for change, message in (
        (lambda a, b, c: (a.drop(columns="job"), b, c), "members: expected the columns"),
        (
            lambda a, b, c: (a.assign(age="old"), b, c),
            "members: column 'age' holds numbers, and text",
        ),
        (
            lambda a, b, c: [
                one.assign(day=DAY.tz_localize(zone))
                for one, zone in ((a, "UTC"), (b, None), (c, None))
            ],
            "members: column 'day' holds times, and times with a time zone in the release",
        ),
        (lambda a, b, c: (a, b[:5], c), "members: expected 20 rows or more, got 5"),
        (lambda a, b, c: (a, b, c[:0]), "nonmembers: expected 20 rows or more, got 0"),
        (
            lambda a, b, c: (b.sample(frac=1, random_state=0), b, c),
            "release: it holds just the members",
        ),
        (
            lambda a, b, c: (a, b, pd.concat([c[:50], b[:60]])),
            "nonmembers: 60 of their rows stand among",
        ),
        (lambda a, b, c: (a, pd.concat([b, b]), c), "rows:"),
        (
            lambda a, b, c: (a, b["job"].tolist(), c),
            "members: expected a table like the release, got texts",
        ),
        (
            lambda a, b, c: (a, b, c.assign(income=-c["income"])),
            "nonmembers: their rows alone tell them from",
        ),
        (lambda a, b, c: (a, b, None), "nonmembers: rows like the members are needed"),
        (
            lambda a, b, c: (a.assign(job=[["a"]] * 400), b, c),
            "release: column 'job' holds values of several",
        ),
        (lambda a, b, c: ("abc", b, c), "release: expected a DataFrame"),
    ):
        refused(f"^{message}", audit_release, *change(*(people(400, seed) for seed in range(3))))


def test_images_in_another_file_format_and_without_a_value_are_refused():
    """Members that went through JPEG alone showed a leak to fresh images in most of such audits."""
    noise = np.random.default_rng(0).integers(0, 256, (300, 16, 16, 3)).astype(float)
    smooth = sum(np.roll(noise, (x, y), (1, 2)) for x in range(4) for y in range(4)) / 16
    images = smooth.astype(np.uint8)
    assert epsilon(images[200:], images[:100], images[100:200]) == 0
    packed = []
    for image in images[:100]:
        Image.fromarray(image).save(file := BytesIO(), "JPEG")
        packed.append(np.asarray(Image.open(file)))
    for members, message in (
        (np.stack(packed), "nonmembers: their rows alone tell them from members by distances"),
        (np.where(smooth[:100] < 90, np.nan, smooth[:100]), "members: some values are masked, NaN"),
        (np.ma.masked_less(images[:100], 90), "members: some values are masked, NaN"),
    ):
        refused(message, audit_release, images[200:], members, images[100:200])


def visits(patients, seed):
    """Three rows of each patient, with one age, and the patients' names."""
    rows = people(3 * patients, seed)
    rows["age"] = np.repeat(people(patients, seed + 50)["age"].to_numpy(), 3)
    return rows, [f"{seed}-{patient}" for patient in np.repeat(np.arange(patients), 3)]


def test_the_rows_of_a_unit_are_one_example():
    (members, names), (others, more_names) = visits(120, 0), visits(120, 1)
    unit = [*names, *more_names]
    fresh, _ = visits(120, 2)
    assert epsilon(fresh, members, others, unit=unit) == 0
    audit = audit_release(
        with_copies(fresh, members, 180), members, others, unit=unit, design="game"
    )
    assert audit.result.epsilon > 1
    assert audit.result.total <= 240  # units, not 720 rows
    assert "One example is one unit" in audit.result.claim
    assert audit.rates.set_index("rate").loc["reproduced", "member_total"] == 120
    assert (len(audit.signals), len(audit.ids)) == (240, 240)
    assert set(audit.exposed["record"]) <= set(names[:180])
    assert "the rates are those of one row of each unit, drawn by the seed" in audit.reading
    both = [*names, *names]
    refused("records among both", audit_release, fresh, members, others, unit=both)
    two = ["a"] * len(members) + ["b"] * len(others)
    refused("unit: expected 20 units", audit_release, fresh, members, others, unit=two)


def test_rows_of_one_unit_do_not_hide_a_copy_as_neighbours():
    (members, names), (others, more_names) = visits(60, 0), visits(60, 1)
    members = members[::3].loc[members[::3].index.repeat(3)].reset_index(drop=True)
    others = others[::3].loc[others[::3].index.repeat(3)].reset_index(drop=True)
    space = table_space(members, pd.concat([members, others], ignore_index=True))
    assert (nearness(space).in_pool[:, 0] == 0).all()  # the other rows of the same patient
    apart = nearness(space, [*names, *more_names]).in_pool[:, 0]
    assert np.median(apart) > 0


def test_coins_of_units_tell_membership_of_all_their_rows():
    rows, names = visits(200, 0)
    coins = toss_coins(names, seed=0, unit="patient")
    release = rows[coins.training(names)].reset_index(drop=True)
    release["income"] += 1
    audit = audit_release(release, rows, coins=coins, ids=names)
    assert audit.result.epsilon > 2
    assert audit.result.total == 200
    assert "One example is one unit of patient" in audit.result.claim
    assert "adding or removing" in audit.result.claim
    assert set(audit.exposed["record"]) <= set(np.array(coins.ids)[coins.included])
    refused("coins: they say", audit_release, release, rows, coins=coins, ids=None, unit=names)
    refused("coins: give all rows with a coin", audit_release, release, rows, coins=coins)
    refused("ids: the names of units", audit_release, release, rows, ids=names, unit=names)
