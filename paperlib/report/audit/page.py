"""The audit report: one HTML file that needs nothing else to be read."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from paperlib.core import AuditResult, MembershipScores, ScoreAudit
from paperlib.core.direction import reversed_direction
from paperlib.core.facts import Refusal, certain
from paperlib.core.intervals import ScoreMeasures, score_measures
from paperlib.core.results import RESULT_SCHEMA_VERSION, json_ready
from paperlib.core.sealed import sealed_hash
from paperlib.report.audit.about import About, about_schema
from paperlib.report.audit.questions import questions_sections
from paperlib.report.audit.tables import (
    Names,
    TableSection,
    exposed_section,
    groups_section,
    measures_section,
)
from paperlib.report.tables import format_cell
from paperlib.words.audits.questions.texts import QuestionRow
from paperlib.words.directions import refusals as refusals_of
from paperlib.words.verdict import Verdict, audit_verdict

_ADDRESS = re.compile(r"(https?://[^\s<>\"']+)")


def audit_report(
    scores: MembershipScores,
    audits: Sequence[ScoreAudit],
    *,
    title: str,
    facts: Mapping[str, str],
    verdict: Verdict | None = None,
    measures: ScoreMeasures | None = None,
    about: About | None = None,
    ids: Names | None = None,
    groups: Names | None = None,
    data: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    refusals: Sequence[Refusal] = (),
    more: Sequence[str | TableSection] = (),
    receipt: Mapping[str, str] | None = None,
    questions: Sequence[QuestionRow] = (),
) -> str:
    """The report of an audit as one HTML page, which makes no request and runs no script.

    Args:
        audits: One or more audits, the main one first.
        facts: Provenance: heading to text, such as the file's checksum and the command.
        verdict: What the main number means; by default that of `plain_verdict`.
        measures: By default `score_measures` of the scores.
        ids, groups: A name and a group of each example, members first.
        data: Content of the machine-readable block; by default what the other arguments say, in the
            form of ``paperlib audit --json``.
        warnings: Those of the whole audit, beside those of the main result.
        refusals: Why no number of the whole audit is an answer, beside those of the main result.
        more: Further sections, as tables or as HTML, shown before the figures.
        receipt: The sealed texts ``plan`` and ``coins``, ``scores`` as JSON, in the order of the
            coins, and ``report``, what else the page says, as JSON: from these texts, which the
            page holds, it can be written anew.
        questions: Questions of public texts, text by text, with what the audit shows of each.

    Raises:
        ValueError: There is no audit, or another number of ids or groups than of scores.
    """
    if not audits:
        raise ValueError("audits: expected at least one")
    main, *others = audits
    description = about or About()
    measures = measures or score_measures(scores)
    refusals = _all_refusals(scores, main, refusals)
    sentences = [refusal.sentence for refusal in refusals]
    of_main = () if main.result is None else main.result.warnings
    warnings = tuple(dict.fromkeys((*sentences, *warnings, *of_main)))
    if verdict is None:
        verdict = audit_verdict(main, warnings, refusals=refusals)
    if data is None:
        data = audit_content(audits, verdict, measures, description, warnings, facts, refusals)
    doubted = bool(refusals)
    tables = [
        measures_section(measures, main.result),
        exposed_section(scores, ids, doubted=doubted),
    ]
    if groups is not None:
        tables.append(groups_section(scores, groups, measures.confidence))
    fields = about_schema()["properties"]
    block = json.dumps(json_ready(data), ensure_ascii=False, allow_nan=False, sort_keys=True)
    from paperlib.report.audit.figures import report_images  # JSON needs no figures

    # What the owner says of the model, under the titles that the schema gives the fields.
    owner: dict[str, str] = {}
    for name, text in description.to_dict().items():
        owner[fields[name]["title"]] = text or "not given"
    return _template().render(
        title=title,
        scores=scores,
        about=description,
        verdict=verdict,
        main=main,
        others=others,
        warnings=warnings,
        doubted=doubted,
        tables=[*tables, *more],
        questions=questions_sections(questions),
        images=report_images(scores, audits, measures),
        owner=owner,
        facts={name: format_cell(text) for name, text in facts.items()},
        split_addresses=_ADDRESS.split,
        block=_inside(block),
        receipt=None if receipt is None else _receipt(receipt),
    )


def _all_refusals(
    scores: MembershipScores, main: ScoreAudit, refusals: Sequence[Refusal]
) -> tuple[Refusal, ...]:
    """The given refusals and those of the main result, each once; where there are none, a refusal
    if the direction of these scores is clearly reversed.
    """
    of_main = () if main.result is None else main.result.refusals
    together = tuple(dict.fromkeys((*refusals, *of_main)))
    return together or certain(refusals_of(reversed_direction(scores)))


def _inside(text: str) -> str:
    """JSON for a block of a page: written so that no text in it can end the block."""
    return text.replace("<", "\\u003c")


def _receipt(texts: Mapping[str, str]) -> dict[str, Any]:
    """What the page shows of a receipt, and what it holds of it.

    Args:
        texts: The sealed texts "plan", "coins", "scores" and "report", as of `audit_report`.

    Returns:
        "plan", the settings that are shown; "hashes", by the names of plan, coins and scores; and
        "block", all texts as JSON, from which the page can be written anew.
    """
    plan = json.loads(texts["plan"])
    for name in ("format", "version", "coins", "salt"):
        plan.pop(name, None)
    hashed = ("plan", "coins", "scores")
    return {
        "plan": {name: value for name, value in plan.items() if value not in ("", None)},
        "hashes": {name: sealed_hash(texts[name]) for name in hashed},
        "block": _inside(json.dumps(dict(texts))),
    }


def audit_content(
    audits: Sequence[ScoreAudit],
    verdict: Verdict,
    measures: ScoreMeasures,
    description: About,
    warnings: Sequence[str],
    facts: Mapping[str, str],
    refusals: Sequence[Refusal] = (),
) -> dict[str, Any]:
    """The result for programs, as ``result.schema.json`` describes it: epsilons in nats.

    With refusals, epsilon, headline and claim are None, as no number is an answer. ``description``
    is what somebody wrote of the audit, ``facts`` its provenance, heading to text.
    """
    main = audits[0]
    content = {
        "schema_version": RESULT_SCHEMA_VERSION,
        **_fields_of(main.result),
        "kind": main.kind,
        "refusals": [json_ready(refusal) for refusal in refusals],
        "warnings": warnings,
        "measures": measures.to_dict(),
        "audits": [audit.to_dict() for audit in audits],
        "verdict": verdict.to_dict(),
        "about": description.to_dict(),
        "provenance": dict(facts),
    }
    if refusals:
        content |= {"epsilon": None, "headline": None, "claim": None}
    return content


_SENTENCES = ("headline", "claim", "condition", "assumptions")
_FACTS = ("epsilon", "delta", "confidence", "sided", "adjacency", "unit", "copies", "design")


def _fields_of(result: AuditResult | None) -> dict[str, Any]:
    """The facts of the main result, and the sentences that say them; None where there is none."""
    return {name: getattr(result, name, None) for name in (*_FACTS, *_SENTENCES)}


@cache
def _template() -> Template:
    """The page's template, which escapes every value and refuses a missing one."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
