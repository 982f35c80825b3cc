from .neighbours import causal_neighbours as causal_neighbours
from .neighbours import masked_neighbours as masked_neighbours
from .neighbours import random_neighbours as random_neighbours
from .scores import ATTACKS as ATTACKS
from .scores import score_candidates as score_candidates
from .scores import score_texts as score_texts
