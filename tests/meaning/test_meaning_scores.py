"""Changes of a scores file that keep or destroy its meaning: the same answer, or one line that refuses.

Each property has a broken twin: an entry with one plausible fault, which the same trials must catch.
"""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paperlib import MembershipScores
from paperlib.audits import audit
from paperlib.audits.scores import Audits, audit_scores
from paperlib.io import read_scores

AUDITS, READS = 12, 250  # trials of each property, of an audit and of reading alone
REFUSED = "refused"
Entry = Callable[..., Any]
Change = Callable[[np.random.Generator, pd.DataFrame, Path, Entry], tuple[Any, Any]]


def answer(entry: Entry, *paths: Path, **options: Any) -> Any:
    """What an entry says of files: scores of each side, or epsilon (None where a warning withdraws it)."""
    try:
        result = entry(*paths, **options)
    except ValueError as error:
        return REFUSED if "\n" not in str(error) else str(error)
    if isinstance(result, Audits):
        return result.to_dict()["epsilon"]
    scores = getattr(result, "scores", result)
    return scores.higher_means_member, sorted(scores.member), sorted(scores.nonmember)


def played(*paths: Path, **options: Any) -> Audits:
    return audit(*paths, design="game", **options)


def table(rng: np.random.Generator) -> pd.DataFrame:
    """Losses of 60 members and 60 other records, members leak."""
    losses = np.concatenate([rng.gamma(2, 0.3, 60), rng.gamma(6, 0.6, 60)])
    return pd.DataFrame({"id": rng.permutation(10_000)[:120], "loss": losses, "member": [1] * 60 + [0] * 60})


def csv(frame: pd.DataFrame, path: Path, **options: Any) -> Path:
    frame.to_csv(path, index=False, **options)
    return path


def permuted(rng: np.random.Generator, frame: pd.DataFrame, folder: Path, entry: Entry) -> tuple[Any, Any]:
    mixed = frame.iloc[rng.permutation(len(frame))][list(rng.permutation(frame.columns))]
    return answer(entry, csv(mixed, folder / "a.csv")), answer(played, csv(frame, folder / "b.csv"))


def duplicated(rng: np.random.Generator, frame: pd.DataFrame, folder: Path, entry: Entry) -> tuple[Any, Any]:
    """All rows several times without ids, or some rows twice with them."""
    if rng.random() < 0.5:
        again = pd.concat([frame.drop(columns="id")] * int(rng.integers(2, 6)))
    else:
        again = pd.concat([frame, frame.sample(int(rng.integers(1, 60)), random_state=int(rng.integers(99)))])
    return answer(entry, csv(again, folder / "a.csv")), REFUSED


def both_sides(rng: np.random.Generator, frame: pd.DataFrame, folder: Path, entry: Entry) -> tuple[Any, Any]:
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


def renamed(rng: np.random.Generator, frame: pd.DataFrame, folder: Path, entry: Entry) -> tuple[Any, Any]:
    """A synonym is read alike; a name whose direction nobody knows is refused."""
    names = {"nll": True, "Val Loss": True, "cross-entropy": True, "value": False, "neg_loss": False}
    name = str(rng.choice(list(names)))
    got = answer(entry, csv(frame.rename(columns={"loss": name}), folder / "a.csv"))
    return got, answer(read_scores, csv(frame, folder / "b.csv")) if names[name] else REFUSED


def retyped(rng: np.random.Generator, frame: pd.DataFrame, folder: Path, entry: Entry) -> tuple[Any, Any]:
    yes, no = [("true", "false"), ("in", "out"), ("1.0", "0.0"), ("train", "test"), ("1", "-1")][
        rng.integers(5)
    ]
    words = frame.assign(member=np.where(frame["member"] == 1, yes, no), loss=frame["loss"].map(repr))
    if rng.random() < 0.5:
        words.to_parquet(folder / "a.parquet", index=False)
        got = answer(entry, folder / "a.parquet")
    else:
        got = answer(entry, csv(words, folder / "a.csv"))
    return got, answer(read_scores, csv(frame, folder / "b.csv"))


def swapped(rng: np.random.Generator, frame: pd.DataFrame, folder: Path, entry: Entry) -> tuple[Any, Any]:
    """Non-members in place of members: no number is an answer."""
    if rng.random() < 0.5:
        return answer(entry, csv(frame.assign(member=1 - frame["member"]), folder / "a.csv")), None
    files = [csv(part[["loss"]], folder / f"{name}.csv") for name, part in frame.groupby("member")]
    return answer(entry, *files), None


