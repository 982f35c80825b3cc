"""Files: atomic writes, the cache, result files, and reading scores."""

from paperlib.io.cache import Cache as Cache
from paperlib.io.cache import typed as typed
from paperlib.io.downloads import DownloadError as DownloadError
from paperlib.io.downloads import fetch as fetch
from paperlib.io.files import OutputError as OutputError
from paperlib.io.files import atomic_file as atomic_file
from paperlib.io.files import canonical_json as canonical_json
from paperlib.io.files import config_hash as config_hash
from paperlib.io.files import file_sha256 as file_sha256
from paperlib.io.files import write_bytes as write_bytes
from paperlib.io.files import write_json as write_json
from paperlib.io.files import write_text as write_text
from paperlib.io.folders import data_folder as data_folder
from paperlib.io.folders import user_cache_folder as user_cache_folder
from paperlib.io.results import RunResult as RunResult
from paperlib.io.results import read_result as read_result
from paperlib.io.results import write_result as write_result
from paperlib.io.schedulers import SCHEDULER_VARIABLE as SCHEDULER_VARIABLE
from paperlib.io.scores import LoadedScores as LoadedScores
from paperlib.io.scores import read_scores as read_scores
from paperlib.io.sources import code_tag as code_tag
from paperlib.io.sources import imported_names as imported_names
from paperlib.io.sources import source_files as source_files
from paperlib.io.sweep import SweepError as SweepError
from paperlib.io.sweep import run_sweep as run_sweep
