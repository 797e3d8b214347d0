"""Parameters of a layer that obey their rules exactly, in the precision they are kept in; and how
they are kept so during training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lighttouch.arrays import Floats, Vector
from lighttouch.constraints import LinearConstraints, stack
from lighttouch.constraints.base import RecordConstraints
from lighttouch.errors import ConstraintError, InfeasibleConstraintsError
from lighttouch.projections import project
from lighttouch.torch.costs import COSTS
from lighttouch.validation import positive_int


@dataclass(frozen=True)
class LayerCertificate:
    """What is true of a layer's parameters, recomputed by the core in double precision.

    Parameters
    ----------
    rows : int
        Constraints on the parameters, over all units.
    violation : float
        The largest violation; 0 where every rule holds exactly.
    worst : str
        The row with the largest violation in words; empty where all hold.

    Examples
    --------
    >>> LayerCertificate(rows=3, violation=0.0, worst="").holds
    True
    """

    rows: int
    violation: float
    worst: str = ""

    @property
    def holds(self) -> bool:
        """Whether every rule holds exactly."""
        return self.violation == 0.0

    def __str__(self) -> str:
        if self.holds:
            return f"{self.rows:,} rows hold exactly"
        return f"{self.rows:,} rows, largest violation {self.violation:.3g}: {self.worst}"


class Ruled(nn.Module):
    """A layer whose parameter obeys rules: `project_()` makes it, `certificate()` shows it."""

    rules: RecordConstraints | None

    def _ruled(self) -> Tensor:
        """The parameter that the rules are about; its last numbers vary fastest."""
        raise NotImplementedError

    def _units(self) -> Floats:
        """The parameter in double precision, a row for each set of numbers the rules speak of."""
        assert self.rules is not None
        values = self._ruled().detach().double().cpu().numpy()
        return np.asarray(values.reshape(-1, self.rules.dimension))

    @torch.no_grad()
    def project_(self) -> Any:
        """Move the parameter to the nearest point that obeys the rules, exactly.

        Returns
        -------
        Module
            The layer itself.

        Raises
        ------
        InfeasibleConstraintsError
            Where no parameters obey the rules.
        """
        if self.rules is None or not self.rules.count:
            return self
        kept = self._ruled()
        units = self._units()
        if not np.isfinite(units).all():
            raise ConstraintError(
                "the parameters must be finite to be projected, got NaN or infinity: look for a "
                "learning rate that is too large"
            )
        kind = np.dtype(np.float32 if kept.dtype == torch.float32 else np.float64)
        found = np.stack([exactly(unit, self.rules, kind) for unit in units])
        kept.copy_(torch.from_numpy(found).to(kept).reshape(kept.shape))
        return self

    def certificate(self) -> LayerCertificate:
        """What holds of the parameters as they are.

        Returns
        -------
        LayerCertificate
            The number of rows and the largest violation, recomputed in double precision.
        """
        if self.rules is None or not self.rules.count:
            return LayerCertificate(0, 0.0)
        values = np.stack([self.rules.values(unit) for unit in self._units()])
        worst = int(values.max(axis=0).argmax())
        largest = max(0.0, float(values.max()))
        named = self.rules.describe(worst) if largest > 0.0 else ""
        return LayerCertificate(int(values.size), largest, named)


def joined(rules: Any, dimension: int, name: str) -> RecordConstraints | None:
    """One family out of one or several, about so many parameters; None where there is none."""
    parts = [] if rules is None else list(rules) if isinstance(rules, list | tuple) else [rules]
    for part in parts:
        if not isinstance(part, RecordConstraints):
            raise ConstraintError(
                "rules must be constraints such as lt.lattice.increasing(sizes), got "
                f"{type(part).__name__}"
            )
        if part.dimension != dimension:
            raise ConstraintError(
                f"rules of this {name} must speak of {dimension} parameters, got "
                f"{part.dimension}: {part!r}"
            )
    return stack(*parts) if parts else None


def exactly(v: Vector, rules: RecordConstraints, kind: np.dtype[Any]) -> Vector:
    """The nearest point whose numbers, rounded to `kind`, break no rule.

    Orders survive rounding. Other rows are asked for with room for it, a little more each time.
    """
    rounded = v.astype(kind).astype(np.float64)
    if rules.violation(rounded) == 0.0:
        return rounded
    best = project(v, rules).w
    rounded = best.astype(kind).astype(np.float64)
    left = rules.violation(rounded)
    rows = rules.linear_rows() if left > 0.0 else None
    if rows is None:
        return rounded
    A, b = rows
    unit = float(np.finfo(kind).eps)
    room = np.asarray(abs(A) @ np.abs(best)).ravel() + np.abs(b)
    room = np.maximum(room, float(np.abs(best).max(initial=0.0)))
    for times in COSTS.rounding_room:
        try:
            closer = project(best, LinearConstraints(A, b - times * unit * room)).w
        except InfeasibleConstraintsError:
            break
        closer = closer.astype(kind).astype(np.float64)
        if rules.violation(closer) < left:
            rounded, left = closer, rules.violation(closer)
        if left == 0.0:
            break
    return rounded


# -------------------------------------------------------------------------------------------------
# Projections during training, through the optimizer's own hook.


def keep_feasible(optimizer: Any, module: nn.Module, every: int = 100) -> Any:
    """Project every layer with rules after each `every` steps of the optimizer.

    It uses the optimizer's post-step hook, so that plain loops, Lightning and Accelerate work
    unchanged. The optimizer's own state is left alone. Project once more at the end.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Whose steps are counted.
    module : Module
        All layers with `project_()` in it are projected, itself included.
    every : int, default=100
        Steps between two projections.

    Returns
    -------
    RemovableHandle
        `handle.remove()` ends it.

    Raises
    ------
    ValueError
        Where no layer of the module has rules.

    Examples
    --------
    >>> import torch
    >>> from lighttouch.torch import Lattice, keep_feasible
    >>> layer = Lattice([2], increasing=True)
    >>> optimizer = torch.optim.SGD(layer.parameters(), lr=10.0)
    >>> handle = keep_feasible(optimizer, layer, every=1)
    >>> layer(torch.ones(1, 1)).sum().backward()  # pushes the upper vertex down
    >>> optimizer.step()
    >>> layer.certificate().holds
    True
    >>> handle.remove()
    """
    positive_int(every, "every")
    layers = [each for each in module.modules() if isinstance(each, Ruled) and each.rules]
    if not layers:
        raise ValueError(
            "module must hold a layer with rules (Lattice, Calibrator or Linear of "
            f"lighttouch.torch), got {type(module).__name__} without any"
        )
    done = 0

    def hook(*_: Any) -> None:
        nonlocal done
        done += 1
        if done % every == 0:
            for layer in layers:
                layer.project_()

    return optimizer.register_step_post_hook(hook)
