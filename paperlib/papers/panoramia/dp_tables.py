"""The tables of PANORAMIA on DP targets: Tables 7, 8, 10 and 11."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.results import AUDITS
from paperlib.papers.panoramia.dp import STANDS_FOR, DpResults
from paperlib.report import paper_table


def _paper_only(epsilon: float) -> str:
    """The name of a row that only the paper has."""
    return f"the paper, eps {epsilon:g}"


def table_by_epsilon(results: DpResults, at: int) -> pd.DataFrame:
    """Tables 7 (``at`` 0) and 8 (1): the null, ours by epsilon beside the paper's, the paper's others."""
    table = paper_table(f"panoramia_table0{7 + at}").query(f"target_model == '{STANDS_FOR[at]}'")
    table = table.assign(epsilon=table["target_dp_eps"].astype(float)).set_index("epsilon").sort_index()
    printed = table.loc[table["audit"] == "panoramia", ["c_lb", "c_plus_eps_lb", "eps_tilde"]]
    printed = printed.assign(o1=table.loc[table["audit"] == "o1_rm_rn", "eps"]).add_prefix("paper_")
    null, *ours = (_row(results, name) for name in (results.plan.null(at), *results.plan.family(at)))
    ours = pd.DataFrame(ours).join(printed, on="epsilon")
    left = printed[~printed.index.isin(ours["epsilon"])].reset_index()
    left = left.assign(target=[_paper_only(epsilon) for epsilon in left["epsilon"]])
    return pd.concat([pd.DataFrame([null]), ours, left], ignore_index=True)


def _row(results: DpResults, name: str) -> dict[str, Any]:
    """Ours for one target."""
    own, columns = results.one(name), ("epsilon", "epsilon_replacement", "train", "test", "gap")
    return {
        "target": name,
        **{column: results.numbers[column][name] for column in columns},
        "c_lb": own["c_lb"],
        "c_plus_eps_lb": own["c_plus_eps_lb"],
        "eps_tilde": own["value"],
        "eps_tilde_sd": own["value_sd"],
        **{audit: results.value(name, audit) for audit in AUDITS[1:] if results.decisive.select(audit)},
    }


def table_ten(results: DpResults) -> pd.DataFrame:
    """Pairs of one epsilon that were trained differently, the wider gap first, beside the paper's."""
    pairs = [results.numbers.loc[list(pair)] for pair in results.plan.pairs()]
    wider_first = [pair.sort_values("gap", ascending=False, kind="stable") for pair in pairs]
    names = [str(name) for pair in wider_first for name in pair.index]
    ours = pd.DataFrame([_row(results, name) for name in names])
    for auc in ("mia_auc", "baseline_auc"):
        ours[auc] = [results.one(name)[auc] for name in names]
    ours["place"] = [0, 1] * (len(names) // 2)
    printed = paper_table("panoramia_table10")
    own = printed[printed["audit"] == "panoramia"].reset_index(drop=True)
    theirs = pd.DataFrame(
        {
            "epsilon": own["target_dp_eps"].astype(float),
            "paper_target": own["target_model"] + ", variant " + own["variant"].astype(str),
            "paper_gap": own["train_minus_test_acc_pct"],
            "paper_eps_tilde": own["eps_tilde"],
            "paper_o1": printed.loc[printed["audit"] == "o1_rm_rn", "eps"].to_numpy(),
        }
    )
    theirs["place"] = theirs.groupby("epsilon")["paper_gap"].rank(ascending=False).astype(int) - 1
    both = ours.merge(theirs, on=["epsilon", "place"], how="outer", sort=False)
    order = {name: at for at, name in enumerate(names)}
    both = both.sort_values("target", key=lambda one: one.map(order), kind="stable")
    alone = both["epsilon"].map(_paper_only)
    return both.assign(target=both["target"].fillna(alone)).drop(columns="place").reset_index(drop=True)


def table_eleven(
    results: DpResults, names: Sequence[str], *, gammas: Sequence[float], deltas: Sequence[float]
) -> pd.DataFrame:
    """Bounds on the scores already judged, by how far closeness (gamma) and DP (delta) may fail."""
    config = results.decisive.config
    rows = []
    for name, search, delta, gamma in product(names, config.searches, deltas, gammas):
        found = [
            one.panoramia(search, config.confidence, gamma=gamma, delta=delta)
            for one in results.decisive.select(target=name)
        ]
        c_lb = float(np.mean([one.c_lb for one in found]))
        both = float(np.mean([one.c_plus_epsilon_lb for one in found]))
        rows.append(
            {
                "target": name,
                "search": search,
                "delta": delta,
                "gamma": gamma,
                "failures": config.test * gamma * (2.0 if search == "union" else 0.25),
                "c_lb": c_lb,
                "c_plus_eps_lb": both,
                "eps_tilde": max(0.0, both - c_lb),
            }
        )
    return pd.DataFrame(rows)
