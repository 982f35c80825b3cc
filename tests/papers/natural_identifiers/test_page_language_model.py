"""The page for a language model of one's own: what its figure draws, and what its tables say."""

import pytest
from matplotlib import pyplot as plt

from paperlib.audits.corpus import corpus_identifiers
from paperlib.audits.language import audit_language_model
from paperlib.data.text.pieces import ReadLog
from paperlib.models.language import LanguageModelConfig, new_language_model, train_tokenizer
from paperlib.papers.natural_identifiers.pages import language_model as page
from paperlib.report.style import points_on_a_phone
from tests.generators.true_identifiers import random_ones


@pytest.fixture(scope="module")
def audits():
    """One corpus of digests, one of digests and hashes of commits, and a model that has seen neither."""
    some = {"a": random_ones("md5", 12), "b": [*random_ones("md5", 10), *random_ones("sha1", 5)]}
    tokenizer = train_tokenizer(some["a"], 300, context=64)
    model = new_language_model(LanguageModelConfig(width=16, layers=1, seed=0), len(tokenizer))
    options = {"generated": 3, "attacks": ("loss", "min_k"), "draws": 10}
    return {
        name: audit_language_model(
            model, tokenizer, corpus_identifiers([f"see {one}" for one in values]), **options
        )
        for name, values in some.items()
    }


def test_identifiers_are_counted_by_corpus_and_kind(audits, capsys):
    log = ReadLog()
    page.show_found(audits, log, limit=20)
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[3:]]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["a", "md5", "12"], ["b", "md5", "10"], ["b", "sha1", "5"],
    ]  # fmt: skip
    log.add("binary file", "a.bin")
    page.show_found(audits, log, limit=20)
    assert "| binary file | 1      | a.bin" in capsys.readouterr().out


def test_each_score_has_its_interval_in_percent(audits, capsys):
    table = page.attacks_table(audits)
    quality = audits["b"].quality.set_index("attack").loc["min_k"]
    row = table[(table["corpus"] == "b") & (table["attack"] == "min_k")].iloc[0]
    assert row["auc"] == round(100 * quality["auc"], 1)
    assert row["auc_shown"] == (
        f"{100 * quality['auc']:.1f} ({100 * quality['auc_low']:.1f} to {100 * quality['auc_high']:.1f})"
    )
    page.show_attacks(audits, confidence=0.95)
    out = capsys.readouterr().out
    assert (
        "AUC, and true-positive rate (TPR) at a false-positive rate (FPR) of 1 %, with 95 % intervals;" in out
    )
    assert "| AUC (%)" in out


def test_ranks_are_drawn_as_shares_and_the_best_known_are_shown(audits, capsys):
    fig = page.ranks_figure(audits, 4)
    steps = {line.get_label(): line.get_ydata() for line in fig.axes[0].lines}
    assert list(steps) == ["a", "b", "chance"]
    assert sum(steps["b"]) == pytest.approx(1)
    assert steps["a"][0] == (audits["a"].ranks == 1).mean()
    assert set(steps["chance"]) == {0.25}
    assert points_on_a_phone(fig) >= 8
    plt.close(fig)
    page.show_ranks(audits, count=5)
    shown = capsys.readouterr().out
    best = audits["a"].table["value"].iloc[0]
    assert f"| {best[:24]}… |" in shown
    assert f"{(audits['b'].ranks == 1).mean():.0%} (b)" in shown
