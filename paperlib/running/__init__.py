"""Running notebooks: parameters checked first, results kept whole or not at all."""

from paperlib.running.book import book_results as book_results
from paperlib.running.book import current_result as current_result
from paperlib.running.book import measured_results as measured_results
from paperlib.running.book import run_all as run_all
from paperlib.running.book import run_aside as run_aside
from paperlib.running.book import run_into_book as run_into_book
from paperlib.running.book import write_status as write_status
from paperlib.running.execute import Job as Job
from paperlib.running.execute import NotebookError as NotebookError
from paperlib.running.execute import plan as plan
from paperlib.running.parameters import Parameter as Parameter
from paperlib.running.parameters import notebook_parameters as notebook_parameters
from paperlib.running.parameters import parse_assignments as parse_assignments
from paperlib.running.project import Project as Project
from paperlib.running.project import find_project as find_project
