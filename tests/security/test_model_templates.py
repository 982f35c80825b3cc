"""Chat templates are programs that come with a model: they reach nothing and they end."""

import pytest

from paperlib.audits.language.chat_templates import ChatTemplate
from paperlib.models.language import train_tokenizer

CHAT = {"messages": [{"role": "user", "content": "Where?"}]}
CALLS = "__import__('os').mkdir('RAN')"
TEMPLATES = {
    "classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals of a function": "{{ raise_exception.__globals__['os'].mkdir('RAN') }}",
    "globals of a method": "{{ messages.append.__globals__ }}",
    "code of a generator": "{{ (messages | map('upper')).gi_frame.f_globals }}",
    "an import": "{{ " + CALLS + " }}",
    "a format": "{{ '{0.__class__.__mro__}'.format(messages) }}",
    "an attribute by name": "{{ (messages | attr('__class__'))('RAN') }}",
    "a file": "{% include '/etc/passwd' %}",
    "a change of the messages": "{% set _ = messages.append(1) %}",
    "a wide range": "{% for x in range(10 ** 9) %}{% endfor %}",
    "an error of its own": "{{ raise_exception('\x1b[2J') }}",
    "no template": "{% for",
    "a division": "{{ 1 / 0 }}",
    "a call of nothing": "{{ nothing() }}",
    "a long complaint": "{{ raise_exception('a' * 100000) }}",
    "brackets": "{{ " + "(" * 5_000 + ")" * 5_000 + " }}",
}


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["Where is it? It is here."], 280, context=64)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_reaches_nothing_and_its_failure_is_one_line(here, tokenizer, name):
    tokenizer.chat_template = TEMPLATES[name]
    with pytest.raises(ValueError) as caught:
        ChatTemplate("a model", tokenizer).text(CHAT, "messages")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert "a model" in str(caught.value)
    assert not (here / "RAN").exists()
