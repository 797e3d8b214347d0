"""lighttouch: train models that must obey rules, thousands to millions of them, about as fast as
models that obey none.
"""

import importlib
import logging
from typing import TYPE_CHECKING, Any

from lighttouch import lattice, theory
from lighttouch.checking import CheckReport, Finding, check
from lighttouch.constraints import (
    ConvexConstraints,
    GeneratedRows,
    LinearConstraints,
    LinearEqualities,
    NormConstraints,
    QuadraticConstraints,
    bounds,
    canonical_examples,
    order,
    ordering,
    stack,
)
from lighttouch.domains import Ball, Box, Everywhere, Simplex
from lighttouch.errors import (
    CheckpointMismatchError,
    ConstraintError,
    DataError,
    EngineError,
    InfeasibleConstraintsError,
    ModelFileError,
)
from lighttouch.lattice import Lattice
from lighttouch.objectives import (
    CustomLoss,
    CustomObjective,
    EmpiricalRisk,
    EpsilonInsensitive,
    Huber,
    PairwiseRisk,
    Quadratic,
    Quantile,
    ShardedRisk,
    Tweedie,
    WeightedSum,
)
from lighttouch.problem import Problem
from lighttouch.projections import Projected, project
from lighttouch.result import History, Result, Status
from lighttouch.solve import Progress, solve
from lighttouch.solvers import (
    Accelerated,
    AdaGrad,
    AlternatingDirections,
    ApproxSGD,
    Automatic,
    CuttingPlanes,
    FullTouch,
    InteriorPoint,
    InverseSqrt,
    InverseTime,
    LightTouch,
    LocalFrankWolfe,
    LocalTouch,
    MidTouch,
    OnlineFrankWolfe,
    PracticalLightTouch,
    ProjectedSGD,
    QuadraticSteps,
    SampledAdaGrad,
)

if TYPE_CHECKING:
    from lighttouch.engines import Processes, Ray
    from lighttouch.estimators import (
        ConstrainedLinearClassifier,
        ConstrainedLinearRegressor,
        ConvexRegressor,
        LatticeClassifier,
        LatticeRanker,
        LatticeRegressor,
        MonotoneRegressor,
        load,
    )
    from lighttouch.estimators.rules.shapes import (
        CategoryOrder,
        Concave,
        Convex,
        Dominates,
        EdgeworthTrust,
        JointlyMonotonic,
        RangeDominates,
        SlopeBound,
        Submodular,
        Supermodular,
        TrapezoidTrust,
        Unimodal,
    )

__version__ = "0.2.0"

_LAZY = {
    "ConstrainedLinearClassifier": "lighttouch.estimators",
    "ConstrainedLinearRegressor": "lighttouch.estimators",
    "ConvexRegressor": "lighttouch.estimators",
    "LatticeClassifier": "lighttouch.estimators",
    "LatticeRanker": "lighttouch.estimators",
    "LatticeRegressor": "lighttouch.estimators",
    "MonotoneRegressor": "lighttouch.estimators",
    "Processes": "lighttouch.engines",
    "Ray": "lighttouch.engines",
    "load": "lighttouch.estimators",
    "CategoryOrder": "lighttouch.estimators.rules.shapes",
    "Concave": "lighttouch.estimators.rules.shapes",
    "Convex": "lighttouch.estimators.rules.shapes",
    "Dominates": "lighttouch.estimators.rules.shapes",
    "EdgeworthTrust": "lighttouch.estimators.rules.shapes",
    "JointlyMonotonic": "lighttouch.estimators.rules.shapes",
    "RangeDominates": "lighttouch.estimators.rules.shapes",
    "SlopeBound": "lighttouch.estimators.rules.shapes",
    "Submodular": "lighttouch.estimators.rules.shapes",
    "Supermodular": "lighttouch.estimators.rules.shapes",
    "TrapezoidTrust": "lighttouch.estimators.rules.shapes",
    "Unimodal": "lighttouch.estimators.rules.shapes",
}


logging.getLogger("lighttouch").addHandler(logging.NullHandler())  # programs choose their own


def __getattr__(name: str) -> Any:
    """The estimators, imported when first asked for: scikit-learn takes most of a second."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'lighttouch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))


__all__ = [
    "Accelerated",
    "AdaGrad",
    "AlternatingDirections",
    "ApproxSGD",
    "Automatic",
    "Ball",
    "Box",
    "CategoryOrder",
    "CheckReport",
    "CheckpointMismatchError",
    "Concave",
    "ConstrainedLinearClassifier",
    "ConstrainedLinearRegressor",
    "ConstraintError",
    "Convex",
    "ConvexConstraints",
    "ConvexRegressor",
    "CustomLoss",
    "CustomObjective",
    "CuttingPlanes",
    "DataError",
    "Dominates",
    "EdgeworthTrust",
    "EmpiricalRisk",
    "EngineError",
    "EpsilonInsensitive",
    "Everywhere",
    "Finding",
    "FullTouch",
    "GeneratedRows",
    "History",
    "Huber",
    "InfeasibleConstraintsError",
    "InteriorPoint",
    "InverseSqrt",
    "InverseTime",
    "JointlyMonotonic",
    "Lattice",
    "LatticeClassifier",
    "LatticeRanker",
    "LatticeRegressor",
    "LightTouch",
    "LinearConstraints",
    "LinearEqualities",
    "LocalFrankWolfe",
    "LocalTouch",
    "MidTouch",
    "ModelFileError",
    "MonotoneRegressor",
    "NormConstraints",
    "OnlineFrankWolfe",
    "PairwiseRisk",
    "PracticalLightTouch",
    "Problem",
    "Processes",
    "Progress",
    "Projected",
    "ProjectedSGD",
    "Quadratic",
    "QuadraticConstraints",
    "QuadraticSteps",
    "Quantile",
    "RangeDominates",
    "Ray",
    "Result",
    "SampledAdaGrad",
    "ShardedRisk",
    "Simplex",
    "SlopeBound",
    "Status",
    "Submodular",
    "Supermodular",
    "TrapezoidTrust",
    "Tweedie",
    "Unimodal",
    "WeightedSum",
    "bounds",
    "canonical_examples",
    "check",
    "lattice",
    "load",
    "order",
    "ordering",
    "project",
    "solve",
    "stack",
    "theory",
]
