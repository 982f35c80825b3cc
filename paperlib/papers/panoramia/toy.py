"""A world where the generator's density is known: c is computed, and so is what a weak baseline hides."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import expit

from paperlib.audits.panoramia.game import Flags
from paperlib.bounds import PanoramiaResult, audit_panoramia
from paperlib.core import FloatArray, check_at_least, check_in, check_nonnegative
from paperlib.report import COLORS, legend_below, panels, progress, show_figure, show_table


@dataclass(frozen=True, kw_only=True)
class ToyWorld:
    """Points that carry a mark or not; generated points carry it less often; a model that answers."""

    # c of the generator, nats: ``log(P_real[mark] / P_generated[mark])``; no point has a larger ratio
    c: float = 0.7
    epsilon: float = 1.0  # nats that the model's answer about a point adds to its odds, exactly
    mark: float = 0.5  # share of the real points that carry the mark, in (0, 1)
    m: int = 2_000  # points shown in a game

    def __post_init__(self) -> None:
        check_nonnegative("c", self.c)
        check_nonnegative("epsilon", self.epsilon)
        check_in("(0, 1)", "mark", self.mark)
        check_at_least(2, m=self.m)

    def seen_c(self, weakness: float) -> float:
        """The c that a baseline can see which takes the mark for its opposite in this share of the points.

        >>> world = ToyWorld()
        >>> round(world.seen_c(0.0), 12), round(world.seen_c(0.5), 12)
        (0.7, 0.0)
        """
        real, made = self._shares(weakness)
        return float(np.log(real / made))

    def play(
        self, weakness: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray, Flags]:
        """One game: scores of the baseline, of an attack that sees marks as they are, of an attack that sees
        them as the baseline does, and membership, each of shape (m,); the scores are the best there are."""
        member = rng.random(self.m) < 0.5
        marked = rng.random(self.m) < self.mark * np.exp(np.where(member, 0.0, -self.c))
        seen = marked ^ (rng.random(self.m) < weakness)
        told = rng.random(self.m) < expit(np.where(member, self.epsilon, -self.epsilon))
        answer = self.epsilon * (2.0 * told - 1)
        more, same = self._odds(marked, 0.0) + answer, self._odds(seen, weakness) + answer
        return seen.astype(np.float64), more, same, member

    def _shares(self, wrong: float) -> FloatArray:
        """Real and generated points that seem to carry the mark."""
        check_in("[0, 0.5]", "weakness", wrong)
        shares = self.mark * np.exp([0.0, -self.c])
        return (1 - wrong) * shares + wrong * (1 - shares)

    def _odds(self, marked: Flags, wrong: float) -> FloatArray:
        real, made = self._shares(wrong)
        return np.where(marked, np.log(real / made), np.log((1 - real) / (1 - made)))


def weaken_baseline(
    world: ToyWorld,
    weaknesses: tuple[float, ...],
    *,
    repetitions: int = 50,
    confidence: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """How far epsilon~ is from epsilon as the baseline sees less, by the anytime search."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for weakness in progress(weaknesses, label="baselines"):
        seen = world.seen_c(weakness)
        limits = {"sees more": world.c + world.epsilon - seen, "sees the same": world.epsilon}
        audits = partial(_audited_game, world, weakness, rng, confidence)
        games = [audits() for _ in range(repetitions)]
        for game, found in enumerate(games):
            for (attack, limit), (one, known) in zip(limits.items(), found, strict=True):
                rows.append(
                    {
                        "weakness": weakness,
                        "game": game,
                        "attack": attack,
                        "c_lb": one.c_lb,
                        "c_plus_eps_lb": one.c_plus_epsilon_lb,
                        "eps_tilde": one.epsilon_tilde,
                        "known_c": known.epsilon or 0.0,
                        "seen_c": seen,
                        "limit": limit,
                    }
                )
    return pd.DataFrame(rows)


