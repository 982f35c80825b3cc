"""The paper's values on text in the rows of ours: Tables 3 and 9."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from paperlib.core import round_down
from paperlib.report import paper_table, plus_minus

AUDITS = {"panoramia": "ε~", "rm_rn": "RM;RN", "o1": "O(1)"}
"""Audits of the page, and their names."""
_PRINTED = {"panoramia": "panoramia", "panoramia_rm_rn": "rm_rn", "o1_rm_rn": "o1"}
_COLUMNS = {"panoramia": ("eps~ (paper form)", "sd (paper form)"),
            "rm_rn": ("RM;RN (paper form)", "sd RM;RN (paper form)"),
            "o1": ("O(1)", "sd O(1)")}  # fmt: skip
Printed = dict[str, tuple[float, float]]
"""Audit to the paper's value and its ±, nats; NaN where none is printed."""


def paper_values(names: Sequence[str]) -> dict[str, Printed]:
    """What the paper prints of the targets that stand where ours do, by our name.

    Our targets without DP, in the order of their epochs, stand beside those of Table 3 (37, 75 and 150
    epochs); those with DP beside that of Table 9 with the same epsilon. Null targets have none.

    >>> paper_values(["2 epochs", "null, 2 epochs", "DP, epsilon 3"])["2 epochs"]["rm_rn"]
    (1.04, 0.42)
    """
    plain = [name for name in names if re.fullmatch(r"\d+ epochs?", name)]
    three = paper_table("panoramia_table03").query("base_model == 'GPT-2'")
    levels = [rows for _, rows in three.groupby("epochs")]
    found = {name: _printed(rows) for name, rows in zip(plain, levels, strict=False)}
    nine = dict(list(paper_table("panoramia_table09").groupby("target_dp_eps")))
    private = {name: float(name.removeprefix("DP, epsilon ")) for name in names if name.startswith("DP, ")}
    return found | {name: _printed(nine[epsilon]) for name, epsilon in private.items() if epsilon in nine}


def _printed(rows: pd.DataFrame) -> Printed:
    values, errors = rows["eps_tilde"].fillna(rows["eps"]), rows["eps_tilde_pm"].fillna(rows["eps_pm"])
    names = [_PRINTED[audit] for audit in rows["audit"]]
    return dict(zip(names, zip(values.astype(float), errors.astype(float), strict=True), strict=True))


def beside_the_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Our rows of `table_three`, or of a CSV of it, with the paper's values in the same row."""
    ours = table[table["source"] == "ours"].reset_index(drop=True)
    printed = paper_values(list(ours["target"]))
    levels = dict(zip([name for name in printed if "DP" not in name], _levels(), strict=False))
    cells = []
    for row in ours.to_dict("records"):
        name, theirs = row["target"], printed.get(row["target"], {})
        one = {"shown": f"{name} (paper: {levels[name]})" if name in levels else name}
        for audit, (value, spread) in _COLUMNS.items():
            shown = row[value] if audit == "panoramia" else round_down(row[value], 2)
            one[f"{audit}, here"] = plus_minus(shown, row[spread])
            one[f"{audit}, paper"] = plus_minus(*theirs.get(audit, (np.nan, np.nan)))
        cells.append(one)
    return pd.concat([ours, pd.DataFrame(cells)], axis=1)


def _levels() -> list[int]:
    epochs = paper_table("panoramia_table03").query("base_model == 'GPT-2'")["epochs"]
    return sorted(set(epochs.astype(int)))


def table_nine(table: pd.DataFrame, epochs: int) -> pd.DataFrame:
    """Targets with DP, each with its null target, below the target without DP that had as many epochs."""
    rows = beside_the_paper(table).set_index("target")
    names = [str(name) for name in rows.index if str(name).startswith("DP, ")]
    if not names:
        return pd.DataFrame()
    plain = f"{epochs} epoch{'' if epochs == 1 else 's'}"
    chosen = [name for name in (plain, *names) if name in rows.index]
    found = rows.loc[chosen].rename_axis("training").reset_index()
    nulls = rows["panoramia, here"].rename(lambda name: str(name).removeprefix("null, "))
    nulls = nulls[rows["null"].astype(bool).to_numpy()]
    found["null, here"] = nulls.reindex(chosen).fillna("–").to_numpy()
    without = paper_table("panoramia_table09").query("target_dp_eps == inf")
    for audit, (value, error) in _printed(without).items():
        found.loc[found["training"] == plain, f"{audit}, paper"] = plus_minus(value, error)
    return found.replace({"training": {plain: f"without DP, {plain}"}})
