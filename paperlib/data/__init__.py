"""Data sets as arrays, with source, licence and checksum; who is trained on, by fair coins."""

from paperlib.data.dataset import Dataset as Dataset
from paperlib.data.dataset import TableEncoder as TableEncoder
from paperlib.data.dataset import membership_split as membership_split
from paperlib.data.files import DataUnavailableError as DataUnavailableError
from paperlib.data.images.pixels import ImageSet as ImageSet
from paperlib.data.registry import IMAGE_SETS as IMAGE_SETS
from paperlib.data.registry import REGISTRY as REGISTRY
from paperlib.data.registry import Source as Source
from paperlib.data.registry import load as load
from paperlib.data.registry import load_images as load_images
from paperlib.data.text.corpora import Document as Document
from paperlib.data.text.corpora import corpus_files as corpus_files
from paperlib.data.text.corpora import nid_corpus as nid_corpus
from paperlib.data.text.corpora import pile_test_subsets as pile_test_subsets
from paperlib.data.text.corpora import read_documents as read_documents
from paperlib.data.text.sets import TEXTS as TEXTS
from paperlib.data.text.sets import text_documents as text_documents
