"""Verdicts on the papers' tables and figures: rules fixed beforehand, evidence from runs,
outcomes.
"""

from paperlib.reproduction.papers.verdict.evidence import Estimate, Evidence, Scale
from paperlib.reproduction.papers.verdict.records import record

__all__ = ["Estimate", "Evidence", "Scale", "record"]
