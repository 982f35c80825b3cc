"""What a run says of the paper's tables and figures on text: samples for the rules that decide them."""

from dataclasses import replace

import numpy as np
import pandas as pd

from paperlib.audits.panoramia.results import TargetAudits
from paperlib.papers.panoramia.evidence import (
    by_game,
    figure_ten,
    helper_table,
    null_samples,
    paired,
    table_three,
)
from paperlib.papers.panoramia.results import PanoramiaResults
from paperlib.papers.panoramia.text.tables import plain_nulls, text_losses
from paperlib.papers.verdict import Estimate, Evidence


def evidence(
    results: PanoramiaResults, curves: pd.DataFrame, helpers: pd.DataFrame, sizes: pd.DataFrame
) -> dict[str, Evidence]:
    """Evidence on Tables 3, 5 and 9 and Figures 8, 9, 10 and 14, by target."""
    paper, last = results.forms["paper"], results.trained[-1]
    found = (
        table_three(results, results.trained, plain_nulls(results)),
        helper_table("panoramia-table-05", helpers, "real non-members"),
        _table_nine(results, paper),
        figure_eight(curves),
        _figure_nine(paper, sizes, last),
        figure_ten(paper, last),
        _figure_fourteen(results),
    )
    return {one.target: one for one in found}


def _table_nine(results: PanoramiaResults, paper: TargetAudits) -> Evidence:
    """Without DP, and null, those count that have as many epochs as those with DP."""
    private = [target for target in results.pools.targets if target.kind == "private"]
    epochs = {target.epochs for target in private}
    alike = [one for one in results.pools.targets if one.kind == "trained" and one.epochs in epochs]
    nulls = [one.name for one in results.pools.targets if one.kind == "null" and one.epochs in epochs]
    values = {
        "0 with DP": {target.name: by_game(paper, target.name).tolist() for target in private},
        "leak without DP": {target.name: by_game(paper, target.name).tolist() for target in alike},
        "null": null_samples(paper, nulls),
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
    fixed = sizes[sizes["way"] == "fixed test part"].pivot(index="seed", columns="train", values="c_lb")
    m = paper.config.test
    games = replace(paper, judged=paper.select("panoramia", target=target))
    tested = games.over_test_size([m // 4, m]).pivot(index="seed", columns="m", values="c_lb")
    values = {
        "rises": paired(fixed[fixed.columns[-1]], fixed[fixed.columns[0]]),
        "smaller test lowers": paired(tested[m], tested[m // 4]),
    }
    return Evidence("panoramia-figure-09", "game", values)


def _figure_fourteen(results: PanoramiaResults) -> Evidence:
    first, last = results.trained[0], results.trained[-1]
    losses = text_losses(results.pools, [first, last])
    means = {name: {kind: float(np.mean(v)) for kind, v in losses[name].items()} for name in (first, last)}
    gaps = {name: by["real non-members"] - by["real members"] for name, by in means.items()}
    distance = abs(means[last]["synthetic"] - means[last]["real non-members"])
    values = {
        "losses separate": [gaps[last] - gaps[first]] if last != first else [],
        "synthetic near non-members": [distance - gaps[last] / 3],
    }
    return Evidence("panoramia-figure-14", "model", values)
