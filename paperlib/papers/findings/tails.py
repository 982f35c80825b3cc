"""What Epsilon* does not say: its value comes from a fitted tail."""

from paperlib.papers.epsilon_star.gamma_losses import laplace_values
from paperlib.papers.findings.finding import Finding
from paperlib.report import legend_below, panels


def tails(gaps: tuple[float, ...], *, size: int, repeats: int, seed: int) -> Finding:
    """Epsilon* of losses with Laplace tails, whose true value is known."""
    table = laplace_values(gaps, size=size, repeats=repeats, seed=seed)
    figure, (axis,) = panels()
    for name, marker in (("parametric", "s"), ("empirical", "o")):
        axis.plot(table["gap"], table[name], marker=marker, label=f"Epsilon*, {name}")
    axis.plot(table["gap"], table["true"], color="black", linestyle="--", label="true value")
    axis.set(xlabel="distance of the distributions", ylabel="nats")
    legend_below(figure)
    ratio, other = (table[name] / table["true"] for name in ("parametric", "empirical"))
    listed = "; ".join(
        f"{row['gap']:g}: true {row['true']:.2f}, parametric {row['parametric']:.2f}, empirical "
        f"{row['empirical']:.2f}"
        for row in table.to_dict("records")
    )
    return Finding(
        slug="tails",
        paper="epsilon_star",
        title="The value comes from the tail of a fitted normal",
        sentence=f"On losses with Laplace tails, whose true value is known, the parametric Epsilon\\* is "
        f"{ratio.min():.1f} to {ratio.max():.1f} times the true value: the normal fitted to the middle "
        "is wrong in the "
        "tail, where the maximum is taken. The empirical value, which fits no tail, is "
        f"{other.min():.1f} to {other.max():.1f} times the true one. Both are measurements, and no lower "
        "bounds. This package tests the fit and leads with the empirical value where the fit is rejected, "
        f"as it was in {table['rejected'].mean():.0%} of these samples.",
        figure=figure,
        caption=f"Epsilon\\* of losses with Laplace tails: means of {repeats} samples of {size:,} losses "
        "in each set.",
        alt=f"Three lines over the distance of two Laplace distributions. {listed}.",
        data=table,
    )
