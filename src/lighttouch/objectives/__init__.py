"""The function to minimise."""

from lighttouch.losses import CustomLoss, EpsilonInsensitive, Huber, Quantile, Tweedie
from lighttouch.objectives.custom import CustomObjective
from lighttouch.objectives.empirical import EmpiricalRisk, PairwiseRisk
from lighttouch.objectives.factored import FactoredSquares
from lighttouch.objectives.quadratic import Quadratic
from lighttouch.objectives.sharded import ShardedRisk
from lighttouch.objectives.sums import WeightedSum

__all__ = [
    "CustomLoss",
    "CustomObjective",
    "EmpiricalRisk",
    "EpsilonInsensitive",
    "FactoredSquares",
    "Huber",
    "PairwiseRisk",
    "Quadratic",
    "Quantile",
    "ShardedRisk",
    "Tweedie",
    "WeightedSum",
]
