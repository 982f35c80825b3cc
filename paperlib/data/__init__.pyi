from .dataset import Dataset as Dataset
from .files import DataUnavailableError as DataUnavailableError
from .registry import load as load
from .registry import load_images as load_images
from .text.corpora import read_documents as read_documents
from .text.sets import text_documents as text_documents
