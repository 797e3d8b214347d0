"""The paper's algorithms and the rivals it compares with."""

from lighttouch.solvers.full_touch import FullTouch
from lighttouch.solvers.light_touch import LightTouch, PracticalLightTouch
from lighttouch.solvers.mid_touch import MidTouch
from lighttouch.solvers.steps import AdaGrad, InverseSqrt, InverseTime

__all__ = ["AdaGrad", "FullTouch", "InverseSqrt", "InverseTime", "LightTouch", "MidTouch", "PracticalLightTouch"]
