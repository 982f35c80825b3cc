"""No direction is guessed: a name that does not tell it is asked about in one line."""

import pytest

from paperlib.core.reading import read_scores
from paperlib.core.reading.columns import kind_of, tells_membership
from tests.refusals import refused

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
    "glossary", "closs", "scored", "0", "", "perplexities ratio", "losses_in",
)  # fmt: skip
MEMBERS = (
    "member", "Membership", "is_member", "isMember", "is_train", "in_train", "train", "split",
    "in_training", "trained", "In Train", "in-train", "seen",
)  # fmt: skip
NO_MEMBERS = ("label", "y", "target", "nonmember", "is_test", "members of staff", "-member")


@pytest.fixture
def table(tmp_path):
    """Writes two losses and their membership."""

    def written(score="loss", member="member", flags=(1, 0)):
        path = tmp_path / "a.csv"
        path.write_text(f'"{score}","{member}"\n0.5,{flags[0]}\n0.25,{flags[1]}\n', encoding="utf-8")
        return path

    return written


def test_a_known_name_tells_direction_or_membership_and_a_doubtful_one_nothing(table):
    for kind, names in {"losses": LOSSES, "scores": SCORES, None: DOUBTFUL}.items():
        assert {name: kind_of(name) for name in names} == dict.fromkeys(names, kind)
    with pytest.raises(ValueError, match="does a high value of column 'nll2' point to a member"):
        read_scores(table("nll2"), score_column="nll2")
    for name in MEMBERS:
        assert read_scores(table(member=name, flags=("train", "test"))).scores.member.tolist() == [0.5]
    for name in NO_MEMBERS:
        assert not tells_membership(name)
        refused("no membership column with a known name", read_scores, table(member=name))
    assert read_scores(table(member="label"), member_column="label").scores.member.tolist() == [0.5]


@pytest.mark.parametrize("kind", ["scores", "losses"])
@pytest.mark.parametrize(("name", "meaning"), [("nll2", None), ("loss", "losses"), ("score", "scores")])
def test_a_given_kind_decides(table, name, meaning, kind):
    found = read_scores(table(name), kind=kind)
    assert (found.kind, found.scores.higher_means_member) == (kind, kind == "scores")
    expected = f"column '{name}' was read as {kind}, as --kind says, although its name points to {meaning}"
    assert found.warnings == (() if meaning in (None, kind) else (expected,))


def test_a_lone_column_is_taken_only_with_a_kind_and_files_of_one_class_may_name_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",id,what,member\n0,a,0.5,1\n1,b,0.25,0\n")
    assert read_scores(path, kind="losses").source == "a.csv, columns 'what' and 'member'"
    path.write_text("first,second,member\n1,0.5,1\n2,0.25,0\n")
    message = r"no score column .* 'first', 'second', 'member' .* with --score-column"
    refused(message, read_scores, path, kind="losses")
    path.write_text("loss,member,split\n1,1,test\n2,0,train\n")
    refused("'member' and 'split' could each hold the membership; choose", read_scores, path)
    (tmp_path / "a.csv").write_text("losses_in\n1\n")
    (tmp_path / "b.csv").write_text("losses_out\n2\n")
    found = read_scores(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (found.kind, found.warnings) == ("losses", ())
    (tmp_path / "b.csv").write_text("perplexity\n2\n")
    (warning,) = read_scores(tmp_path / "a.csv", tmp_path / "b.csv").warnings
    assert warning.startswith("a.csv holds 'losses_in' and b.csv holds 'perplexity'; check that both")


@pytest.mark.parametrize("flags", [(1, 0), ("true", "false"), ("no", "yes"), (1, -1)], ids=str)
def test_a_1_may_mean_something_else(table, flags):
    for name in ("nonmember", "is_test", "holdout", "Is Out"):
        with pytest.raises(ValueError, match=rf"'{name}' seems to hold 1 \(or true\) for non-members"):
            read_scores(table(member=name, flags=flags), member_column=name)
        words = table(member=name, flags=("member", "nonmember"))
        assert read_scores(words, member_column=name).scores.member.tolist() == [0.5]
    path = table(member="split", flags=flags)
    refused("any part of the data; write the words train and test", read_scores, path)
    assert len(read_scores(path, member_column="split").scores) == 2
