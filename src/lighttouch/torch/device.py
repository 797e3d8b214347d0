"""solve(problem, device=...): the core's interior point with a working set, its rows and matrices
on a card.

Sampling does not pay on a card where rows are cheap: looking at ten million of them takes less time
than starting a kernel per sampled one. `LightTouch` is for constraints that cost a forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from lighttouch.arrays import Vector
from lighttouch.checking import look_at_custom_pieces
from lighttouch.domains import Ball, Simplex
from lighttouch.driving import Answer, Budget, Recorder, unprojected
from lighttouch.interfaces import AnySolver
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.path import dual_value
from lighttouch.interior.program import Program, bound_rows, with_rows
from lighttouch.interior.statement import least_bends, program_of
from lighttouch.problem import Problem
from lighttouch.result import Result, RunState, Status
from lighttouch.running import Interrupts, prepared
from lighttouch.solve import _Run
from lighttouch.solvers.interior import InteriorPoint, InteriorState, Model
from lighttouch.torch.costs import COSTS
from lighttouch.torch.matrices import DeviceMatrix, DeviceSparse
from lighttouch.torch.memory import free_memory, in_gib
from lighttouch.torch.systems import DeviceArithmetic, program_on_device
from lighttouch.torch.working_rows import DeviceRows


@dataclass(frozen=True, eq=False)
class DeviceModel(Model):
    """What does not change from round to round; it remembers what proved the best bound."""

    def bound(self, program: Program, x: Vector, s: Vector) -> float:
        value = super().bound(program, x, s)
        best: dict[str, Any] = prepared(self, "best bound", dict)
        if not best or value > best["value"]:
            best.update(value=value, program=program, x=x, s=s)
        return value

    def recomputed(self) -> float:
        """The best bound again, by the core alone: every number on this side, in double."""
        best: dict[str, Any] = prepared(self, "best bound", dict)
        program, x, s = best["program"], best["x"], best["s"]
        idle = (program.least == 0.0) & (s <= 0.0) & (program.roundness == 0.0)
        kept = ~idle | program.is_smooth
        blocks = []
        for first, block in zip(program.starts, program.blocks, strict=False):
            places = np.flatnonzero(kept[first : first + block.shape[0]])
            on_device = isinstance(block, DeviceMatrix | DeviceSparse)
            blocks.append(block.host_rows(places) if on_device else block[places])
        before = np.concatenate([[0], np.cumsum(kept)])
        smooth = tuple(
            replace(each, start=int(before[each.start]), stop=int(before[each.stop]))
            for each in program.smooth
        )
        here = replace(
            program,
            P=program.P.host(),
            blocks=tuple(blocks),
            centre=program.centre[kept],
            least=program.least[kept],
            most=program.most[kept],
            roundness=program.roundness[kept],
            smooth=smooth,
        )
        with np.errstate(all="ignore"):
            return dual_value(here, x, s[kept], self.lower, self.upper, self.bend)


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

    def _model(self, problem: Problem) -> Model:
        device = torch.device(self.device)
        return prepared(problem, ("interior point", device), lambda: _new_model(problem, device))

    def _uses_working_set(self, problem: Problem) -> bool:
        rows = self._model(problem).rows
        assert isinstance(rows, DeviceRows)
        return not rows.few

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
    bend, arithmetic = least_bends(problem.objective), DeviceArithmetic(device)
    return DeviceModel(program, rows, (), lower, upper, bend, arithmetic)


class DeviceRun(_Run):
    """A run whose solution is exactly feasible as it is, or is projected onto its working set."""

    def answer(self, status: Status, project: bool) -> Answer:
        assert isinstance(self.solver, DeviceInteriorPoint)
        model = self.solver._model(self.problem)
        assert isinstance(model, DeviceModel)
        state: InteriorState = self.state
        if np.isfinite(state.bound):
            state.bound = model.recomputed()
        point = self.problem.domain.project(self.solver.solution(state))
        if not project or status in (Status.DIVERGED, Status.UNBOUNDED):
            return super().answer(status, project)
        if self.problem.constraints.violation(point) > 0.0 and not model.rows.equalities().size:
            return super().answer(status, project)
        self.recorder.close(state, self.seconds, True)
        return unprojected(self.problem, point, "feasible as it was found")


def solve_on(
    problem: Problem,
    solver: AnySolver | None,
    device: Any,
    *,
    limits: tuple[int | None, float | None],
    start: Any,
    seed: int | None,
    recorder: tuple[int | None, Any, bool],
    resume: RunState | None,
    project: bool,
) -> Result:
    """The core's `solve` for a device; its arguments, in groups."""
    chosen = _solver(solver, _checked_device(device))
    objection = chosen.objection_to(problem)
    if objection:
        raise ValueError(f"{type(chosen).__name__} cannot take this problem: {objection}")
    looks_convex = look_at_custom_pieces(problem)
    budget = Budget(problem, chosen, *limits)
    try:
        with Interrupts() as interrupts:
            run = DeviceRun(
                problem, chosen, budget, Recorder(problem, chosen, *recorder), interrupts
            )
            run.begin(start, seed) if resume is None else run.go_on(start, resume)
            status = run.ending(run.until_it_ends())
            if status is Status.CONVERGED and not looks_convex:
                status = Status.STALLED
            return run.result(status, run.answer(status, project), project)
    except torch.OutOfMemoryError as error:
        free = in_gib(free_memory(torch.device(chosen.device)))
        raise MemoryError(
            f"{chosen.device} ran out of memory: {free} are free now; rows in single precision "
            f"(TensorRows) take half, and device=None needs no card ({str(error).split('. ')[0]})"
        ) from error


def _solver(solver: AnySolver | None, device: str) -> DeviceInteriorPoint:
    if solver is None:
        return DeviceInteriorPoint(device=device)
    if type(solver) is not InteriorPoint:
        raise ValueError(
            "with device= the solver must be InteriorPoint or None, got "
            f"{type(solver).__name__}; leave device out"
        )
    return DeviceInteriorPoint(solver.tolerance, solver.near, device)


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
