"""PyTorch: rules for networks. The head is certified, the rest is measured.

`LightTouch` learns which of millions of constraints to look at while a network trains; `Lattice`,
`Calibrator` and `Linear` are layers that obey their rules exactly after `project_()`;
`keep_feasible` projects them during training; `TensorRows` are rows on a card, for
`lt.solve(problem, device="cuda")`. Through a body that is not convex nothing is guaranteed.
"""

try:
    from torch import Tensor as _Tensor  # noqa: F401
except ImportError as problem:
    raise ImportError(
        "lighttouch.torch needs PyTorch, which is not installed: pip install torch"
    ) from problem

from lighttouch.torch.feasible import LayerCertificate, keep_feasible
from lighttouch.torch.layers import Calibrator, Lattice, Linear
from lighttouch.torch.rows import TensorRows
from lighttouch.torch.touch import Audit, LightTouch

__all__ = [
    "Audit",
    "Calibrator",
    "Lattice",
    "LayerCertificate",
    "LightTouch",
    "Linear",
    "TensorRows",
    "keep_feasible",
]
