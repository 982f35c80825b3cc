"""Verdicts on the papers' tables and figures: rules fixed beforehand, evidence from runs,
outcomes.
"""

from paperlib.papers.verdict.evidence import Estimate, Evidence, Scale
from paperlib.papers.verdict.records import record

__all__ = ["Estimate", "Evidence", "Scale", "record"]
