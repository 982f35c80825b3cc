"""Scores, results and argument checks, shared by every other room."""

from paperlib.core.checks import FloatArray as FloatArray
from paperlib.core.checks import IntArray as IntArray
from paperlib.core.checks import check_at_least as check_at_least
from paperlib.core.checks import check_choice as check_choice
from paperlib.core.checks import check_confidence as check_confidence
from paperlib.core.checks import check_counts as check_counts
from paperlib.core.checks import check_delta as check_delta
from paperlib.core.checks import check_finite as check_finite
from paperlib.core.checks import check_in as check_in
from paperlib.core.checks import check_nonnegative as check_nonnegative
from paperlib.core.checks import check_vector as check_vector
from paperlib.core.options import DeltaTerm as DeltaTerm
from paperlib.core.options import Design as Design
from paperlib.core.options import Guess as Guess
from paperlib.core.options import RankBound as RankBound
from paperlib.core.options import RecallSearch as RecallSearch
from paperlib.core.options import Search as Search
from paperlib.core.options import Sides as Sides
from paperlib.core.results import AuditResult as AuditResult
from paperlib.core.results import ScoreAudit as ScoreAudit
from paperlib.core.results import json_ready as json_ready
from paperlib.core.results import round_down as round_down
from paperlib.core.results import table as table
from paperlib.core.scores import MembershipScores as MembershipScores
from paperlib.core.scores import parse_flag as parse_flag
