"""The function to minimise."""

from lighttouch.losses import Quantile
from lighttouch.objectives.custom import CustomObjective
from lighttouch.objectives.empirical import EmpiricalRisk, PairwiseRisk
from lighttouch.objectives.quadratic import Quadratic

__all__ = ["CustomObjective", "EmpiricalRisk", "PairwiseRisk", "Quadratic", "Quantile"]
