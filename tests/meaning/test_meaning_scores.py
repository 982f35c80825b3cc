"""Changes of a scores file that keep or destroy its meaning: the same answer, or one line that
refuses.

Each property has a broken twin: an entry with one plausible fault, which the same trials must
catch.
"""

import numpy as np
import pandas as pd
import pytest

from paperlib import MembershipScores
from paperlib.audits import audit
from paperlib.audits.scores import audit_scores

TRIALS = 12  # of each property
REFUSED = "refused"


def answer(entry, *paths):
    """What an entry says of files: epsilon (None where a warning withdraws it), or a refusal in one
    line.
    """
    try:
        return entry(*paths).to_dict()["epsilon"]
    except ValueError as error:
        return REFUSED if "\n" not in str(error) else str(error)


def played(*paths, **options):
    return audit(*paths, design="game", **options)


def table(rng):
    """Losses of 60 members and 60 other records, members leak."""
    losses = np.concatenate([rng.gamma(2, 0.3, 60), rng.gamma(6, 0.6, 60)])
    return pd.DataFrame(
        {"id": rng.permutation(10_000)[:120], "loss": losses, "member": [1] * 60 + [0] * 60}
    )


def csv(frame, path):
    frame.to_csv(path, index=False)
    return path


def permuted(rng, frame, folder, entry):
    mixed = frame.iloc[rng.permutation(len(frame))][list(rng.permutation(frame.columns))]
    right = answer(played, csv(frame, folder / "b.csv"))
    assert right != REFUSED  # or refusing everything would be right
    return answer(entry, csv(mixed, folder / "a.csv")), right


def duplicated(rng, frame, folder, entry):
    """All rows several times without ids, or some rows twice with them."""
    if rng.random() < 0.5:
        again = pd.concat([frame.drop(columns="id")] * int(rng.integers(2, 6)))
    else:
        again = pd.concat(
            [frame, frame.sample(int(rng.integers(1, 60)), random_state=int(rng.integers(99)))]
        )
    return answer(entry, csv(again, folder / "a.csv")), REFUSED


def both_sides(rng, frame, folder, entry):
    """Members that stand among the non-members too, by id; or by value, all of them."""
    members, others = frame[frame["member"] == 1], frame[frame["member"] == 0]
    columns = ["id", "loss"]
    if rng.random() < 0.5:
        shared = members.sample(int(rng.integers(1, 60)), random_state=int(rng.integers(99)))
    else:
        shared, columns = members, ["loss"]
    others = pd.concat([others, shared])
    files = csv(members[columns], folder / "m.csv"), csv(others[columns], folder / "n.csv")
    return answer(entry, *files), REFUSED


def swapped(rng, frame, folder, entry):
    """Non-members in place of members: no number is an answer."""
    if rng.random() < 0.5:
        return answer(entry, csv(frame.assign(member=1 - frame["member"]), folder / "a.csv")), None
    files = [csv(part[["loss"]], folder / f"{name}.csv") for name, part in frame.groupby("member")]
    return answer(entry, *files), None


def by_position(*paths):
    """Takes the first half of the rows for the members."""
    losses = pd.read_csv(paths[0])["loss"].to_numpy()
    half = losses.size // 2
    return audit_scores(losses_of(losses[:half], losses[half:]), design="game")


def losses_of(members, others):
    return MembershipScores(members, others, higher_means_member=False)


def plainly(*paths):
    """Reads losses by name, and looks at neither ids nor equal values."""
    frames = [pd.read_csv(path) for path in paths]
    sides = (
        frames
        if len(frames) == 2
        else [frames[0][frames[0]["member"] == value] for value in (1, 0)]
    )
    members, others = (side["loss"] + np.linspace(0, 1e-9, len(side)) for side in sides)
    return audit_scores(losses_of(members, others), design="game")


def best_direction(*paths):
    """Turns the scores round where that shows more."""
    both = [played(*paths, kind=kind) for kind in ("losses", "scores")]
    return both[0] if not both[0].refusals else both[1]


def fails(change, entry, folder, trials):
    """Whether the entry's answer is neither the right one nor a refusal in one of so many
    trials.
    """
    for seed in range(trials):
        rng = np.random.default_rng([seed, 7])
        got, right = change(rng, table(rng), folder, entry)
        if got not in (right, REFUSED):
            return True
    return False


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (permuted, by_position),
        (duplicated, plainly),
        (both_sides, plainly),
        (swapped, best_direction),
    ],
    ids=lambda f: f.__name__,
)
def test_a_changed_file_gives_the_same_audit_or_is_refused(change, broken, tmp_path):
    assert not fails(change, played, tmp_path, TRIALS)
    assert fails(change, broken, tmp_path, 10)
