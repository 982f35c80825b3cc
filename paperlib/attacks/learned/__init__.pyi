from .interface import Attack as Attack
from .interface import BoostedTrees as BoostedTrees
from .interface import fit_best as fit_best
