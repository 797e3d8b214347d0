"""What is given back: a point, and what is known about it.

By a run with its proof, how it got there and what its ending means; by a projection with what makes
it the nearest one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from lighttouch.arrays import Vector

COLUMNS = (
    "iteration",
    "seconds",
    "constraint_checks",
    "objective",
    "violation",
    "loss_batch",
    "push_batch",
    "learn_batch",
)


class Status(enum.Enum):
    """How a run ended; each value reads as advice.

    Parameters
    ----------
    value : str
        The sentence that belongs to a member; `Status(sentence)` is that member.

    Examples
    --------
    >>> str(lt.Status.TIME_LIMIT)
    'the time limit was reached: allow more time if the objective still falls'
    """

    CONVERGED = (
        "converged: the point satisfies every constraint, to rounding, and its objective is proven "
        "to be within the tolerance of the optimum"
    )
    STALLED = (
        "the objective has stopped improving: probably near the optimum, but not proven; allow "
        "a smaller tolerance to go on"
    )
    ITERATION_LIMIT = (
        "the iteration limit was reached: allow more iterations if the objective still falls"
    )
    TIME_LIMIT = "the time limit was reached: allow more time if the objective still falls"
    INTERRUPTED = "interrupted: this is the best result so far; resume from result.state to go on"
    DIVERGED = (
        "an iterate became infinite: try a smaller step size or a smaller penalty; this is the "
        "last finite iterate"
    )
    UNBOUNDED = (
        "the objective falls without end along a direction that the constraints allow, which the "
        "notes name: add a bound, a constraint or a ridge (l2)"
    )
    NOT_PROJECTED = (
        "the projection onto the constraints did not succeed: the violation is in the result"
    )

    def __str__(self) -> str:
        return self.value


class History:
    """What a run recorded: columns of equal length, one entry per record.

    A column is an attribute (`history.objective`) or an item (`history["objective"]`).

    Parameters
    ----------
    rows : list of mappings, default=None
        Records to begin with, each with a number for every column.

    Examples
    --------
    >>> problem = lt.Problem(lt.Quadratic(np.eye(2), [1.0, 1.0]), lt.ordering(2))
    >>> history = lt.solve(problem).history
    >>> int(history.iteration[0]), len(history) == len(history.objective)
    (0, True)
    """

    def __init__(self, rows: list[Mapping[str, float]] | None = None) -> None:
        self._rows: list[Mapping[str, float]] = list(rows or [])

    def append(self, **values: float) -> None:
        self._rows.append(values)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, column: str) -> Vector:
        if column not in COLUMNS:
            raise KeyError(f"history has the columns {', '.join(COLUMNS)}; got {column!r}")
        return np.array([row[column] for row in self._rows])

    def __getattr__(self, column: str) -> Vector:
        if column in COLUMNS:
            return self[column]
        raise AttributeError(column)

    def last(self) -> Mapping[str, float]:
        return self._rows[-1]

    def rows(self) -> list[Mapping[str, float]]:
        """A copy of the records, each with a number for every column."""
        return [dict(row) for row in self._rows]

    def to_frame(self) -> Any:
        """As a pandas DataFrame (needs pandas)."""
        import pandas

        return pandas.DataFrame({column: self[column] for column in COLUMNS})

    def __repr__(self) -> str:
        return f"History({len(self)} records of {', '.join(COLUMNS)})"


@dataclass(frozen=True)
class RunState:
    """A run that can go on: hand it to `solve(..., resume=...)` on the same problem.

    It holds the solver's state, the random generator's, the seconds so far and what they belong to
    (`checkpoints.Belonging`).
    """

    solver_state: Any
    generator: Any
    seconds: float
    belongs_to: Any
    seed: int | None = None


@dataclass(frozen=True)
class Result:
    """The outcome of `solve`: a point, what is true of it, and how it was found.

    Parameters
    ----------
    w : ndarray of shape (d,)
        The answer: the projection of the solver's solution onto the constraints (the solution
        itself with `project=False`).
    w_average, w_last : ndarray of shape (d,)
        The mean of the iterates, and the last one.
    objective, violation : float
        Of `w`, recomputed over all examples and all constraints; the violation is
        max(0, max_j g_j(w)).
    iterations, constraint_checks, gradient_samples : int
        What the run counted.
    seconds : float
        In the solver and the final projection, without recording and compilation.
    status : Status
        How the run ended; only CONVERGED claims optimality.
    history : History
        What was recorded on the way.
    constraint_probabilities : ndarray or None
        The learnt distribution over the constraints.
    state : RunState
        To go on with: `solve(..., resume=result.state)`.
    seed : int or None
        Of the random numbers.
    solver : Solver
        That made it.
    projection : str
        How `w` was projected.
    violation_before_projection, objective_before_projection : float
        Of the solver's solution.
    preparation_seconds : float
        Of compilation.
    notes : tuple of str
        What the solver chose and found, in sentences.
    lower_bound : float
        What no feasible point's objective is below; -inf where nothing is proven.
    gap : float
        How far the objective of `w` is above the optimum at most: the objective minus
        `lower_bound`. Infinite where nothing is proven, and where `w` breaks a constraint by more
        than rounding: its objective may lie below the optimum.
    multipliers : ndarray of shape (m,) or None
        One per constraint (Lagrange), at least 0 for inequalities: how fast the optimum would fall
        if the constraint were relaxed. None where the solver has none.

    Examples
    --------
    >>> result = lt.solve(lt.Problem(lt.Quadratic(np.eye(2), [-3.0, -1.0]), lt.ordering(2)))
    >>> result.w.round(4), result.violation
    (array([2., 2.]), 0.0)
    """

    w: Vector
    w_average: Vector
    w_last: Vector
    objective: float
    violation: float
    iterations: int
    constraint_checks: int
    gradient_samples: int
    seconds: float
    status: Status
    history: History
    constraint_probabilities: Vector | None
    state: Any
    seed: int | None
    solver: Any = None
    projection: str = "none"
    violation_before_projection: float = 0.0
    objective_before_projection: float = float("nan")
    preparation_seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    lower_bound: float = float("-inf")
    gap: float = float("inf")
    multipliers: Vector | None = None

    def __str__(self) -> str:
        lines = [
            (
                f"objective    {self.objective:.8g}   (before the projection "
                f"{self.objective_before_projection:.8g})"
            ),
            (
                f"violation    {self.violation:.3g}   (before the projection "
                f"{self.violation_before_projection:.3g}; {self.projection})"
            ),
            (
                f"iterations   {self.iterations:,}   examples {self.gradient_samples:,}   "
                f"constraint checks {self.constraint_checks:,}"
            ),
            f"seconds      {self.seconds:.3f}",
            f"status       {self.status.name}: {self.status.value}",
            *(f"note         {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Result(objective={self.objective:.8g}, violation={self.violation:.3g}, "
            f"status={self.status.name})"
        )


# -------------------------------------------------------------------------------------------------
# What a projection hands back, and what is known about it.


@dataclass(frozen=True)
class Certificate:
    """What is proven about a point.

    `exact`: it is the nearest point, up to rounding. `certified`: feasible to the method's
    tolerance and nearest to it; `gap` bounds |w - v|^2 / 2 minus its optimum where multipliers are
    known. `not certified`: the best point known, still `excess` outside (NaN: nobody measured).
    """

    kind: Literal["exact", "certified", "not certified"]
    gap: float | None = None
    excess: float = 0.0

    @property
    def holds(self) -> bool:
        return self.kind != "not certified"

    def words(self) -> str:
        """What is appended to the name of the method."""
        if self.holds:
            return ""
        if self.excess == self.excess:
            return (
                f" (not certified: still {self.excess:.1g} outside, so the distance is a lower "
                "bound)"
            )
        return " (not certified)"


EXACT = Certificate("exact", gap=0.0)


def certified(gap: float | None = None) -> Certificate:
    return Certificate("certified", gap)


def not_certified(gap: float | None = None, excess: float = float("nan")) -> Certificate:
    return Certificate("not certified", gap, excess)


@dataclass(frozen=True)
class Nearest:
    """A method's answer, before anything about it is recomputed."""

    w: Vector
    method: str
    certificate: Certificate = EXACT
    multipliers: Callable[[], Vector] | None = None
    warm: Any = None

    @property
    def gap(self) -> float | None:
        return self.certificate.gap


