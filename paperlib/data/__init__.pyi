from .dataset import Dataset as Dataset
from .files import DataUnavailableError as DataUnavailableError
from .text.corpora import read_documents as read_documents
