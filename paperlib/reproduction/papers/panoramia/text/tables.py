"""PANORAMIA on text: its audits, Tables 3, 5 and 9, Figures 8, 9, 10 and 14, and evidence on
them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.game import AuditConfig
from paperlib.audits.panoramia.pools import SYNTHETIC, Pool, Pools, Target, with_helpers
from paperlib.audits.panoramia.results import TargetAudits
from paperlib.audits.panoramia.run import audit_pools, over_training_size
from paperlib.core import FloatArray
from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.panoramia import results as shared
from paperlib.reproduction.papers.panoramia.text.bench import REAL_NONMEMBERS
from paperlib.reproduction.papers.verdict import Estimate, Evidence

KINDS = {"members": "real members", "nonmembers": "real non-members", "generated": "synthetic"}
"""Kinds of chunks, and their names in figures."""
_FIXED_TEST = "fixed test part"  # the way of `baseline_sizes` in which the test part stays


def run_text(pools: Pools, audit: AuditConfig) -> shared.PanoramiaResults:
    """Audit all targets in the paper's form."""
    audits = audit_pools(pools, replace(audit, form="paper"))
    return shared.PanoramiaResults(pools, {"paper": audits}, "paper")


def printed_three(names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The paper's rows by our target: of Table 3 in the order of epochs, of Table 9 by epsilon.

    ``names`` are our targets; those that the paper has nothing beside are left out.
    """
    plain = [name for name in names if re.fullmatch(r"\d+ epochs?", name)]
    three = paper_table("panoramia_table03").query("base_model == 'GPT-2'")
    levels = [rows for _, rows in three.groupby("epochs")]
    printed = dict(zip(plain, levels, strict=False))  # as many as both have
    by_epsilon = paper_table("panoramia_table09").groupby("target_dp_eps")
    private = {f"DP, epsilon {epsilon:g}": rows for epsilon, rows in by_epsilon}
    return printed | {name: private[name] for name in names if name in private}


def table_nine(three: pd.DataFrame, epochs: int) -> pd.DataFrame:
    """Targets with DP below the target without DP that had as many epochs.

    Args:
        three: `table_three` of the same run, a row per target and per null.
        epochs: Of the target without DP that is compared.

    Returns:
        A row per target. Columns that begin with "null_" hold the bounds of its null, a target with
            the same settings that saw no member; the row without DP also has the bounds that the
            paper prints. Empty where no target has DP.
    """
    rows = three.set_index("target")
    private = [name for name in rows.index if name.startswith("DP, ")]
    if not private:
        return pd.DataFrame()
    plain = f"{epochs} epoch{'' if epochs == 1 else 's'}"
    table = rows.loc[[plain, *private] if plain in rows.index else private]
    nulls = rows[rows["null"].astype(bool)].rename(lambda name: name.removeprefix("null, "))
    table = table.join(nulls[["eps_tilde", "eps_tilde_sd"]].add_prefix("null_"))
    if plain in table.index:
        without_dp = paper_table("panoramia_table09").query("target_dp_eps == inf")
        printed = shared.printed_bounds(without_dp)
        table.loc[[plain], list(printed)] = pd.DataFrame([printed], index=[plain])
    return table.rename({plain: f"without DP, {plain}"}).reset_index()


def by_dealing(results: Mapping[str, shared.PanoramiaResults]) -> pd.DataFrame:
    """Rows of `table_three` where text was dealt in several ways, whose names are in the column
    "dealt"; of the targets that each way has.
    """
    tables = {way: shared.table_three(of_way, {}) for way, of_way in results.items()}
    rows = pd.concat(tables, names=["dealt"]).reset_index("dealt").reset_index(drop=True)
    return rows[rows.groupby("target")["dealt"].transform("size") == len(results)]


def plain_nulls(results: shared.PanoramiaResults) -> list[str]:
    """Null targets that were trained without DP."""
    return [
        target.name
        for target in results.pools.targets
        if target.kind == "null" and target.dp_epsilon is None
    ]


def games_by_helper(pools: Pools, audit: AuditConfig, *, withheld: int = 0) -> pd.DataFrame:
    """The baseline's bound without helper, and with one or both of "synthetic" and "real
    non-members": rows of `helper_games`.

    The first ``withheld`` members, which the helper on real chunks learned, are in no game.
    """
    two_helpers = with_helpers(pools, (SYNTHETIC, REAL_NONMEMBERS))

    def without_withheld(outputs: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Outputs of models, by name, on the members that games show."""
        return {name: values[withheld:] for name, values in outputs.items()}

    members = two_helpers.members
    remaining = Pool(
        members.examples[withheld:],
        without_withheld(members.helpers),
        without_withheld(members.targets),
    )
    return shared.helper_games(replace(two_helpers, members=remaining, key=""), audit)


def table_five(games: pd.DataFrame) -> pd.DataFrame:
    """Means of `games_by_helper` beside the paper's on WikiText; see `helper_means`."""
    printed = paper_table("panoramia_table05").query("dataset == 'WikiText'")
    values = printed.set_index("helper_training_data")["c_lb"]
    names = {"none": "no_helper", "synthetic": "gen", "real non-members": "real"}
    theirs = {name: values[key] for name, key in names.items() if key in values}
    return shared.helper_means(games, theirs)


def baseline_sizes(results: shared.PanoramiaResults, sizes: Sequence[int]) -> pd.DataFrame:
    """The baseline over its training part's size, the test part fixed or what is left (Figure 9).

    Args:
        results: Whose games are taken as they were played, and played again at other sizes.
        sizes: Examples of the training part where the test part is fixed.

    Returns:
        A row for each game of the last target: way (whether the test part is fixed), train and m
            (examples of both parts), seed, c_lb (nats) and baseline_auc.

    Raises:
        ValueError: A size at which games were played already.
    """
    pools = results.pools
    audit = results.decisive.config
    target = pools.target_names[-1]
    if audit.train in sizes:
        raise ValueError(
            f"sizes: expected others than {audit.train}, which was played, got {list(sizes)}"
        )
    of_target = "target == @target and audit == 'panoramia'"
    played = results.decisive.table.query(of_target).assign(train=audit.train)
    other_sizes = over_training_size(pools, audit, sizes, targets=[target])
    tables = [other_sizes.assign(way=_FIXED_TEST), played.assign(way=_FIXED_TEST)]
    # Training and test part together stay as large, and the former takes 1 to 7 eighths.
    both = audit.train + audit.test
    quick = replace(audit, attacks=audit.attacks[:1], restarts=1, form="paper")
    for train in sorted({max(2, 2 * (both * share // 16)) for share in range(1, 8)}):
        resized = replace(quick, train=train, test=both - train)
        games = audit_pools(pools, resized, targets=[target], audits=["panoramia"])
        tables.append(games.table.assign(way="what is left", train=train))
    rows = pd.concat(tables, ignore_index=True)
    rows = rows[rows["search"] == audit.searches[0]]
    return rows[["way", "train", "m", "seed", "c_lb", "baseline_auc"]]


def chunk_losses(pools: Pools, names: Sequence[str]) -> dict[str, dict[str, FloatArray]]:
    """Mean losses of chunks, nats, shape (n,), by kind of chunk, of targets and the synthetic
    helper (Figure 14).
    """
    by_kind = pools.by_kind()
    helper = {word: by_kind[kind].helpers[SYNTHETIC.name][:, 0] for kind, word in KINDS.items()}
    return {**shared.loss_groups(pools, names, KINDS), "synthetic helper": helper}


def evidence(
    results: shared.PanoramiaResults,
    curves: pd.DataFrame,
    helpers: pd.DataFrame,
    sizes: pd.DataFrame,
) -> dict[str, Evidence]:
    """Evidence on Tables 3, 5 and 9 and Figures 8, 9, 10 and 14, by target.

    Args:
        results: Audits in the paper's form.
        curves: Rows of `loss_curves`.
        helpers: Rows of `games_by_helper`.
        sizes: Rows of `baseline_sizes`.
    """
    audits = results.forms["paper"]
    last = results.trained[-1]
    on_targets = (
        shared.table_three_evidence(results, results.trained, plain_nulls(results)),
        shared.helper_table("panoramia-table-05", helpers, "real non-members"),
        _table_nine_evidence(results, audits),
        figure_eight(curves),
        _figure_nine_evidence(audits, sizes, last),
        shared.figure_ten(audits, last),
        _figure_fourteen_evidence(results),
    )
    return {item.target: item for item in on_targets}


def _table_nine_evidence(results: shared.PanoramiaResults, audits: TargetAudits) -> Evidence:
    """Table 9: values of games, nats, of targets with DP, and of those without DP and null targets
    that were trained for as many epochs as they.
    """
    targets = results.pools.targets
    private = [target for target in targets if target.kind == "private"]
    epochs = {target.epochs for target in private}
    alike = [target for target in targets if target.epochs in epochs]
    plain = [target for target in alike if target.kind == "trained"]
    nulls = [target.name for target in alike if target.kind == "null"]

    def games(compared: Sequence[Target]) -> dict[str, list[float]]:
        """The value of each game, nats, by target."""
        return {target.name: shared.by_game(audits, target.name).tolist() for target in compared}

    values = {
        "0 with DP": games(private),
        "leak without DP": games(plain),
        "null": shared.null_samples(audits, nulls),
    }
    return Evidence(target="panoramia-table-09", unit="game", values=values)


def figure_eight(curves: pd.DataFrame) -> Evidence:
    """Figure 8 of one run: whether validation loss turns up at last and training loss falls at
    every epoch, nats, above 0 where so.

    ``curves`` has columns train and validation, a row per epoch, two or more.
    """
    validation = curves["validation"]
    values = {
        "validation loss turns up": [float(validation.iloc[-1] - validation.min())],
        "training loss falls": [float(-curves["train"].diff().max())],
        "enough levels": Estimate(len(curves)),
    }
    return Evidence(target="panoramia-figure-08", unit="model", values=values)


def _figure_nine_evidence(audits: TargetAudits, sizes: pd.DataFrame, target: str) -> Evidence:
    """Figure 9: what the largest training part adds to the baseline's bound on the smallest, and
    the whole test part on a quarter of it; nats, a value for each game of a target.

    ``sizes`` has the rows of `baseline_sizes`.
    """
    fixed = sizes[sizes["way"] == _FIXED_TEST].pivot(index="seed", columns="train", values="c_lb")
    m = audits.config.test
    games = replace(audits, judged=audits.select("panoramia", target=target))
    tested = games.over_test_size([m // 4, m]).pivot(index="seed", columns="m", values="c_lb")
    values = {
        "rises": shared.differences_by_game(fixed[fixed.columns[-1]], fixed[fixed.columns[0]]),
        "smaller test lowers": shared.differences_by_game(tested[m], tested[m // 4]),
    }
    return Evidence(target="panoramia-figure-09", unit="game", values=values)


def _figure_fourteen_evidence(results: shared.PanoramiaResults) -> Evidence:
    """Figure 14: mean losses of the targets trained shortest and longest, by kind of chunk, nats.

    By how much more the longest tells members from non-members; and how far its loss of synthetic
    chunks is from that of non-members, less a third of the gap to members: below 0 is near.
    """
    first, last = results.trained[0], results.trained[-1]
    losses = chunk_losses(results.pools, [first, last])

    def mean(target: str, kind: str) -> float:
        """The mean loss of a target on a kind of example, nats."""
        return float(np.mean(losses[target][kind]))

    def gap(target: str) -> float:
        """How far a target's mean loss of non-members is above that of members, nats."""
        return mean(target, "real non-members") - mean(target, "real members")

    distance = abs(mean(last, "synthetic") - mean(last, "real non-members"))
    values = {
        "losses separate": [gap(last) - gap(first)] if last != first else [],
        "synthetic near non-members": [distance - gap(last) / 3],
    }
    return Evidence(target="panoramia-figure-14", unit="model", values=values)
