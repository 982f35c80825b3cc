from .registry import load as load
from .registry import load_images as load_images
from .text.sets import text_documents as text_documents
