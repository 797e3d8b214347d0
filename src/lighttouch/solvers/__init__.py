"""The paper's algorithms, the rivals it compares with, and the parts of the default solver."""

from lighttouch.solvers.accelerated import Accelerated
from lighttouch.solvers.approx_sgd import ApproxSGD
from lighttouch.solvers.automatic import Automatic
from lighttouch.solvers.cutting_planes import CuttingPlanes
from lighttouch.solvers.frank_wolfe import OnlineFrankWolfe
from lighttouch.solvers.full_touch import FullTouch
from lighttouch.solvers.interior import InteriorPoint
from lighttouch.solvers.light_touch import LightTouch, PracticalLightTouch
from lighttouch.solvers.local_frank_wolfe import LocalFrankWolfe
from lighttouch.solvers.local_touch import LocalTouch
from lighttouch.solvers.mid_touch import MidTouch
from lighttouch.solvers.projected_sgd import ProjectedSGD
from lighttouch.solvers.quadratic_steps import QuadraticSteps
from lighttouch.solvers.sampled import SampledAdaGrad
from lighttouch.solvers.splitting import AlternatingDirections
from lighttouch.solvers.steps import AdaGrad, InverseSqrt, InverseTime

__all__ = [
    "Accelerated",
    "AdaGrad",
    "AlternatingDirections",
    "ApproxSGD",
    "Automatic",
    "CuttingPlanes",
    "FullTouch",
    "InteriorPoint",
    "InverseSqrt",
    "InverseTime",
    "LightTouch",
    "LocalFrankWolfe",
    "LocalTouch",
    "MidTouch",
    "OnlineFrankWolfe",
    "PracticalLightTouch",
    "ProjectedSGD",
    "QuadraticSteps",
    "SampledAdaGrad",
]
