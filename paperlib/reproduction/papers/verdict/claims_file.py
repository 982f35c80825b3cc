"""``claims.json``: every claim of the papers with its outcome, its evidence and the command that
repeats it, made from rules and judged runs.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paperlib.reproduction.exhibits import targets
from paperlib.reproduction.papers.verdict.contrasts import Contrast
from paperlib.reproduction.papers.verdict.outcome import Claim
from paperlib.reproduction.papers.verdict.pages import best_of
from paperlib.reproduction.papers.verdict.records import anchor, page_of
from paperlib.reproduction.papers.verdict.status import JudgedTarget, Run

CLAIMS_NAME = "claims.json"
SCHEMA_NAME = "claims.schema.json"
_SCHEMA = Path(__file__).with_name(SCHEMA_NAME)


def schema_text() -> str:
    """The JSON schema of `claims_text`, as text."""
    return _SCHEMA.read_text(encoding="utf-8")


def claims_links() -> str:
    """A line of a page that links the file and its schema."""
    links = [
        f"{{download}}`{name} </_generated/data/{name}>`" for name in (CLAIMS_NAME, SCHEMA_NAME)
    ]
    return f"Every claim with its evidence and the command that repeats it: {', '.join(links)}."


def claims_text(judged: Sequence[JudgedTarget], *, profile: str) -> str:
    """All tables and figures by their best evidence as JSON text, in the papers' order.

    ``profile`` is that of the book whose runs were judged beside the committed ones.
    """
    printed = targets().set_index("id")[["source", "page"]].astype(str).to_dict("index")
    rows: list[dict[str, Any]] = []
    for entry in best_of(judged):
        row = printed[entry.rule.target]
        rows.append(_row(entry, source=row["source"], page=row["page"]))
    content = {"$schema": SCHEMA_NAME, "profile": profile, "claims": rows}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _row(entry: JudgedTarget, *, source: str, page: str) -> dict[str, Any]:
    """A table or figure by its best evidence: where the paper has it, what it claims, and what
    became of it here.

    ``page`` is the paper's page, and ``source`` where its headline number is from; empty for none.
    """
    rule = entry.rule
    return {
        "id": rule.target,
        "paper": rule.paper,
        "item": rule.item,
        "page": int(page) if page else None,
        "sentence": rule.claim,
        "number": rule.printed or None,
        "number_from": source or None,
        "outcome": entry.outcome.word,
        "reason": entry.outcome.reason,
        "claims": [_claim(claim) for claim in entry.outcome.claims],
        "conditions": [_comparison(contrast) for contrast in entry.outcome.conditions],
        "scale": entry.level,
        "evidence": [_evidence(run) for run in entry.runs],
        "commands": _commands(entry),
        "section": f"results/{page_of(rule)}.html#{anchor(rule.target)}",
    }


def _claim(claim: Claim) -> dict[str, Any]:
    """A claim by itself, with its outcome and what was compared."""
    return {
        "name": claim.name,
        "outcome": claim.word,
        "beside": claim.beside,
        "comparisons": [_comparison(contrast) for contrast in claim.contrasts],
    }


def _comparison(contrast: Contrast) -> dict[str, Any]:
    """A mean with its interval, and the range that is claimed; null for what is not there."""
    return {
        "name": contrast.term.name,
        "label": contrast.label,
        "mean": _finite(contrast.mean),
        "low": _finite(contrast.low),
        "high": _finite(contrast.high),
        "at_least": _finite(contrast.term.at_least),
        "at_most": _finite(contrast.term.at_most),
        "measure": contrast.term.measure,
    }


def _finite(number: float) -> float | None:
    """The number, or None for one that JSON does not have."""
    return float(number) if math.isfinite(number) else None


def _evidence(run: Run) -> dict[str, Any]:
    """A run that decides: its result file with its checksum, and on what scale."""
    return {
        "notebook": run.notebook,
        "profile": run.profile,
        "seed": None if run.seed == "None" else int(run.seed),
        "measured": run.origin or None,
        "scale": run.scale.level,
        "facts": run.scale.facts,
        "file": run.file,
        "sha256": run.sha256,
    }


def _commands(entry: JudgedTarget) -> list[str]:
    """The commands of the runs, each once; of a target that was never run, those of its
    notebooks.
    """
    commands = [run.command for run in entry.runs if run.command]
    if not commands:
        commands = [f"make run NB={notebook}" for notebook in entry.rule.notebooks]
    return list(dict.fromkeys(commands))
