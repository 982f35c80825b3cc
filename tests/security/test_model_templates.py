"""Chat templates are programs that come with a model: they reach nothing and they end."""

import resource
import signal

import pytest

from paperlib.audits.language import template_bounds
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


LOOPS = "{% for x in range(99999) %}{% for y in range(99999) %}BODY{% endfor %}{% endfor %}"
DOUBLED = "{% for x in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}"
MULTIPLIERS = {
    "a factor": "{{ 'a' * 10 ** 10 }}",
    "a factor that fits": "{{ 'a' * 10 ** 7 }}",
    "a factor of each message": "{{ messages[0].content * 10 ** 6 }}",
    "a doubling": "{% set ns = namespace(s='aaaaaaaaaa') %}" + DOUBLED,
    "a range": "{% for x in range(10 ** 12) %}{% endfor %}",
    "loops of nothing": LOOPS.replace("BODY", ""),
    "loops of text": LOOPS.replace("BODY", "{{ messages }}"),
    "loops of macros": "{% macro m() %}a{% endmacro %}" + LOOPS.replace("BODY", "{{ m() }}"),
    "a power": "{{ 10 ** (10 ** 10) }}",
    "a width": "{{ 'a'.center(10 ** 11) }}",
    "a width by a filter": "{{ 'a' | center(10 ** 11) }}",
    "a width by a format": "{{ '%100000000000d' % 1 }}",
    "an indent": "{{ 'a' | indent(10 ** 11, true) }}",
    "replacements": "{{ 'a' | replace('a', 'a' * 10 ** 6) | replace('a', 'a' * 10 ** 6) }}",
    "words": "{{ lipsum(n=99999) }}",
}


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_a_template_that_multiplies_a_text_is_one_line(monkeypatch, tokenizer, name):
    """In little time and memory, after which the process has what it had before."""
    monkeypatch.setattr(template_bounds, "SECONDS", 0.3)
    monkeypatch.setattr(template_bounds, "MEMORY", 256 << 20)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.getsignal(signal.SIGVTALRM)
    tokenizer.chat_template = MULTIPLIERS[name]
    with pytest.raises(ValueError) as caught:
        ChatTemplate("a model", tokenizer).text(CHAT, "messages")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert "the template of a model" in str(caught.value)
    assert resource.getrlimit(resource.RLIMIT_AS) == limits
    assert signal.getsignal(signal.SIGVTALRM) == handler
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)


CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA = (
    "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}"
    "{% set messages = messages[1:] %}{% else %}{% set system = 'Cutting Knowledge Date: "
    "December 2023' %}{% endif %}{{ '<|start_header_id|>system<|end_header_id|>\n\n' + system }}"
    "{% if tools %}{% for tool in tools %}{{ tool | tojson(indent=4) }}{% endfor %}{% endif %}"
    "{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}"
)
MISTRAL = (
    "{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
    "{{ message['content'] + eos_token }}{% endif %}{% endfor %}"
)
KNOWN = {"ChatML": CHATML, "Llama 3": LLAMA, "Mistral": MISTRAL}


@pytest.mark.parametrize("content", ["", "é\n" * 500_000], ids=["nothing", "a million"])
@pytest.mark.parametrize("name", KNOWN)
def test_templates_in_the_forms_of_known_models_are_within_the_bounds(tokenizer, name, content):
    tokenizer.chat_template = KNOWN[name]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"a": {"b": ["c"] * 50}}}}
    messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "Here."}]
    text = ChatTemplate("a model", tokenizer).text({"messages": messages, "tools": [tool]}, "text")
    assert content.strip() in text
    assert "Here." in text