def converted(rng: np.random.Generator, frame: pd.DataFrame, folder: Path, entry: Entry) -> tuple[Any, Any]:
    """One side's file in another form."""
    others, members = (part[["id", "loss"]] for _, part in frame.groupby("member"))
    sides = [csv(members, folder / "m.csv"), csv(others, folder / "n.csv")]
    expected = answer(read_scores, *sides)
    at = int(rng.integers(2))
    part, form = (members, others)[at], int(rng.integers(5))
    if form == 0:
        sides[at] = csv(part, folder / "c.csv", sep=";", decimal=",")
    elif form == 1:
        sides[at] = csv(part, folder / "c.tsv.gz", sep="\t")
    elif form == 2:
        sides[at] = folder / "c.jsonl"
        sides[at].write_text("\n".join(json.dumps(row) for row in part.to_dict("records")))
    elif form == 3:
        sides[at] = csv(part, folder / "c.csv", encoding="utf-16")
    else:
        sides[at] = folder / "c.parquet"
        part.to_parquet(sides[at], index=False)
    return answer(entry, *sides), expected


# ---------------------------------------------------------------- entries with one fault each


def by_position(*paths: Path) -> Audits:
    """Takes the first half of the rows for the members."""
    losses = pd.read_csv(paths[0])["loss"].to_numpy()
    half = losses.size // 2
    return audit_scores(losses_of(losses[:half], losses[half:]), design="game")


def losses_of(members: Any, others: Any) -> MembershipScores:
    return MembershipScores(members, others, higher_means_member=False)


def plainly(*paths: Path) -> Audits:
    """Reads losses by name, and looks at neither ids nor equal values."""
    frames = [pd.read_csv(path) for path in paths]
    sides = frames if len(frames) == 2 else [frames[0][frames[0]["member"] == value] for value in (1, 0)]
    members, others = (side["loss"] + np.linspace(0, 1e-9, len(side)) for side in sides)
    return audit_scores(losses_of(members, others), design="game")


def guesses(*paths: Path) -> Any:
    """Takes every unknown column for losses."""
    return read_scores(*paths, kind="losses")


def alphabetical(*paths: Path) -> MembershipScores:
    """Takes the last word in the alphabet for "member"."""
    path = paths[0]
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    member = frame["member"] == frame["member"].max()
    losses = frame["loss"].astype(float)
    return losses_of(losses[member], losses[~member])


def best_direction(*paths: Path) -> Audits:
    """Turns the scores round where that shows more."""
    both = [played(*paths, kind=kind) for kind in ("losses", "scores")]
    return both[0] if both[0].reversed is None else both[1]


def drops_commas(*paths: Path) -> MembershipScores:
    """Takes a decimal comma for a mark between thousands."""
    sides = []
    for path in paths:
        data = path.read_bytes()
        marks = b";" in data and path.suffix == ".csv" and b"\0" not in data
        file = io.BytesIO(data.replace(b",", b"").replace(b";", b",")) if marks else None
        scores = pd.read_csv(file)["loss"] if file else read_scores(path, path.parent / "b.csv").scores.member
        sides.append(scores)
    return losses_of(*sides)


PROPERTIES: list[tuple[Change, Entry, Entry]] = [
    (permuted, played, by_position),
    (duplicated, played, plainly),
    (both_sides, played, plainly),
    (swapped, played, best_direction),
    (renamed, read_scores, guesses),
    (retyped, read_scores, alphabetical),
    (converted, read_scores, drops_commas),
]


def fails(change: Change, entry: Entry, folder: Path, trials: int) -> bool:
    """Whether the entry's answer is neither the right one nor a refusal in one of so many trials."""
    for seed in range(trials):
        rng = np.random.default_rng([seed, 7])
        frame = table(rng)
        csv(table(rng)[["loss"]], folder / "b.csv")
        got, right = change(rng, frame, folder, entry)
        if got not in (right, REFUSED):
            return True
    return False


@pytest.mark.parametrize(("change", "entry", "broken"), PROPERTIES, ids=lambda f: f.__name__)
def test_a_changed_file_gives_the_same_audit_or_is_refused(change, entry, broken, tmp_path):
    assert not fails(change, entry, tmp_path, AUDITS if entry is played else READS)
    assert fails(change, broken, tmp_path, 10 if entry is played else 60)


@pytest.mark.parametrize("change", [retyped, converted], ids=lambda f: f.__name__)
def test_refusing_everything_is_no_way_out(change, tmp_path):
    rng = np.random.default_rng(5)
    answers = [change(rng, table(rng), tmp_path, read_scores)[0] for _ in range(20)]
    assert answers.count(REFUSED) == 0
