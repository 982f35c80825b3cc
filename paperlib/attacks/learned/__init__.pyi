from .interface import Attack as Attack
from .interface import AttackInputs as AttackInputs
from .interface import BoostedTrees as BoostedTrees
from .interface import FittedAttack as FittedAttack
from .interface import Labelled as Labelled
from .interface import LossScore as LossScore
from .interface import fit_best as fit_best
