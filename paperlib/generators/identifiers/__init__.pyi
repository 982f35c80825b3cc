from .kind import Identifier as Identifier
from .kinds import KINDS as KINDS
from .kinds import PAPER_KINDS as PAPER_KINDS
from .kinds import kinds_table as kinds_table
from .scan import find_identifiers as find_identifiers
from .scan import generate_identifiers as generate_identifiers
