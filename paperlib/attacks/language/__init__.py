"""Membership scores of texts under causal language models."""

from paperlib.attacks.language.neighbours import causal_neighbours as causal_neighbours
from paperlib.attacks.language.neighbours import masked_neighbours as masked_neighbours
from paperlib.attacks.language.neighbours import random_neighbours as random_neighbours
from paperlib.attacks.language.scores import ATTACKS as ATTACKS
from paperlib.attacks.language.scores import score_candidates as score_candidates
from paperlib.attacks.language.scores import score_texts as score_texts
