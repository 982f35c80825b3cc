from .cache import Cache as Cache
from .files import data_folder as data_folder
from .files import read_result as read_result
from .files import user_cache_folder as user_cache_folder
from .records import open_records as open_records
from .scores import read_scores as read_scores
