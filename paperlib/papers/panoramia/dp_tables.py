"""The tables of PANORAMIA on DP targets: Tables 7, 8, 10 and 11."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.results import AUDITS
from paperlib.papers.panoramia.dp import STANDS_FOR, DpResults
from paperlib.report import paper_table

_TEN = ["gap", "eps_tilde", "o1"]  # columns of Table 10 beside ours


def _paper_only(epsilon: float) -> str:
    """The name of a row that only the paper has."""
    return f"the paper, eps {epsilon:g}"


def table_by_epsilon(results: DpResults, at: int) -> pd.DataFrame:
    """Tables 7 (``at`` 0) and 8 (1): ours by epsilon, with the null, and the paper's numbers beside them."""
    null, printed = results.plan.null(at), _printed(at)
    rows = [_row(results, name) for name in results.plan.family(at)]
    ours = pd.DataFrame(rows).join(printed, on="epsilon")
    left = printed[~printed.index.isin(ours["epsilon"])].reset_index()
    left = left.assign(target=[_paper_only(epsilon) for epsilon in left["epsilon"]])
    return pd.concat([pd.DataFrame([_row(results, null)]), ours, left], ignore_index=True)


def _row(results: DpResults, name: str) -> dict[str, Any]:
    """Ours for one target."""
    own = results.one(name)
    return {
        "target": name,
        "epsilon": results.guarantee(name),
        "epsilon_replacement": results.guarantee(name, "epsilon_replacement"),
        "train": results.accuracy(name, "train"),
        "test": results.accuracy(name, "test"),
        "gap": results.gap(name),
        "c_lb": own["c_lb"],
        "c_plus_eps_lb": own["c_plus_eps_lb"],
        "eps_tilde": own["value"],
        "eps_tilde_sd": own["value_sd"],
        **{audit: results.value(name, audit) for audit in AUDITS[1:] if results.audits.select(audit)},
    }


def _printed(at: int) -> pd.DataFrame:
    """The paper's columns of Table 7 or 8 by epsilon, rising."""
    table = paper_table(f"panoramia_table0{7 + at}").query(f"target_model == '{STANDS_FOR[at]}'")
    table = table.assign(epsilon=table["target_dp_eps"].astype(float)).set_index("epsilon").sort_index()
    own = table.loc[table["audit"] == "panoramia", ["c_lb", "c_plus_eps_lb", "eps_tilde"]]
    return own.assign(o1=table.loc[table["audit"] == "o1_rm_rn", "eps"]).add_prefix("paper_")


def table_ten(results: DpResults) -> pd.DataFrame:
    """Pairs of the same epsilon that were trained differently, ours with the paper's in the same rows.

    Of each pair the target with the wider gap comes first, and stands beside the paper's with the wider gap.
    """
    names = [name for pair in results.plan.pairs() for name in sorted(pair, key=results.gap, reverse=True)]
    ours = pd.DataFrame([_row(results, name) for name in names])
    for auc in ("mia_auc", "baseline_auc"):
        ours[auc] = [results.one(name)[auc] for name in names]
    ours["place"] = [0, 1] * (len(names) // 2)
    both = ours.merge(_printed_ten(), on=["epsilon", "place"], how="outer", sort=False)
    order = {name: at for at, name in enumerate(names)}
    both = both.sort_values("target", key=lambda one: one.map(order), kind="stable")
    alone = both["epsilon"].map(_paper_only)
    return both.assign(target=both["target"].fillna(alone)).drop(columns="place").reset_index(drop=True)


def _printed_ten() -> pd.DataFrame:
    """The paper's Table 10: epsilon, place in its pair by gap, and columns "paper_..."."""
    printed = paper_table("panoramia_table10")
    own = printed[printed["audit"] == "panoramia"].reset_index(drop=True)
    own = own.assign(
        epsilon=own["target_dp_eps"].astype(float),
        target=own["target_model"] + ", variant " + own["variant"].astype(str),
        gap=own["train_minus_test_acc_pct"],
        o1=printed.loc[printed["audit"] == "o1_rm_rn", "eps"].to_numpy(),
    )
    place = own.groupby("epsilon")["gap"].rank(ascending=False).astype(int) - 1
    shown = own[["target", *_TEN]].add_prefix("paper_")
    return shown.assign(epsilon=own["epsilon"], place=place)


def table_eleven(
    results: DpResults, names: Sequence[str], *, gammas: Sequence[float], deltas: Sequence[float]
) -> pd.DataFrame:
    """Bounds on the scores already judged, by how far closeness (gamma) and DP (delta) may fail."""
    config, audits = results.audits.config, results.audits
    rows = []
    for name, search, delta, gamma in product(names, config.searches, deltas, gammas):
        found = [
            one.panoramia(search, config.confidence, gamma=gamma, delta=delta)
            for one in audits.select("panoramia", target=name)
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


def printed_eleven() -> pd.DataFrame:
    """The paper's Table 11, without a union bound over recall."""
    printed = paper_table("panoramia_table11")
    names = {"target_dp_eps": "epsilon", "target_dp_delta": "delta", "generator_gamma": "gamma"}
    return printed.rename(columns=names).drop(columns="target_model").astype(float)
