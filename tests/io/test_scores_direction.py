"""No direction is guessed: a name that does not tell it is asked about in one line."""

from pathlib import Path

import numpy as np
import pytest

from paperlib.io import read_scores
from paperlib.io.scores.names import kind_of, tells_membership

LOSSES = (
    "loss", "losses", "LOSS", "nll", "NLLs", "cross_entropy", "crossEntropy", "crossentropy", "ce",
    "CE loss", "perplexity", "ppl", "neg_log_likelihood", "negative log-likelihood", "val_loss",
    "loss_target", "train-loss", "loss_epoch_10", "loss_2", "per_example_loss", "mean_squared_error",
    "log_loss", "xent", "nll_loss",
)  # fmt: skip
SCORES = (
    "score", "scores", "Score", "logprob", "log_prob", "log-probs", "log_likelihood", "loglik",
    "confidence", "mia_score", "membership_score", "logit", "logits", "likelihood", "lira_score",
    "true_label_confidence", "membership_probability",
)  # fmt: skip
DOUBTFUL = (
    "neg_loss", "minus_loss", "loss_negated", "inverted_loss", "-loss", "1-loss", "1 - confidence",
    "loss - ref_loss", "loss/zlib", "exp(-loss)", "loss_ratio", "loss_diff", "ref_loss", "loss_score",
    "nll2", "value", "values", "x", "entropy", "probability", "prob", "anomaly_score", "z_score",
    "nonmember_score", "neg_score", "score_neg", "log_likelihood_ratio", "confidence_interval", "logit_3",
    "glossary", "closs", "scored", "0", "", "perplexities ratio",
)  # fmt: skip
MEMBERS = (
    "member", "Membership", "is_member", "isMember", "is_train", "in_train", "train", "split",
    "in_training", "trained", "In Train", "in-train", "seen",
)  # fmt: skip


def write(folder: Path, score: str, member: str = "member", flags: tuple[object, object] = (1, 0)) -> Path:
    path = folder / "a.csv"
    path.write_text(f'"{score}","{member}"\n0.5,{flags[0]}\n0.25,{flags[1]}\n', encoding="utf-8")
    return path


@pytest.mark.parametrize("name", LOSSES)
def test_a_known_loss_is_read_as_one(tmp_path: Path, name: str) -> None:
    assert kind_of(name) == "losses"
    assert not read_scores(write(tmp_path, name)).scores.higher_means_member


@pytest.mark.parametrize("name", SCORES)
def test_a_known_score_is_read_as_one(tmp_path: Path, name: str) -> None:
    assert kind_of(name) == "scores"
    assert read_scores(write(tmp_path, name)).scores.higher_means_member


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_name_whose_direction_is_doubtful_tells_nothing(name: str) -> None:
    assert kind_of(name) is None


def test_the_question_names_both_choices_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, "nll2")
    for options in ({}, {"score_column": "nll2"}):
        with pytest.raises(ValueError) as caught:
            read_scores(path, **options)
        assert str(caught.value) == (
            f"{path}: does a high value of column 'nll2' point to a member (--kind scores) or a low one "
            '(--kind losses)? Say which with --kind (in Python kind="scores" or kind="losses")'
        )


@pytest.mark.parametrize(("kind", "higher"), [("scores", True), ("losses", False)])
@pytest.mark.parametrize("name", ["nll2", "neg_loss", "loss", "score"])
def test_a_given_kind_decides(tmp_path: Path, name: str, kind: str, higher: bool) -> None:
    found = read_scores(write(tmp_path, name), kind=kind)
    assert found.kind == kind
    assert found.scores.higher_means_member is higher
    told = {"loss": "losses", "score": "scores"}.get(name, kind)
    expected = f"column '{name}' was read as {kind}, as --kind says, although its name points to {told}"
    assert found.warnings == (() if told == kind else (expected,))


def test_a_lone_column_is_taken_only_with_a_kind(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",id,what,member\n0,a,0.5,1\n1,b,0.25,0\n")
    assert read_scores(path, kind="losses").source == "a.csv, columns 'what' and 'member'"
    path.write_text("first,second,member\n1,0.5,1\n2,0.25,0\n")
    with pytest.raises(
        ValueError, match=r"no score column .* 'first', 'second', 'member' .* with --score-column"
    ):
        read_scores(path, kind="losses")


def test_bare_arrays_need_a_kind(tmp_path: Path) -> None:
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", [0.5, 0.25])
    with pytest.raises(ValueError, match="a high value of the array point to a member"):
        read_scores(tmp_path / "a.npy", tmp_path / "b.npy")
    assert not read_scores(tmp_path / "a.npy", tmp_path / "b.npy", kind="losses").scores.higher_means_member


def test_files_of_one_class_may_say_the_class_in_the_name_of_the_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("losses_in\n1\n")
    (tmp_path / "b.csv").write_text("losses_out\n2\n")
    found = read_scores(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (found.kind, found.warnings) == ("losses", ())


def test_columns_of_other_names_in_two_files_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("loss\n1\n")
    (tmp_path / "b.csv").write_text("perplexity\n2\n")
    (warning,) = read_scores(tmp_path / "a.csv", tmp_path / "b.csv").warnings
    assert warning == "a.csv holds 'loss' and b.csv holds 'perplexity'; check that both are the same measure"


# ---------------------------------------------------------------- membership


@pytest.mark.parametrize("name", MEMBERS)
def test_a_known_membership_column_is_found(tmp_path: Path, name: str) -> None:
    assert tells_membership(name)
    path = write(tmp_path, "loss", name, ("train", "test"))
    assert read_scores(path).scores.member.tolist() == [0.5]


@pytest.mark.parametrize(
    "name", ["label", "y", "nonmember", "is_test", "members of staff", "target", "-member"]
)
def test_other_columns_are_not_taken_for_membership(tmp_path: Path, name: str) -> None:
    assert not tells_membership(name)
    with pytest.raises(ValueError, match="no membership column with a known name"):
        read_scores(write(tmp_path, "loss", name))
    if name in ("label", "y", "target"):
        assert read_scores(write(tmp_path, "loss", name), member_column=name).scores.member.tolist() == [0.5]


@pytest.mark.parametrize("flags", [(1, 0), (0, 1), ("true", "false"), ("no", "yes"), (1, -1)], ids=str)
@pytest.mark.parametrize("name", ["nonmember", "is_test", "holdout", "Is Out"])
def test_a_1_in_a_column_of_non_members_is_not_a_member(
    tmp_path: Path, name: str, flags: tuple[object, object]
) -> None:
    with pytest.raises(ValueError, match=rf"column '{name}' seems to hold 1 \(or true\) for non-members"):
        read_scores(write(tmp_path, "loss", name, flags), member_column=name)
    path = write(tmp_path, "loss", name, ("member", "nonmember"))
    assert read_scores(path, member_column=name).scores.member.tolist() == [0.5]


@pytest.mark.parametrize("flags", [(1, 0), ("true", "false")], ids=str)
def test_numbers_of_a_split_may_stand_for_any_part(tmp_path: Path, flags: tuple[object, object]) -> None:
    path = write(tmp_path, "loss", "split", flags)
    with pytest.raises(
        ValueError, match="may stand for any part of the data; write the words train and test"
    ):
        read_scores(path)
    assert read_scores(path, member_column="split").scores.member.tolist() == [0.5]


def test_two_membership_columns_are_not_chosen_from(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("loss,member,split\n1,1,test\n2,0,train\n")
    with pytest.raises(
        ValueError, match="'member' and 'split' could each hold the membership; choose one with"
    ):
        read_scores(path)
