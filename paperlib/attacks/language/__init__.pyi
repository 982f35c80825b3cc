from .scores import score_candidates as score_candidates
from .scores import score_texts as score_texts
