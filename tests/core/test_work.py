"""Without a meter the loops are the plain loops."""

from paperlib.core.work import alike, answers, measured_by, meter_at_work, steps


def test_every_item_comes_without_a_meter():
    items = list(range(1000))
    assert meter_at_work() is None
    assert steps(items, "a loop") is items
    assert list(steps(iter(items), "a loop", total=1000)) == items
    assert answers(str, items, "a loop", rows=lambda _: 1) == list(map(str, items))
    assert alike(str, items, "a loop") == list(map(str, items))


class _One:
    def steps(self, items, total, label, about, weight, at_once):
        return iter(list(items)[:1])


def test_the_meter_is_gone_after_its_block():
    with measured_by(_One()):  # pyright: ignore[reportArgumentType]
        assert list(steps([1, 2, 3], "a loop")) == [1]
    assert list(steps([1, 2, 3], "a loop")) == [1, 2, 3]
