"""The worked examples of the book's page on models run as they are printed."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "book" / "from_a_model.md"
SECTIONS = dict(
    re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
)
EXAMPLES = ["A random forest", "A convolutional network", "A language model"]
OTHERS = ["Anything else", "The labels alone", "A test that fails when training leaks more"]


def blocks(section):
    return re.findall(r"```python\n(.*?)```", SECTIONS[section], re.DOTALL)


@pytest.mark.parametrize("section", EXAMPLES)
def test_a_worked_example_tosses_coins_before_training_and_prints_its_bounds(section, capsys):
    first, *others = blocks(section)
    training = re.search(r"\.fit\(|AdamW?\(", first).start()
    assert 0 < first.index("< 0.5") < training < first.index('design="randomized"')
    assert all('design="game"' in other for other in others)
    names = {}
    for block in blocks(section):
        exec(compile(block, section, "exec"), names)
        printed = capsys.readouterr().out
        assert re.search(r"ε ≥ \d+\.\d{3} \(δ = 0, confidence 0\.95; ", printed)
    values = names["losses_in"], names["losses_out"]
    assert values[0].mean() < values[1].mean()
    assert names["audits"].audit_losses(*values).headline.epsilon > 0


def test_the_other_examples_run_none_is_left_out_and_the_page_s_test_fails_above_its_limit(capsys):
    assert [name for name in SECTIONS if blocks(name)] == [*EXAMPLES, *OTHERS]
    for section, printed in zip(OTHERS[:2], ("[0. 1. 4.]", "under replacing the label of one"), strict=True):
        exec(compile(blocks(section)[0], section, "exec"), {})
        assert printed in " ".join(capsys.readouterr().out.split())
    names = {}
    exec(compile(blocks(OTHERS[2])[0], OTHERS[2], "exec"), names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))  # as pytest collects it
    assert names["LIMIT"] == 3.0
    test()
    names["LIMIT"] = 0.5
    with pytest.raises(AssertionError, match="ε ≥"):
        test()