def _audited_game(
    world: ToyWorld, weakness: float, rng: np.random.Generator, confidence: float
) -> list[tuple[PanoramiaResult, PanoramiaResult]]:
    """Audits without and with known c, of the attack that sees more and of the one that sees the same."""
    baseline, *attacks, member = world.play(weakness, rng)
    audit = partial(audit_panoramia, confidence=confidence, search="anytime")
    return [
        (audit(baseline, scores, member), audit(baseline, scores, member, known_c=world.c))
        for scores in attacks
    ]


def toy_means(toy: pd.DataFrame, world: ToyWorld) -> pd.DataFrame:
    """Means over games of `weaken_baseline`, with the share of games that exceed epsilon."""
    over = toy.assign(tilde=toy["eps_tilde"] > world.epsilon, known=toy["known_c"] > world.epsilon)
    return over.drop(columns="game").groupby(["attack", "weakness"], sort=False).mean().reset_index()


def toy_figure(means: pd.DataFrame, world: ToyWorld) -> tuple[Figure, str]:
    """Epsilon~, its limit, and the bound with known c over the weakness of the baseline, by attack."""
    lines: dict[str, tuple[str, dict[str, Any]]] = {
        "eps_tilde": ("ε~", {"color": COLORS[0], "marker": "o"}),
        "limit": ("its limit", {"color": COLORS[0], "linestyle": ":"}),
        "known_c": ("lower bound, c known", {"color": COLORS[1], "marker": "s", "linestyle": "--"}),
        "c_lb": ("c, at least", {"color": COLORS[2], "linestyle": "-."}),
    }
    attacks = list(means["attack"].unique())
    fig, all_axes = panels(len(attacks), height=2.3, share_x=True)
    words = [f"The true epsilon is {world.epsilon:g}"]
    for axes, attack in zip(all_axes, attacks, strict=True):
        rows = means[means["attack"] == attack]
        for column, (label, look) in lines.items():
            axes.plot(rows["weakness"], rows[column], label=label, **look)
        axes.axhline(world.epsilon, color="black", linewidth=1, label="ε")
        axes.set(ylabel="nats", ylim=(0, None))
        axes.set_title(f"attack {attack}", loc="left")
        ends = rows.iloc[[0, -1]]
        told = (f"{label} from {ends[column].iloc[0]:.2f} to {ends[column].iloc[1]:.2f}"
                for column, (label, _) in lines.items())  # fmt: skip
        words.append(f"attack {attack}: {', '.join(told)}")
    all_axes[-1].set_xlabel("share of marks the baseline sees wrongly")
    legend_below(fig)
    return fig, "; ".join(words) + "."


def show_toy(means: pd.DataFrame, world: ToyWorld, *, games: int) -> None:
    """Show the measurement against the truth as the baseline weakens, and how often it passes epsilon."""
    fig, words = toy_figure(means, world)
    show_figure(
        fig,
        name="panoramia-weak-baseline",
        caption=f"The measurement against the truth as the baseline weakens; means of {games} games of "
        f"{world.m} points. The limit is that of large games.",
        alt=words,
        data=means.drop(columns=["tilde", "known"]),
    )
    show_table(
        means,
        name="panoramia-toy",
        caption=f"Means over games (nats), and the share of games that lie above $\\varepsilon$ = "
        f"{world.epsilon:g}: of $\\tilde\\varepsilon$, and of the lower bound where $c$ is told.",
        columns={
            "attack": "Attack",
            "weakness": "Seen wrongly",
            "c_lb": "c, at least",
            "eps_tilde": "ε~",
            "tilde": "ε~ above ε",
            "known_c": "c known: ε, at least",
            "known": "It above ε",
        },
        lower_bounds=["c_lb", "c_plus_eps_lb", "known_c"],
    )


def toy_in_words(means: pd.DataFrame, world: ToyWorld) -> str:
    """How often the two numbers passed epsilon, at the weakest baseline and an attack that sees more."""
    row = means[means["attack"] == "sees more"].sort_values("weakness").iloc[-1]
    return (
        f"With the weakest baseline and the attack that sees more, ε~ lies above ε = {world.epsilon:g} in "
        f"{row['tilde']:.0%} of the games, the lower bound with known c in {row['known']:.0%}."
    )
