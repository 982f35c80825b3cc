"""The grid of sound loops."""

from dataclasses import replace
from functools import partial

from paperlib import audit_dp_training
from paperlib.reproduction.papers.measured import measured_table
from paperlib.reproduction.validity.dp_sound import NULLS, sound_audits, sound_settings


def test_settings_are_of_both_kinds_and_not_all_alike():
    settings = sound_settings(40)
    assert sum(setting.loop.startswith("Opacus") for setting in settings) == 10
    assert {setting.null for setting in settings} == set(NULLS)
    assert len({setting.records for setting in settings}) > 20
    assert settings == sound_settings(40)


def test_sound_loops_are_not_accused_and_the_same_with_other_statements_are():
    settings = [*sound_settings(40)[1:3], *sound_settings(40)[11:13]]
    assert (sound_audits(audit_dp_training, settings)[["failed", "refused"]] == "").all(axis=None)
    noise = partial(sound_audits, _with_twice_the_noise)
    assert noise([replace(settings[2], steps=24)])["failed"].str.contains("noise").all()


def _with_twice_the_noise(train, data, *, noise_multiplier, **stated):
    """The audit of a loop of which twice its noise is stated."""
    return audit_dp_training(train, data, noise_multiplier=2 * noise_multiplier, **stated)


def test_none_of_the_measured_loops_is_accused_or_refused():
    measured = measured_table("book/measured/dp-sound.csv")
    assert measured is not None
    table, _ = measured
    assert len(table) == 400
    assert table["failed"].isna().all()
    assert table["refused"].isna().all()
    drawn = [(setting.records, setting.steps) for setting in sound_settings(400)]
    assert list(zip(table["records"], table["steps"], strict=True)) == drawn
