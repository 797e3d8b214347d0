"""What a case is: a problem for `lt.solve`, the same for CVXPY, and both judged by plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import lighttouch as lt

Reference = Callable[[], tuple[float, str]]  # objective as `evaluate` counts it, and its status


@dataclass(frozen=True)
class Case:
    """A problem with an objective and a violation that do not come from `lighttouch`."""

    name: str
    problem: lt.Problem
    evaluate: Callable[[np.ndarray], float]
    violation: Callable[[np.ndarray], float]
    reference: Reference | None = None
    offset: float = 0.0  # of `evaluate` over the scaled objective of `problem`
    scale: float = 1.0  # evaluate(w) = scale * problem.objective.value(w) + offset
    tolerance: float = 1e-3
    time_limit: float = 60.0
    known: float | None = None  # the optimum, where it is known without a reference
    same_as: str = ""  # cases of one such name share one run of the reference


class NotYet(Exception):
    """The case needs a public name that this version does not have."""


def needs(*names: str) -> None:
    missing = [name for name in names if not hasattr(lt, name)]
    if missing:
        raise NotYet(f"needs lt.{', lt.'.join(missing)}")


BUILDERS: dict[str, Callable[[], list[Case]]] = {}


def case(function: Callable[[], Case | list[Case]]) -> Callable[[], list[Case]]:
    """Register a builder under its name."""

    def build() -> list[Case]:
        built = function()
        return built if isinstance(built, list) else [built]

    BUILDERS[function.__name__] = build
    return build


def excess(A: Any, b: np.ndarray) -> Callable[[np.ndarray], float]:
    """The violation of A w <= b."""
    return lambda w: float(max(0.0, (A @ w - b).max(initial=0.0)))


def largest(*parts: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], float]:
    return lambda w: max(part(w) for part in parts)


def box_excess(lower: Any, upper: Any) -> Callable[[np.ndarray], float]:
    return lambda w: float(max(0.0, (lower - w).max(), (w - upper).max()))


def clarabel(problem: Any) -> str:
    """Solve a CVXPY problem with Clarabel at its default accuracy; its status."""
    problem.solve(solver="CLARABEL")
    return str(problem.status)


def equalities_and_rows(
    A: sp.spmatrix, lower: np.ndarray, upper: np.ndarray
) -> tuple[Any, tuple[Any, np.ndarray], tuple[Any, np.ndarray]]:
    """lower <= A w <= upper as constraints; an equality is two rows until there are equalities.

    Returns the constraints, the equalities and the inequalities.
    """
    same = lower == upper
    above, below = (upper < 1e19) & ~same, (lower > -1e19) & ~same
    rows = sp.vstack([A[above], -A[below]], format="csr")
    right = np.concatenate([upper[above], -lower[below]])
    equal, sides = sp.csr_matrix(A[same]), upper[same]
    if not hasattr(lt, "LinearEqualities"):
        both = sp.vstack([rows, equal, -equal], format="csr")
        joined = lt.LinearConstraints(both, np.concatenate([right, sides, -sides]))
        return joined, (equal, sides), (rows, right)
    parts: list[Any] = [lt.LinearConstraints(rows, right)] if rows.shape[0] else []
    parts += [lt.LinearEqualities(equal, sides)] if equal.shape[0] else []
    joined = lt.stack(*parts) if len(parts) > 1 else parts[0] if parts else None
    return joined, (equal, sides), (rows, right)
