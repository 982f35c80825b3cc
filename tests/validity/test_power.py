"""The power comparison: every bound below the truth, the default search the strongest where it should be."""

import numpy as np

from paperlib.validity.power import BOUNDS, PowerConfig, mean_bounds


def test_power_table():
    table = mean_bounds(PowerConfig(sizes=(300, 3_000), deltas=(0.0, 1e-4), draws=3))
    assert len(table) == 2 * (2 * len(BOUNDS) - 1)
    assert (table["highest"] <= table["truth"]).all()
    assert (table["lowest"] <= table["mean"]).all()
    wide = table.query("examples == 3000 and delta == 1e-4").set_index("bound")["mean"]
    assert wide["anytime (default)"] > wide["every count, published delta"]
    assert wide["dyadic counts, sharp delta"] >= wide["dyadic counts, published delta"]


def test_seed_decides():
    config = PowerConfig(sizes=(200,), deltas=(1e-4,), draws=2)
    assert mean_bounds(config).equals(mean_bounds(config))
    other = PowerConfig(sizes=(200,), deltas=(1e-4,), draws=2, seed=1)
    assert not np.array_equal(mean_bounds(config)["mean"], mean_bounds(other)["mean"])
