"""The page on data of your own: a demonstration without any, its games, and what to take from them."""

from functools import cache, partial

import pandas as pd
from matplotlib.figure import Figure

from paperlib.audits.panoramia.audit import AuditData, PanoramiaAudit
from paperlib.audits.panoramia.pools import Model, Trainer
from paperlib.audits.panoramia.results import LIMIT
from paperlib.audits.panoramia.table import bring_table
from paperlib.audits.panoramia.table_models import Learning, RowEncoder, losses, train
from paperlib.data.tables.labelled import load_table
from paperlib.generators.tabular import TableGenerator
from paperlib.report import (
    COLORS,
    MARKERS,
    bounds_figure,
    legend_below,
    panels,
    precision_figure,
    show_figure,
    used_data,
)

_MEMBERS = 0.9


def demonstration(
    *, epochs: int = 100, generator: TableGenerator | None = None, seed: int = 0
) -> tuple[AuditData, Model, Trainer]:
    """Members of the RAND table, a target trained on them, and the function that trained it.

    Args:
        epochs: Training epochs of the target, 1 or more.
        generator: Generator of non-members, as in `bring_table`.
        seed: Seed of the parts, the generator and the models, 0 or more.

    Returns:
        What `audit_model` takes. The function trains no model twice: it keeps them.
    """
    table = load_table("randhie", "visits")
    used_data("randhie (statsmodels)", table.rows.to_csv(index=False).encode())
    cut = round(_MEMBERS * len(table.rows))
    order = table.rows.sample(frac=1, random_state=seed).reset_index(drop=True)
    members, others = order[:cut].reset_index(drop=True), order[cut:].reset_index(drop=True)
    encoder = RowEncoder.fit(others, table.label, table.classes)
    place = {row: at for at, row in enumerate(map(tuple, members.itertuples(index=False)))}

    @cache
    def trained(rows: tuple[int, ...], seed: int) -> Model:
        config = Learning().plain(encoder, epochs, seed)
        return partial(losses, encoder, train(encoder, members.iloc[list(rows)], [config]))

    def train_again(rows: pd.DataFrame, seed: int) -> Model:
        return trained(tuple(place[tuple(row)] for row in rows.itertuples(index=False)), seed)

    brought = bring_table(members, label=table.label, generator=generator, epochs=epochs, seed=seed)
    return brought, train_again(members, seed), train_again


_KINDS = (
    ("your model", "yours", "panoramia"),
    ("null", "null", "panoramia"),
    ("real non-members", "yours", "rm_rn"),
)
"""Label, target and audit of the games that are drawn."""


def games_figure(games: pd.DataFrame) -> tuple[Figure, str]:
    """The difference of the bounds of your model and of the null in each game, with the null's margin.

    Beside them stands the lower bound from real non-members, where there are some.

    Args:
        games: Rows of `PanoramiaAudit.games`, nats.

    Returns:
        The figure, and its description in words.

    >>> row = {"target": "yours", "audit": "panoramia", "seed": 0, "c_lb": 0.5, "c_plus_eps_lb": 1.0}
    >>> figure, words = games_figure(pd.DataFrame([row]).assign(eps=float("nan")))
    >>> words
    'Dots for each game. Mean over games: your model 0.50 nats.'
    """
    found = games.assign(found=games["eps"].fillna(games["c_plus_eps_lb"] - games["c_lb"]))
    seeds = list(dict.fromkeys(found["seed"]))
    fig, (axes,) = panels(height=1.4 + 0.24 * len(seeds))
    axes.axvspan(-LIMIT, LIMIT, color="#dddddd", zorder=0)
    words = []
    for at, (label, target, audit) in enumerate(_KINDS):
        rows = found[(found["target"] == target) & (found["audit"] == audit)]
        if len(rows):
            places = [seeds.index(seed) for seed in rows["seed"]]
            axes.plot(rows["found"], places, linestyle="", marker=MARKERS[at], color=COLORS[at], label=label)
            words.append(f"{label} {rows['found'].mean():.2f}")
    axes.set_yticks(range(len(seeds)), [str(seed) for seed in seeds])
    axes.set(xlabel="nats", ylabel="seed of the game", ylim=(len(seeds) - 0.5, -0.5))
    legend_below(fig, columns=3)
    return fig, f"Dots for each game. Mean over games: {', '.join(words)} nats."


def show_games(audit: PanoramiaAudit) -> None:
    """Show every game of your model and of the null."""
    fig, words = games_figure(audit.games)
    show_figure(
        fig,
        name="your-games",
        caption="Every game: the bound of the attack less that of the baseline, not clipped at 0. The claim "
        f"above is that of seed {audit.config.seed}; the others show how much a split matters. Grey: the "
        f"margin of {LIMIT:g} that the null's mean must lie in.",
        alt=words,
        data=audit.games,
    )


def show_curves(audit: PanoramiaAudit) -> None:
    """Show precision and bounds over recall, of baseline and attack in the game of the claim."""
    curves = audit.result.curve.assign(
        target="your model", seed=audit.config.seed, ceiling=audit.result.ceiling
    )
    fig, words = precision_figure(curves)
    show_figure(
        fig,
        name="your-precision",
        caption="Precision of the guesses over recall, of the baseline and of the attack; dotted: guessing.",
        alt=words,
        data=curves,
    )
    fig, words = bounds_figure(curves)
    show_figure(
        fig,
        name="your-bounds",
        caption="Lower bounds on c (baseline) and on c + ε (attack) over recall, corrected for testing many "
        "levels.",
        alt=words,
        data=curves,
    )


def in_words(audit: PanoramiaAudit) -> str:
    """The three things to take, with the numbers of the run, as Markdown."""
    result, null = audit.result, audit.null
    most = result.ceiling - (result.c_lb if result.known_c is None else result.known_c)
    checked = (
        "Here no null was trained: give `train_again`, and the audit trains one."
        if null is None
        else f"Here it shows {round(null.mean, 2) + 0.0:.2f} nats on average"
        f" and {'passes' if null.passes else 'is not shown to pass'}."
    )
    if result.known_c is not None:
        checked = "Here $c$ is known: the number is a lower bound, and needs no null."
    return (
        r"1. $\tilde\varepsilon$ is leakage only where the *null*, a model trained as yours but never on the "
        f"example it is asked about, shows 0. {checked}\n"
        f"2. So many judged examples can show {most:.2f} nats at most. A number close to this ceiling may "
        "stand for a larger leak; more members raise the ceiling.\n"
        r"3. With real non-members, or with a generator whose $c$ is known, the number is a lower bound on "
        r"$\varepsilon$ and needs no null: bring them where you can."
    )
