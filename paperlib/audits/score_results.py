"""All audits of one set of scores, as text, table, JSON and page."""

import html
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from paperlib.audits.sealed_plan import SealedPlan
from paperlib.bounds import OneRunResult
from paperlib.core import (
    Coins,
    Design,
    MembershipScores,
    ScoreAudit,
    ScoreMeasures,
    score_measures,
)
from paperlib.core.facts import Refusal
from paperlib.core.sealed import sealed_text

if TYPE_CHECKING:
    from paperlib.audits.document import AuditDocument


@dataclass(frozen=True, eq=False)
class Audits:
    """All audits of one set of scores, the main one first.

    Each number holds at its own confidence; no claim covers the largest of several, chosen
    afterwards.
    """

    scores: MembershipScores
    audits: tuple[ScoreAudit, ...]  #: one or more; the first one has a result
    design: Design = "randomized"
    reading: tuple[str, ...] = field(default=(), kw_only=True)  #: warnings of the reader of a file
    plan: SealedPlan | None = field(default=None, kw_only=True)  #: what was followed
    coins: Coins | None = field(default=None, kw_only=True)  #: what told membership

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
        others = [
            f"{one.title}: {text}"
            for one in self.audits[1:]
            if one.result
            for text in one.result.warnings
            if text not in main
        ]
        return tuple(dict.fromkeys([*main, *others]))

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
        main = self.headline
        number = "\n".join(filter(None, [main.headline, main.condition]))
        claim = "\n".join([f"Claim: {main.claim}", *main.remarks])
        warnings = "\n".join(f"Warning: {text}" for text in self.warnings)
        blocks = [number, claim, warnings, str(self.measures)]
        if self.refusals:
            blocks = [warnings, number, claim, str(self.measures)]
        others = [
            f"  {one.title} ({one.kind}): "
            + (one.result.headline if one.result else f"not possible: {one.refused}")
            for one in self.audits[1:]
        ]
        if others:
            blocks.append("\n".join(["Other audits, each at its own confidence:", *others]))
        return "\n\n".join(filter(None, blocks))

    def _repr_html_(self) -> str:
        beside = [text for text in self.warnings if text not in self.headline.warnings]
        return (
            self.headline._repr_html_()
            + "".join(f"<p><strong>Warning:</strong> {html.escape(text)}</p>" for text in beside)
            + f"<p>{html.escape(str(self.measures))}</p>"
            + self.to_frame().to_html(index=False)
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per audit: audit, kind, epsilon (nats), condition, note (purpose, or why not
        possible).
        """
        rows = [
            (one.title, one.kind, one.result.epsilon, one.result.condition, one.purpose)
            if one.result
            else (one.title, one.kind, None, "", f"not possible: {one.refused}")
            for one in self.audits
        ]
        return pd.DataFrame(rows, columns=["audit", "kind", "epsilon", "condition", "note"])

    def document(self, **parts: Any) -> "AuditDocument":
        """The audit for readers and programs; ``parts`` are more fields of `AuditDocument`, as
        ``facts``.
        """
        from paperlib.audits.document import AuditDocument, answer_of

        main = self.headline
        answer = answer_of(main, about="", warnings=self.reading)
        if self.refusals:
            answer = replace(answer, epsilon=None, headline="", claim="")
        more: dict[str, Any] = {"ceiling": main.ceiling, "warnings": self.warnings}
        if self.plan is not None:
            more["plan"] = self.plan.to_dict()
            parts = {"claimed_epsilon": self.plan.claimed_epsilon, **parts}
        if self.plan is not None and self.coins is not None:
            values = np.empty(len(self.scores))
            values[self.coins.included] = self.scores.member
            values[~self.coins.included] = self.scores.nonmember
            scores = sealed_text(values.tolist())
            parts["receipt"] = {"plan": self.plan.text, "coins": self.coins.text, "scores": scores}
        return AuditDocument(
            scores=self.scores,
            audits=self.audits,
            answers=(answer,),
            design=self.design,
            limits=((main.epsilon, main.ceiling),),
            warnings=answer.warnings,
            more=more,
            **parts,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, as `AuditDocument.to_dict` gives them without provenance."""
        return self.document().to_dict()
