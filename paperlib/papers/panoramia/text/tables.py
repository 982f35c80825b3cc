"""PANORAMIA on text: its audits, Tables 3, 5 and 9, Figures 8, 9, 10 and 14, and evidence on
them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import SYNTHETIC, Pool, Pools, with_helpers
from paperlib.audits.panoramia.results import TargetAudits
from paperlib.audits.panoramia.run import audit_pools, over_training_size
from paperlib.core import FloatArray
from paperlib.papers.panoramia import results as shared
from paperlib.papers.panoramia.text.bench import REAL_NONMEMBERS
from paperlib.papers.verdict import Estimate, Evidence
from paperlib.report import paper_table

KINDS = {"members": "real members", "nonmembers": "real non-members", "generated": "synthetic"}
"""Kinds of chunks, and their names in figures."""


def run_text(pools: Pools, audit: AuditConfig) -> shared.PanoramiaResults:
    """Audit all targets in the paper's form."""
    audits = audit_pools(pools, replace(audit, form="paper"))
    return shared.PanoramiaResults(pools, {"paper": audits}, "paper")


def printed_three(names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The paper's rows by our target: of Table 3 in the order of epochs, of Table 9 by epsilon."""
    plain = [name for name in names if re.fullmatch(r"\d+ epochs?", name)]
    three = paper_table("panoramia_table03").query("base_model == 'GPT-2'").groupby("epochs")
    by_epsilon = paper_table("panoramia_table09").groupby("target_dp_eps")
    nine = {f"DP, epsilon {epsilon:g}": rows for epsilon, rows in by_epsilon}
    levels = dict(zip(plain, (rows for _, rows in three), strict=False))
    return levels | {name: nine[name] for name in names if name in nine}


def table_nine(three: pd.DataFrame, epochs: int) -> pd.DataFrame:
    """Targets with DP below the one without that had as many epochs; "null_": the null of each."""
    rows = three.set_index("target")
    if not (names := [name for name in rows.index if name.startswith("DP, ")]):
        return pd.DataFrame()
    plain = f"{epochs} epoch{'' if epochs == 1 else 's'}"
    found = rows.loc[[name for name in (plain, *names) if name in rows.index]]
    nulls = rows[rows["null"].astype(bool)].rename(lambda name: name.removeprefix("null, "))
    found = found.join(nulls[["eps_tilde", "eps_tilde_sd"]].add_prefix("null_"))
    if plain in found.index:
        printed = shared.printed_bounds(
            paper_table("panoramia_table09").query("target_dp_eps == inf")
        )
        found.loc[[plain], list(printed)] = pd.DataFrame([printed], index=[plain])
    return found.rename({plain: f"without DP, {plain}"}).reset_index()


def by_dealing(results: Mapping[str, shared.PanoramiaResults]) -> pd.DataFrame:
    """Rows of Table 3 where text was dealt in several ways."""
    tables = {way: shared.table_three(one, {}) for way, one in results.items()}
    found = pd.concat(tables, names=["dealt"]).reset_index("dealt").reset_index(drop=True)
    return found[found.groupby("target")["dealt"].transform("size") == len(results)]


def plain_nulls(results: shared.PanoramiaResults) -> list[str]:
    """Null targets that were trained without DP."""
    nulls = (target for target in results.pools.targets if target.kind == "null")
    return [target.name for target in nulls if target.dp_epsilon is None]


def games_by_helper(pools: Pools, audit: AuditConfig, *, withheld: int = 0) -> pd.DataFrame:
    """The baseline's bound without helper, and with one or both of "synthetic" and "real
    non-members".
    """
    chosen = with_helpers(pools, (SYNTHETIC, REAL_NONMEMBERS))
    members = chosen.members
    helpers, targets = (
        {name: values[withheld:] for name, values in outputs.items()}
        for outputs in (members.helpers, members.targets)
    )
    rest = Pool(members.examples[withheld:], helpers, targets)
    return shared.helper_games(replace(chosen, members=rest, key=""), audit)


def table_five(games: pd.DataFrame) -> pd.DataFrame:
    """Means of `games_by_helper` beside the paper's on WikiText; see `helper_means`."""
    printed = paper_table("panoramia_table05").query("dataset == 'WikiText'")
    values = printed.set_index("helper_training_data")["c_lb"]
    names = {"none": "no_helper", "synthetic": "gen", "real non-members": "real"}
    return shared.helper_means(
        games, {name: values[key] for name, key in names.items() if key in values}
    )


def baseline_sizes(results: shared.PanoramiaResults, sizes: Sequence[int]) -> pd.DataFrame:
    """The baseline over its training part's size, the test part fixed or what is left (Figure
    9).
    """
    pools, audit, target = results.pools, results.decisive.config, results.pools.target_names[-1]
    if audit.train in sizes:
        raise ValueError(
            f"sizes: expected others than {audit.train}, which was played, got {list(sizes)}"
        )
    whole = audit.train + audit.test
    quick = replace(audit, attacks=audit.attacks[:1], restarts=1, form="paper")
    own = results.decisive.table.query("target == @target and audit == 'panoramia'")
    fixed = [
        over_training_size(pools, audit, sizes, targets=[target]),
        own.assign(train=audit.train),
    ]
    parts = [part.assign(way="fixed test part") for part in fixed]
    for size in sorted({max(2, 2 * (whole * share // 16)) for share in range(1, 8)}):
        rest = replace(quick, train=size, test=whole - size)
        table = audit_pools(pools, rest, targets=[target], audits=["panoramia"]).table
        parts.append(table.assign(way="what is left", train=size))
    joined = pd.concat(parts, ignore_index=True)
    joined = joined[joined["search"] == audit.searches[0]]
    return joined[["way", "train", "m", "seed", "c_lb", "baseline_auc"]]


def text_losses(pools: Pools, names: Sequence[str]) -> dict[str, dict[str, FloatArray]]:
    """Mean losses by kind of chunk of targets and the synthetic helper (Figure 14)."""
    by_kind = pools.by_kind()
    helper = {word: by_kind[kind].helpers[SYNTHETIC.name][:, 0] for kind, word in KINDS.items()}
    return {**shared.loss_groups(pools, names, KINDS), "synthetic helper": helper}


def evidence(
    results: shared.PanoramiaResults,
    curves: pd.DataFrame,
    helpers: pd.DataFrame,
    sizes: pd.DataFrame,
) -> dict[str, Evidence]:
    """Evidence on Tables 3, 5 and 9 and Figures 8, 9, 10 and 14, by target."""
    paper, last = results.forms["paper"], results.trained[-1]
    found = (
        shared.table_three_evidence(results, results.trained, plain_nulls(results)),
        shared.helper_table("panoramia-table-05", helpers, "real non-members"),
        _table_nine(results, paper),
        figure_eight(curves),
        _figure_nine(paper, sizes, last),
        shared.figure_ten(paper, last),
        _figure_fourteen(results),
    )
    return {one.target: one for one in found}


def _table_nine(results: shared.PanoramiaResults, paper: TargetAudits) -> Evidence:
    """Without DP, and null, those count that have as many epochs as those with DP."""
    private = [target for target in results.pools.targets if target.kind == "private"]
    epochs = {target.epochs for target in private}
    alike = [one for one in results.pools.targets if one.kind == "trained" and one.epochs in epochs]
    nulls = [
        one.name for one in results.pools.targets if one.kind == "null" and one.epochs in epochs
    ]
    values = {
        "0 with DP": {
            target.name: shared.by_game(paper, target.name).tolist() for target in private
        },
        "leak without DP": {
            target.name: shared.by_game(paper, target.name).tolist() for target in alike
        },
        "null": shared.null_samples(paper, nulls),
    }
    return Evidence("panoramia-table-09", "game", values)


def figure_eight(curves: pd.DataFrame) -> Evidence:
    """Figure 8 of one run: columns train and validation, a row per epoch, two or more."""
    validation = curves["validation"]
    values = {
        "validation loss turns up": [float(validation.iloc[-1] - validation.min())],
        "training loss falls": [float(-curves["train"].diff().max())],
        "enough levels": Estimate(len(curves)),
    }
    return Evidence("panoramia-figure-08", "model", values)


def _figure_nine(paper: TargetAudits, sizes: pd.DataFrame, target: str) -> Evidence:
    fixed = sizes[sizes["way"] == "fixed test part"].pivot(
        index="seed", columns="train", values="c_lb"
    )
    m = paper.config.test
    games = replace(paper, judged=paper.select("panoramia", target=target))
    tested = games.over_test_size([m // 4, m]).pivot(index="seed", columns="m", values="c_lb")
    values = {
        "rises": shared.paired(fixed[fixed.columns[-1]], fixed[fixed.columns[0]]),
        "smaller test lowers": shared.paired(tested[m], tested[m // 4]),
    }
    return Evidence("panoramia-figure-09", "game", values)


def _figure_fourteen(results: shared.PanoramiaResults) -> Evidence:
    first, last = results.trained[0], results.trained[-1]
    losses = text_losses(results.pools, [first, last])
    means = {
        name: {kind: float(np.mean(v)) for kind, v in losses[name].items()}
        for name in (first, last)
    }
    gaps = {name: by["real non-members"] - by["real members"] for name, by in means.items()}
    distance = abs(means[last]["synthetic"] - means[last]["real non-members"])
    values = {
        "losses separate": [gaps[last] - gaps[first]] if last != first else [],
        "synthetic near non-members": [distance - gaps[last] / 3],
    }
    return Evidence("panoramia-figure-14", "model", values)
