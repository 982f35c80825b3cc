"""Tables, figures, records and provenance: what turns a run's values into pages."""

from paperlib.report.audit_figures import bound_figure as bound_figure
from paperlib.report.audit_figures import describe_bound as describe_bound
from paperlib.report.audit_figures import describe_histogram as describe_histogram
from paperlib.report.audit_figures import describe_roc as describe_roc
from paperlib.report.audit_figures import roc_figure as roc_figure
from paperlib.report.audit_figures import score_histogram as score_histogram
from paperlib.report.audit_page import audit_report as audit_report
from paperlib.report.bars import progress as progress
from paperlib.report.curve_figures import bounds_figure as bounds_figure
from paperlib.report.curve_figures import guesses_figure as guesses_figure
from paperlib.report.curve_figures import precision_figure as precision_figure
from paperlib.report.figures import show_figure as show_figure
from paperlib.report.printed import paper_notes as paper_notes
from paperlib.report.printed import paper_table as paper_table
from paperlib.report.printed import paper_tables as paper_tables
from paperlib.report.printed import targets as targets
from paperlib.report.records import Record as Record
from paperlib.report.records import record as record
from paperlib.report.records import used_data as used_data
from paperlib.report.tables import format_cell as format_cell
from paperlib.report.tables import show_table as show_table
