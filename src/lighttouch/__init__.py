"""lighttouch: train models that must obey rules, thousands to millions of them, about as fast as models that obey none."""

from lighttouch import lattice, theory
from lighttouch.constraints import (
    ConvexConstraints,
    LinearConstraints,
    NormConstraints,
    QuadraticConstraints,
    bounds,
    canonical_examples,
    order,
    ordering,
    stack,
)
from lighttouch.domains import Ball, Box, Everywhere
from lighttouch.errors import CheckpointMismatchError, ConstraintError, DataError, InfeasibleConstraintsError, ModelFileError
from lighttouch.lattice import Lattice
from lighttouch.objectives import CustomObjective, EmpiricalRisk, PairwiseRisk, Quadratic, Quantile
from lighttouch.problem import Problem
from lighttouch.projections import Projected, project
from lighttouch.result import History, Result, Status
from lighttouch.solve import Progress, solve
from lighttouch.solvers import (
    AdaGrad,
    ApproxSGD,
    FullTouch,
    InverseSqrt,
    InverseTime,
    LightTouch,
    LocalFrankWolfe,
    MidTouch,
    OnlineFrankWolfe,
    PracticalLightTouch,
    ProjectedSGD,
)

__version__ = "0.1.0"

__all__ = [
    "AdaGrad", "ApproxSGD", "Ball", "Box", "CheckpointMismatchError", "ConstraintError", "ConvexConstraints", "CustomObjective",
    "DataError", "EmpiricalRisk", "Everywhere", "FullTouch", "History", "InfeasibleConstraintsError", "InverseSqrt", "InverseTime",
    "Lattice", "LightTouch", "LinearConstraints", "LocalFrankWolfe", "MidTouch", "ModelFileError", "NormConstraints",
    "OnlineFrankWolfe", "PairwiseRisk", "PracticalLightTouch", "Problem", "Progress", "Projected", "ProjectedSGD", "Quadratic",
    "QuadraticConstraints", "Quantile", "Result", "Status", "bounds", "canonical_examples", "lattice", "order", "ordering",
    "project", "solve", "stack", "theory",
]  # fmt: skip
