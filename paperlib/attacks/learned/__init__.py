"""Attacks that are trained: what tells members from generated points, with and without the target's help."""

from paperlib.attacks.learned.interface import Attack as Attack
from paperlib.attacks.learned.interface import AttackInputs as AttackInputs
from paperlib.attacks.learned.interface import BoostedTrees as BoostedTrees
from paperlib.attacks.learned.interface import FittedAttack as FittedAttack
from paperlib.attacks.learned.interface import Labelled as Labelled
from paperlib.attacks.learned.interface import LossScore as LossScore
from paperlib.attacks.learned.interface import fit_best as fit_best
