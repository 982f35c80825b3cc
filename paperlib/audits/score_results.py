"""All audits of one set of scores, as text, table, JSON and page."""

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from paperlib.audits.planned.sealed_plan import SealedPlan
from paperlib.bounds.one_run.audit import OneRunResult
from paperlib.core import Coins, MembershipScores, ScoreAudit
from paperlib.core.facts import Refusal
from paperlib.core.intervals import ScoreMeasures, score_measures
from paperlib.core.options import ScoreDesign

if TYPE_CHECKING:
    import pandas as pd

    from paperlib.audits.document import AuditDocument


@dataclass(frozen=True, eq=False)
class Audits:
    """All audits of one set of scores, the main one first.

    Each number holds at its own confidence; no claim covers the largest of several, chosen
    afterwards.
    """

    scores: MembershipScores
    audits: tuple[ScoreAudit, ...]  #: one or more; the first one has a result
    design: ScoreDesign | Literal["marks"] = "randomized"
    reading: tuple[str, ...] = field(default=(), kw_only=True)  #: warnings of the reader of a file
    plan: SealedPlan | None = field(default=None, kw_only=True)  #: what was followed
    coins: Coins | None = field(default=None, kw_only=True)  #: what told membership
    seed: int = field(default=0, kw_only=True)  #: of the splits of the further audits

    @property
    def headline(self) -> OneRunResult:
        """Result of the main audit."""
        return cast(OneRunResult, self.audits[0].result)

    @property
    def condition(self) -> str:
        """The assumption that must stand beside the main number."""
        return self.headline.condition

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Why no number of these audits is an answer; empty where the main one is."""
        return self.headline.refusals

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the reader and of every audit, each once, a reversed direction first."""
        refused = [refusal.sentence for refusal in self.refusals]
        main = [*refused, *self.reading, *self.headline.warnings]
        warnings = list(main)
        for audit in self.audits[1:]:
            if audit.result:
                texts = [text for text in audit.result.warnings if text not in main]
                warnings += [f"{audit.title}: {text}" for text in texts]
        return tuple(dict.fromkeys(warnings))

    @cached_property
    def measures(self) -> ScoreMeasures:
        """Area under the ROC curve and true-positive rates with intervals, at the audits'
        confidence.
        """
        return score_measures(self.scores, confidence=self.headline.confidence)

    def __iter__(self) -> Iterator[ScoreAudit]:
        return iter(self.audits)

    def __len__(self) -> int:
        return len(self.audits)

    def __repr__(self) -> str:
        return f"Audits({self.headline.headline}; {len(self)} audits)"

    def __str__(self) -> str:
        """The main number with its claim, warnings, measures and the other audits, in blocks; the
        warnings come first where the number is no answer.
        """
        main = self.headline
        number = "\n".join(filter(None, [main.headline, main.condition]))
        claim = "\n".join([f"Claim: {main.claim}", *main.remarks])
        warnings = "\n".join(f"Warning: {text}" for text in self.warnings)
        blocks = [number, claim, warnings, str(self.measures)]
        if self.refusals:
            blocks = [warnings, number, claim, str(self.measures)]
        others = [_line(audit) for audit in self.audits[1:]]
        if others:
            blocks.append("\n".join(["Other audits, each at its own confidence:", *others]))
        return "\n\n".join(filter(None, blocks))

    def _repr_html_(self) -> str:
        """The main result, the warnings of all audits, each once, and their table, as a notebook
        shows them.
        """
        blocks = [self.headline._repr_html_()]
        for text in self.warnings:
            if text not in self.headline.warnings:
                blocks.append(f"<p><strong>Warning:</strong> {html.escape(text)}</p>")
        blocks.append(f"<p>{html.escape(str(self.measures))}</p>")
        blocks.append(self.to_frame().to_html(index=False))
        return "".join(blocks)

    def to_frame(self) -> "pd.DataFrame":
        """One row per audit: audit, kind, epsilon (nats), condition, note (purpose, or why not
        possible).
        """
        import pandas as pd  # slow to load, and no number needs it

        rows = [_row(audit) for audit in self.audits]
        return pd.DataFrame(rows, columns=["audit", "kind", "epsilon", "condition", "note"])

    def document(self, **fields: Any) -> "AuditDocument":
        """The audit as text, JSON (epsilon in nats, None where it is no answer) and page.

        With a plan it carries the planned limits, and with coins as well the receipt: plan, coins
        and scores as sealed texts. ``fields`` are further ones of `AuditDocument`, such as
        ``facts``; a ``claimed_epsilon`` among them replaces the plan's.

        Raises:
            ValueError: Ids of a receipt's report that are not those of its coins.
        """
        from paperlib.audits.document import AuditDocument, answer_of

        for audit in self.audits:
            if audit.kind == "test" and audit.result:
                audit.result.seen()  # kept, so that every part of the report has it
        main = self.headline
        answer = answer_of(main, about="", warnings=self.reading)
        if self.refusals:
            answer = replace(answer, epsilon=None, headline="", claim="")
        json_fields: dict[str, Any] = {"ceiling": main.ceiling, "warnings": self.warnings}
        if self.plan is not None:
            json_fields["plan"] = self.plan.to_dict()
            fields.setdefault("claimed_epsilon", self.plan.claimed_epsilon)
        if self.plan is not None and self.coins is not None:
            fields.setdefault("title", AuditDocument.title)
            fields["receipt"] = self._receipt(self.plan, self.coins, fields)
        return AuditDocument(
            scores=self.scores,
            audits=self.audits,
            answers=(answer,),
            design=self.design,
            limits=((main.epsilon, main.ceiling),),
            warnings=answer.warnings,
            more=json_fields,
            **fields,
        )

    def _receipt(self, plan: SealedPlan, coins: Coins, fields: Mapping[str, Any]) -> dict[str, str]:
        """Sealed texts under "plan", "coins", "scores", one score per coin in the order of the
        coins, and "report", what else a report with these fields of `AuditDocument` says.

        Raises:
            ValueError: Ids among the fields that are not those of the coins.
        """
        from paperlib.audits.report_words import ReportWords, group_names, sealed_scores
        from paperlib.report.audit.about import About
        from paperlib.words.audits.questions.texts import chosen

        ids = fields.get("ids")
        if ids is not None and list(map(str, ids)) != _members_first(coins):
            raise ValueError("ids: other than those of the coins, which name the records")
        values = np.empty(len(self.scores))
        values[coins.included] = self.scores.member
        values[~coins.included] = self.scores.nonmember
        words = ReportWords(
            title=fields["title"],
            about=fields.get("about", About()),
            facts=fields.get("facts", {}),
            inputs=fields.get("inputs", {}),
            named=ids is not None,
            groups=group_names(fields.get("groups")),
            reading=self.reading,
            seed=self.seed,
            questions=chosen(fields.get("questions", ())),
        )
        scores = sealed_scores(values)
        return {"plan": plan.text, "coins": coins.text, "scores": scores, "report": words.text}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, as `AuditDocument.to_dict` gives them without provenance."""
        return self.document().to_dict()


def _members_first(coins: Coins) -> list[str]:
    """Ids of the coins, those of members first, in the order of the coins."""
    order = np.argsort(~coins.included, kind="stable")
    return [coins.ids[index] for index in order]


def _line(audit: ScoreAudit) -> str:
    """An audit beside the main one, in a line of text."""
    result = f"not possible: {audit.refused}"
    if audit.result:
        result = audit.result.headline
    return f"  {audit.title} ({audit.kind}): {result}"


def _row(audit: ScoreAudit) -> tuple[str, str, float | None, str, str]:
    """Title, kind, epsilon (nats, None where there is none), condition, and purpose of an audit, or
    why it was not possible.
    """
    if audit.result is None:
        return audit.title, audit.kind, None, "", f"not possible: {audit.refused}"
    result = audit.result
    return audit.title, audit.kind, result.epsilon, result.condition, audit.purpose
