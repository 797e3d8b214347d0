"""solve(problem, device=...): the core's interior point with a working set, its rows and matrices
on a card.

Sampling does not pay on a card where rows are cheap: looking at ten million of them takes less time
than starting a kernel per sampled one. `LightTouch` is for constraints that cost a forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from lighttouch.arrays import Vector
from lighttouch.constraints import LinearConstraints
from lighttouch.domains import Ball, Simplex
from lighttouch.driving import Answer, unprojected
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.interfaces import AnySolver
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.path import dual_bounds
from lighttouch.interior.program import Program, bound_rows, with_only, with_rows
from lighttouch.interior.statement import program_of
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.result import Status
from lighttouch.running import OutOfTimeError, Stopwatch, prepared
from lighttouch.solve import RAN_AWAY, _Run
from lighttouch.solvers.interior import InteriorPoint
from lighttouch.solvers.interior_rounds import InteriorState, RoundModel
from lighttouch.solvers.scales import least_bends
from lighttouch.torch.balance import moves_on, nobody
from lighttouch.torch.costs import COSTS
from lighttouch.torch.matrices import DeviceMatrix, DeviceSparse, free_memory, in_gib
from lighttouch.torch.systems import DeviceArithmetic, program_on_device
from lighttouch.torch.working_rows import DeviceRows


@dataclass(frozen=True, eq=False)
class DeviceModel(RoundModel):
    """What does not change from round to round; it remembers what gave the best bounds."""

    def renew_bound(
        self,
        program: Program,
        state: InteriorState,
        x: Vector,
        s: Vector,
        worth: float = -math.inf,
    ) -> None:
        """The likely bound, on the device; `prove` follows at the end."""
        bounds = (self.lower, self.upper, self.bend)
        proven, likely = dual_bounds(program, x, s, *bounds, balance=nobody)
        state.proven, state.bound = max(state.proven, proven), max(state.bound, likely)
        best: list[Dual] = prepared(self, "best bounds", list)
        best.append(Dual(likely, program, x, s))
        best.sort(key=lambda each: -each.likely)
        del best[COSTS.kept_bounds :]

    @property
    def equal(self) -> bool:
        """Whether there are equalities, which no double satisfies exactly."""
        return bool(self.rows.equalities().size)

    def prove(self, enough: float) -> float:
        """The best bound again, by the core: every number on this side, in double precision; only
        the least eigenvalue is bounded on the device. The search ends with a bound that is enough.
        """
        best: list[Dual] = prepared(self, "best bounds", list)
        bounds = (self.lower, self.upper, self.bend)
        device = self.program.P.tensor.device
        most, by = -math.inf, moves_on(device)
        for here in (each.here() for each in best):
            with np.errstate(all="ignore"):
                found = dual_bounds(here.program, here.x, here.s, *bounds, balance=by)[0]
            most = max(most, found)
            if most >= enough:
                break
        return most


@dataclass(frozen=True, eq=False)
class Dual:
    """A program, a point and slopes, and the bound that they give."""

    likely: float
    program: Program
    x: Vector
    s: Vector

    def here(self) -> Dual:
        """Without the device, and without inequalities of slope 0."""
        program, s = self.program, self.s
        idle = (program.least == 0.0) & (s <= 0.0) & (program.roundness == 0.0)
        kept = ~idle | program.is_smooth
        blocks = []
        for first, block in zip(program.starts, program.blocks, strict=False):
            places = np.flatnonzero(kept[first : first + block.shape[0]])
            on_device = isinstance(block, DeviceMatrix | DeviceSparse)
            blocks.append(block.host_rows(places) if on_device else block[places])
        here = with_only(replace(program, P=program.P.host()), kept, blocks)
        return Dual(self.likely, here, self.x, s[kept])


@dataclass(frozen=True)
class DeviceInteriorPoint(InteriorPoint):
    """`InteriorPoint` with its rows and matrices on a device.

    Parameters
    ----------
    tolerance : float, default=1e-6
        Relative gap at which a point may be called optimal.
    near : bool, default=False
        Whether the start is near the optimum, so that the path begins there.
    device : str, default="cuda"
        Where: "cuda", "cuda:1" or "cpu".

    Examples
    --------
    >>> import lighttouch as lt
    >>> problem = lt.Problem(lt.Quadratic(np.eye(2), [-3.0, -1.0]), lt.ordering(2))
    >>> lt.solve(problem, device="cpu").w.round(4)
    array([2., 2.])
    """

    device: str = "cuda"

    def objection_to(self, problem: Problem) -> str | None:
        found = super().objection_to(problem)
        if found:
            return found
        if isinstance(problem.domain, Ball) or not all(
            part.is_linear for part in problem.constraints.parts
        ):
            return "on a device all constraints must be linear rows, and the domain no ball"
        return self._too_large(problem)

    def _too_large(self, problem: Problem) -> str | None:
        """The working set is planned before anything is allocated."""
        d = problem.dimension
        rows = min(problem.constraints.count, int(COSTS.planned_rows * d))
        needed = 8.0 * d * (COSTS.planned_squares * d + COSTS.planned_copies * rows)
        free = free_memory(torch.device(self.device))
        if needed <= free:
            return None
        return (
            f"{d:,} parameters with a working set of {rows:,} rows need about {in_gib(needed)} on "
            f"{self.device}, where {in_gib(free)} are free; leave device=None out"
        )

    def model(self, problem: Problem) -> DeviceModel:
        device = torch.device(self.device)
        return prepared(problem, ("interior point", device), lambda: _new_model(problem, device))

    def uses_working_set(self, problem: Problem) -> bool:
        rows = self.model(problem).rows
        assert isinstance(rows, DeviceRows)
        return not rows.few

    def init(self, problem: Problem, start: Vector) -> InteriorState:
        with self._memory():
            return super().init(problem, start)

    @contextmanager
    def _memory(self) -> Iterator[None]:
        """One clear error where the card is full."""
        try:
            yield
        except torch.OutOfMemoryError as error:
            free = in_gib(free_memory(torch.device(self.device)))
            raise MemoryError(
                f"{self.device} ran out of memory: {free} are free now; rows in single precision "
                "(TensorRows) take half, and device=None needs no card "
                f"({str(error).split('. ')[0]})"
            ) from error

    def _step(self, problem: Problem, state: InteriorState) -> None:
        with self._memory():
            super()._step(problem, state)
        if state.ended:
            enough = state.best_objective - self.tolerance * state.scale
            state.proven = max(state.proven, self.model(problem).prove(enough))

    def _grow(self, *arguments: Any) -> None:
        """As the core, but every round aims at a smaller gap: on a device a step costs less than
        rows that were found too early.
        """
        state: InteriorState = arguments[3]
        before = state.goal
        super()._grow(*arguments)
        if state.goal == before:
            state.goal = max(state.goal * INTERIOR.goal_shrink, state.last_goal)

    def notes(self, state: InteriorState) -> list[str]:
        return [*super().notes(state), f"matrices and rows on {self.device}"]


def _new_model(problem: Problem, device: torch.device) -> DeviceModel:
    lower, upper = problem.domain.bounds(problem.dimension)
    lower = np.where(lower < -INTERIOR.no_bound, -np.inf, lower)
    upper = np.where(upper > INTERIOR.no_bound, np.inf, upper)
    program = program_on_device(program_of(problem.objective, fold=False), device)
    fixed = lower == upper
    matrix, right = bound_rows(np.where(fixed, -np.inf, lower), upper)
    program = with_rows(program, (matrix,), right, fixed[matrix.indices])
    if isinstance(problem.domain, Simplex):
        ones = torch.ones(1, problem.dimension, dtype=torch.float64, device=device)
        total = np.array([problem.domain.total])
        program = with_rows(program, (DeviceMatrix(ones),), total, np.ones(1, dtype=bool))
    rows = DeviceRows(problem.constraints.parts, problem.dimension, device)
    bend = least_bends(problem.objective, fold=False)
    arithmetic = DeviceArithmetic(device)
    return DeviceModel(program, rows, (), lower, upper, bend, arithmetic)


class DeviceRun(_Run):
    """A run whose solution is exactly feasible as it is, or is projected onto its working set."""

    def answer(self, status: Status) -> Answer:
        if not self.projects or status in RAN_AWAY:
            return super().answer(status)
        assert isinstance(self.solver, DeviceInteriorPoint)
        self.recorder.close(self.state, self.seconds, finite=True)
        clock, problem = Stopwatch(), self.problem
        point = np.array(problem.domain.project(self.solver.solution(self.state)))
        if problem.constraints.violation(point) == 0.0 or self.solver.model(problem).equal:
            return unprojected(problem, point, "feasible as it was found")
        nearest, rounds = self._projected(point), "projected onto the rows that it broke"
        return replace(unprojected(problem, nearest, rounds), seconds=clock.seconds)

    def _projected(self, point: Vector) -> Vector:
        """The nearest point to satisfy the rows that this one or a later one broke, by the core."""
        assert isinstance(self.solver, DeviceInteriorPoint)
        rows, d = self.solver.model(self.problem).rows, self.problem.dimension
        known, nearest = np.zeros(0, dtype=np.int64), point
        limit = COSTS.projection_seconds
        for _ in range(COSTS.projection_rounds):
            known = np.union1d(known, rows.broken(nearest))
            taken = rows.take(known)
            A = np.vstack([np.zeros((0, d)), *(block.host() for block in taken.blocks)])
            room = COSTS.margin * (np.abs(A) @ np.abs(point) + np.abs(taken.right))
            family = LinearConstraints(A, taken.right - room)
            try:
                nearest = project(point, family, self.problem.domain, time_limit=limit).w
            except (RuntimeError, OutOfTimeError, InfeasibleConstraintsError):
                return point
            if self.problem.constraints.violation(nearest) == 0.0:
                break
        return nearest


def solver_for(solver: AnySolver | None, device: Any) -> DeviceInteriorPoint:
    """The solver of a device for what was asked for."""
    place = _checked_device(device)
    if solver is None:
        return DeviceInteriorPoint(device=place)
    if type(solver) is not InteriorPoint:
        raise ValueError(
            "with device= the solver must be InteriorPoint or None, got "
            f"{type(solver).__name__}; leave device out"
        )
    return DeviceInteriorPoint(solver.tolerance, solver.near, place)


def _checked_device(device: Any) -> str:
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device must be 'cuda', 'cuda:1' or 'cpu', got {device!r}") from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r} needs a CUDA card, and PyTorch {torch.__version__} sees none; "
            "leave device out or use 'cpu'"
        )
    return str(found)