@dataclass(frozen=True)
class Projected:
    """The nearest feasible point and what was verified about it.

    Parameters
    ----------
    w : array of d numbers
        The point.
    distance : float
        How far it is from the point that was projected.
    violation : float
        The largest g_j(w) over all constraints, at least 0, recomputed from w.
    method : str
        How it was found, in words.
    seconds : float
        How long that took.
    gap : float or None
        Bounds |w - v|^2 / 2 minus its optimum where multipliers are known.
    certificate : Certificate
        What is proven about the point, as data.
    warm : object
        May be passed to the next projection onto the same constraints.
    multipliers_of : callable or None
        Makes the `multipliers`, where the method finds them.

    Examples
    --------
    >>> import lighttouch as lt
    >>> found = lt.project([3.0, 1.0, 2.0], lt.ordering(3))
    >>> found.w
    array([2., 2., 2.])
    >>> found.certificate.kind
    'exact'
    """

    w: Vector
    distance: float
    violation: float
    method: str
    seconds: float
    gap: float | None = None
    certificate: Certificate = EXACT
    warm: Any = field(default=None, repr=False)
    multipliers_of: Callable[[], Vector] | None = field(default=None, repr=False)

    @property
    def multipliers(self) -> Vector | None:
        """One multiplier per constraint, where the method finds them: v - w is the sum of
        multipliers times rows (bounds apart).
        """
        return None if self.multipliers_of is None else self.multipliers_of()
