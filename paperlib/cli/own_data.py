"""What ``paperlib audit-data`` and ``paperlib audit-lm`` do: audit, print the answer, write the report."""

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paperlib.cli.gate import Wishes, finish, report_name, report_path
from paperlib.core import json_ready
from paperlib.report import Verdict, read_about
from paperlib.running.answers import Answer, answer_of

DATA_FACTS = ("kind", "label", "unit", "search", "known_c", "repetitions", "restarts", "seed")
TEXT_FACTS = ("limit", "before", "generated", "rank_attack", "seed")


@dataclass(frozen=True, kw_only=True)
class _Found:
    """An audit, ready to be shown: its JSON, its page, and what a limit on epsilon judges."""

    name: str
    inputs: Mapping[str, str]
    content: Mapping[str, Any]
    verdict: Verdict
    answers: tuple[Answer, ...]
    numbers: Sequence[tuple[float | None, float]]  # of each answer: what a limit judges, and its ceiling
    more: tuple[str, ...] = ()
    write: Callable[[Path, Mapping[str, Any]], None]


def audit_own_data(kind: str, members: str, target: str, options: Mapping[str, Any], wishes: Wishes) -> int:
    """Audit a model with the data it was trained on; the exit code. Options: ``paperlib audit-data --help``.

    Raises:
        ValueError: A file, a function or a number that cannot be used.
        OutputError: The report or the JUnit file cannot be written.
    """
    from paperlib.audits.panoramia.yours.answer import (
        audits_of,
        content_of,
        gate_numbers,
        verdict_of,
        write_report,
    )
    from paperlib.audits.panoramia.yours.files import audit_files, checksums, report_facts

    about = None if wishes.about is None else read_about(wishes.about)
    audit = audit_files(kind, members, target, **options)
    files = {
        "Members": members, "Target": target, "Trained again by": options["train_again"],
        "Generated": options["generated"], "Non-members": options["nonmembers"],
    }  # fmt: skip
    told = {name: value for name, value in {"kind": kind, **options}.items() if name in DATA_FACTS}
    facts = {**report_facts(files, **told), "Command": _command()}
    verdict = verdict_of(audit, claimed_epsilon=wishes.claimed_epsilon)
    about_it = f"{target} on {members}"
    answers = [
        answer_of(one.result, about=f"{about_it}: {one.title}") for one in audits_of(audit) if one.result
    ]
    return _finished(
        _Found(
            name=report_name(members),
            inputs={**checksums(files.values()), "target": target},
            content={**content_of(audit), "verdict": verdict.to_dict(), "provenance": facts},
            verdict=verdict,
            answers=tuple(answers),
            numbers=gate_numbers(audit),
            write=lambda path, data: write_report(
                path, audit, facts, verdict=verdict, about=about, data=data
            ),
        ),
        wishes,
    )


def audit_own_language_model(
    model: str,
    corpus: str,
    found: Mapping[str, Any],
    options: Mapping[str, Any],
    wishes: Wishes,
    *,
    dtype: str,
    device: str,
    shown: int,
) -> int:
    """Audit a language model with a corpus; the exit code. Options as ``paperlib audit-lm --help``.

    Raises:
        ValueError: A model or a corpus that cannot be used.
        OutputError: The report or the JUnit file cannot be written.
    """
    from paperlib.audits.language_page import content_of, verdict_of, write_report
    from paperlib.audits.panoramia.yours.files import checksums, report_facts

    about = None if wishes.about is None else read_about(wishes.about)
    audit, log = _language_model(model, corpus, found, options, dtype=dtype, device=device)
    told = {name: value for name, value in {**found, **options}.items() if name in TEXT_FACTS}
    facts = {**report_facts({"Model": model, "Corpus": corpus}, **told), "Command": _command()}
    verdict = verdict_of(audit, claimed_epsilon=wishes.claimed_epsilon)
    best = audit.table.head(5)[["kind", "value", "occurrences", "rank"]]
    more = (
        f"{len(audit.found)} identifiers, {audit.scores.values.shape[1] - 1} alternatives each",
        f"Was the set trained on? {audit.inference.headline}",
        f"Best known:\n{best.to_string(index=False)}",
    )
    return _finished(
        _Found(
            name=report_name(corpus),
            inputs={**checksums([model, corpus]), "model": model},
            content={**content_of(audit), "verdict": verdict.to_dict(), "provenance": facts},
            verdict=verdict,
            answers=(answer_of(audit.rank_audit, about=f"{model} on {corpus}", warnings=log),),
            numbers=[(audit.rank_audit.epsilon, audit.ceiling)],
            more=more,
            write=lambda path, data: write_report(
                path, audit, facts, verdict=verdict, about=about, data=data, count=shown
            ),
        ),
        wishes,
    )


def _language_model(
    model: str, corpus: str, found: Mapping[str, Any], options: Mapping[str, Any], *, dtype: str, device: str
) -> tuple[Any, tuple[str, ...]]:
    """The audit, and what was left out of the corpus, in words."""
    from paperlib.audits.language import audit_language_model, audited_identifiers
    from paperlib.data.text.pieces import ReadLog
    from paperlib.models.language import load_language_model

    skipped = ReadLog()
    identifiers = audited_identifiers(corpus, **found, log=skipped)  # first: a mistake shows at once
    log = tuple(f"{reason}: {number} (such as {example})" for reason, number, example in skipped.rows)
    if len(identifiers) < 10:
        left = "; ".join([f"{corpus}: {len(identifiers)} identifiers are left, 10 are needed", *log])
        raise ValueError(left)
    loaded, tokenizer = load_language_model(model, dtype=dtype, device=device or None)
    audit = audit_language_model(loaded, tokenizer, identifiers, **options)
    return audit, log


def _command() -> str:
    return shlex.join(["paperlib", *sys.argv[1:]])


def _finished(found: _Found, wishes: Wishes) -> int:
    """Write the report, print the answer or JSON, and judge the limit on epsilon: the exit code."""
    warnings = tuple(dict.fromkeys(text for one in found.answers for text in one.warnings))
    content = json_ready(
        {
            **found.content,
            "warnings": warnings,
            "claimed_epsilon": wishes.claimed_epsilon,
            "inputs": found.inputs,
        }
    )
    report = report_path(wishes.output, found.name, as_json=wishes.as_json, inputs=dict(found.inputs))
    if report is not None:
        found.write(report, content)
    if wishes.as_json:
        print(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False))
    else:
        print(_text(found))
        print(f"Report: {report}")
    at = _judged(found, wishes.fail_above)
    (epsilon, ceiling), answer = found.numbers[at], found.answers[at]
    return finish(
        name=found.name, epsilon=epsilon, headline=answer.headline, claim=answer.claim, warnings=warnings,
        fail_above=wishes.fail_above, junit=wishes.junit, ceiling=ceiling,
    )  # fmt: skip


def _judged(found: _Found, limit: float | None) -> int:
    """Which number a limit judges: the first one above it, else the main one."""
    above = [limit is not None and epsilon is not None and epsilon > limit for epsilon, _ in found.numbers]
    return above.index(True) if any(above) else 0


def _text(found: _Found) -> str:
    steps = found.verdict.next_steps
    parts = [
        " ".join(found.verdict.sentences),
        *map(str, found.answers),
        *found.more,
        "\n".join(["Next:", *(f"  - {step}" for step in steps)]) if steps else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
