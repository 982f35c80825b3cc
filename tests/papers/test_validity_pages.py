"""The page on validity shows the worst row of each group, every twin, and what the tables have."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.papers import validity_pages as page
from paperlib.report.style import points_on_a_phone
from paperlib.validity.power import ORACLE, PowerConfig, design_bounds, mean_bounds
from paperlib.validity.shapes import ShapesConfig, shape_bounds

Shown = list[dict[str, Any]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What the page shows: text large enough for a phone, at most seven columns."""
    kept: Shown = []

    def figure(fig: Any, **given: Any) -> None:
        assert points_on_a_phone(fig) >= 8
        kept.append(given | {"axes": fig.axes})
        plt.close(fig)

    def table(frame: pd.DataFrame, **given: Any) -> None:
        assert len(given["columns"]) <= 7
        assert set(given["columns"]) <= set(frame.columns)
        kept.append(given | {"frame": frame})

    monkeypatch.setattr(page, "show_figure", figure)
    monkeypatch.setattr(page, "show_table", table)
    return kept


def row(family: str, bound: str, rate: float, *, valid: bool = True, mechanism: str = "no leakage") -> dict:
    ends = {"low": rate - 0.02, "high": rate + 0.02, "nominal": 0.05, "seen_from": 0.1, "slack": 0.25}
    about = {"family": family, "bound": bound, "mechanism": mechanism, "rate": rate, "trials": 100}
    verdict = "above the nominal level" if rate > 0.07 else "consistent with it"
    return {**about, **ends, "boundary": rate > 0.02, "valid": valid, "verdict": verdict}


OURS = pd.DataFrame(
    [
        row("one run", "default", 0.03),
        row("one run", "dyadic, both", 0.04),
        row("one run", "default, 50% of the coins looked at first (twin)", 0.6, valid=False),
        row("ranks", "top 1 of 8, default", 0.0, mechanism="bursts of 6 in 6 sets, else ε = 0"),
        row("ranks", "top 1 of 8, blind to δ (twin)", 0.2, valid=False, mechanism="bursts of 2, else ε = 0"),
        row("ranks", "top 1 of 8, blind to δ (twin)", 0.05, valid=False, mechanism="bursts of 3, else ε = 0"),
        row("many runs", "Bayesian quantile", 0.06, valid=False),
    ]
)


def drawn(given: dict[str, Any]) -> list[float]:
    (axes,) = given["axes"]
    return np.asarray(axes.containers[0][0].get_xdata(), dtype=float).tolist()


def labels(given: dict[str, Any]) -> list[str]:
    return [one.get_text() for one in given["axes"][0].get_yticklabels()]


def test_the_worst_of_each_family_and_every_twin_are_drawn(shown: Shown) -> None:
    page.show_rates(OURS)
    sound, twins = shown
    assert labels(sound) == ["one run", "ranks"]
    assert drawn(sound) == pytest.approx([0.04, 0.0])
    assert len(sound["data"]) == len(OURS)
    assert drawn(twins) == pytest.approx([0.6, 0.2, 0.05])
    assert "bursts" not in labels(twins)[0]
    assert "bursts of 2" in labels(twins)[1].replace("\n", " ")
    assert "2 of 3 bars lie wholly to the right" in twins["alt"]
    assert max(len(line) for name in labels(twins) for line in name.split("\n")) <= 27


def test_every_family_has_its_counts_and_its_worst_row(shown: Shown) -> None:
    page.show_families(OURS, 0)
    frame = shown[0]["frame"].set_index("family")
    assert frame.loc["one run", ["rows", "above", "bound", "rate"]].tolist() == [2, 0, "dyadic, both", 0.04]


def test_rows_have_their_rate_beside_the_bound(shown: Shown) -> None:
    page.show_rows(OURS[OURS["family"] == "ranks"], "rows", "Rows.", "seen_from", "slack")
    given = shown[0]
    assert list(given["columns"])[:2] == ["bound", "text"]
    assert given["frame"]["text"].tolist()[1] == "0.200 (0.180 to 0.220)"
    assert given["frame"]["slack"].tolist() == ["no boundary case", "0.25", "0.25"]


def test_orders_that_look_ahead_stand_beside_the_default() -> None:
    found = page.looking_ahead(OURS)
    assert found["rate"].tolist() == [0.03, 0.6]
    assert found["bound"].iloc[0] == "default, one run"


def test_each_rule_is_shown_on_its_worst_mechanism(shown: Shown) -> None:
    common = OURS.assign(family="rules in common use")
    page.show_rules(common)
    assert drawn(shown[0]) == pytest.approx([0.03, 0.04, 0.6, 0.0, 0.2, 0.06])
    assert len(shown[0]["data"]) == len(OURS)


def test_designs_and_shapes_have_the_largest_size_on_the_page(shown: Shown) -> None:
    config = PowerConfig(sizes=(100, 200), draws=2)
    designs = design_bounds(config)
    page.show_designs(designs, ORACLE, 2, 0.95)
    page.show_power(mean_bounds(PowerConfig(sizes=(100,), deltas=(0.0, 1e-4), draws=2)), 2)
    shapes = shape_bounds(ShapesConfig(sizes=(100, 200), deltas=(0.0,), draws=2))
    page.show_shapes(shapes, 2, 0)
    figure, table, power, rules = shown
    assert [one.get_text() for one in figure["axes"][0].get_xticklabels()] == ["100", "200"]
    last = designs[designs["examples"] == 200].set_index(["design", "leak"])["mean"]
    wide = table["frame"].set_index("design")
    assert wide.loc["game", "one member in ten"] == last["game", "one member in ten"]
    assert list(power["columns"].values()) == ["Bound", "δ = 0", "δ = 0.0001"]
    first = shapes[shapes["examples"] == 100].set_index("shape")["both"]
    assert rules["frame"].set_index("shape")["m = 100: both"].to_dict() == first.to_dict()
    text = page.lessons(OURS, OURS, designs, ORACLE)
    assert "0 of 3 rows" in text
    assert "2 of 3 twins" in text
    assert f"{last['randomized, default', 'every member a little']:.2f} nats" in text
