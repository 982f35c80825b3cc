"""Natural identifiers: find them, draw others from the same source, and drop look-alikes."""

from paperlib.generators.identifiers.kind import Form as Form
from paperlib.generators.identifiers.kind import Identifier as Identifier
from paperlib.generators.identifiers.kind import Kind as Kind
from paperlib.generators.identifiers.kinds import KINDS as KINDS
from paperlib.generators.identifiers.kinds import PAPER_KINDS as PAPER_KINDS
from paperlib.generators.identifiers.kinds import checked_kinds as checked_kinds
from paperlib.generators.identifiers.kinds import kinds_table as kinds_table
from paperlib.generators.identifiers.scan import Candidate as Candidate
from paperlib.generators.identifiers.scan import Scanner as Scanner
from paperlib.generators.identifiers.scan import StreamScanner as StreamScanner
from paperlib.generators.identifiers.scan import as_identifier as as_identifier
from paperlib.generators.identifiers.scan import default_engine as default_engine
from paperlib.generators.identifiers.scan import find_identifiers as find_identifiers
from paperlib.generators.identifiers.scan import generate_identifiers as generate_identifiers
