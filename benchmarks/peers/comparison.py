"""Ours beside every peer on the paper's problem: time to within 1% of our answer, and to the best
answer the peer reached.

Each peer gets 20 times the seconds our default solver took to its end, for each of its settings, of
which the best counts; the settings are the best of those we tried by hand, about ten a library. A
peer's parameters are projected by us before they are judged, which is off its clock, as are
imports, reading the data and building graphs. All use one thread; CVXPY's solver does as it likes.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import lighttouch as lt
from benchmarks.peers.environments import Unavailable
from benchmarks.peers.running import Answer, Peer, run_peer, save_problem
from benchmarks.speed.paper_problem import PAIRS, Row, paper_problem, projected_objective

PATIENCE = 20.0
LEAST_SECONDS = 20.0
WITHIN = 1.01
LOOKS, LATER, LONGEST = 200, 1.03, 120.0
FEW_PAIRS = 2_000  # what CVXPY's solver can hold

MANY = {"batch": 1024, "constraints": 1024}
AUGMENTED = {
    "formulation": "AugmentedLagrangian",
    "penalty": 0.01,
    "optimizer": "Adam",
    "dual_step": 1e-3,
    **MANY,
}
TORCH = ("torch==2.13.0", "numpy<3")
COOPER = Peer(
    "Cooper",
    "cooper",
    ("cooper-optim==1.0.1", *TORCH),
    "cooper_sampled.py",
    (
        {**AUGMENTED, "step": 0.01},
        {**AUGMENTED, "step": 0.03, "falling": True},
        {
            "formulation": "Lagrangian",
            "penalty": 0.0,
            "optimizer": "Adagrad",
            "step": 0.3,
            "dual_step": 0.1,
            "batch": 2,
            "constraints": 64,
        },
    ),
)
ADAM = {"optimizer": "Adam", "step": 0.01, "batch": 1024}
PYTORCH = Peer(
    "PyTorch Lattice",
    "pytorch-lattice",
    ("pytorch-lattice==0.2.0", *TORCH),
    "pytorch_lattice_layer.py",
    (ADAM, {**ADAM, "falling": True}),
)
TENSORFLOW = Peer(
    "TensorFlow Lattice",
    "tensorflow-lattice",
    ("tensorflow-lattice==2.1.1", "tf-keras"),
    "tensorflow_lattice_layer.py",
    (ADAM, {**ADAM, "falling": True, "batch": 4096}),
    {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"},
)
CVXPY = Peer("CVXPY", "cvxpy", ("cvxpy>=1.5", "numpy<3"), "cvxpy_default.py")


class OurCurve:
    """Our default's own answer, and seconds on its clock against the best projected objective so
    far (the median of some runs).

    For the curve it may go on past its usual end, to a smaller tolerance, but not past `enough`.
    """

    def __init__(
        self, problem: lt.Problem, tolerance: float, runs: int = 3, enough: float = -np.inf
    ) -> None:
        lt.solve(problem, time_limit=0.5)  # compiles
        answer = lt.solve(problem, time_limit=60)
        self.objective, self.seconds = answer.objective, answer.seconds
        self.problem, self.every, self.enough = problem, max(1, answer.iterations // LOOKS), enough
        self.curves = [self._run(lt.Automatic(tolerance=tolerance), seed) for seed in range(runs)]

    def _run(self, solver: lt.Automatic, seed: int) -> np.ndarray:
        points: list[tuple[float, float]] = []

        def watch(progress: lt.Progress) -> bool:
            if points and progress.seconds < LATER * points[-1][0]:
                return False
            objectives = [
                projected_objective(self.problem, w) for w in (progress.w, progress.w_average)
            ]
            points.append((progress.seconds, min(objectives)))
            return points[-1][1] <= self.enough

        result = lt.solve(
            self.problem,
            solver,
            seed=seed,
            record_every=self.every,
            callback=watch,
            time_limit=LONGEST,
        )
        seconds, objectives = np.array([*points, (result.seconds, result.objective)]).T
        return np.array([seconds, np.minimum.accumulate(objectives)])

    def seconds_to(self, target: float) -> float | None:
        """None where most runs do not get there."""
        times = [
            seconds[np.argmax(best <= target)] if best[-1] <= target else np.inf
            for seconds, best in self.curves
        ]
        median = float(np.median(times))
        return median if np.isfinite(median) else None


def run(quick: bool = False) -> list[Row]:
    """Rows for every peer, or one that says why it was skipped."""
    problem = paper_problem()
    ours = OurCurve(problem, 1e-4)
    budget = 4.0 if quick else max(LEAST_SECONDS, PATIENCE * ours.seconds)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "problem.npz"
        save_problem(data, problem, PAIRS)
        for peer in (COOPER, PYTORCH, TENSORFLOW):
            print(
                f"      {peer.name}: {len(peer.settings)} settings of {budget:.0f} s each ...",
                flush=True,
            )
            rows += _rows(peer, functools.partial(run_peer, peer, problem, data, budget), ours)
        rows += _cvxpy(Path(folder), 200 if quick else FEW_PAIRS)
    return rows


def _rows(peer: Peer, answers: Callable[[], list[Answer]], ours: OurCurve) -> list[Row]:
    try:
        found = answers()
    except Unavailable as reason:
        return [skipped(peer, reason)]
    best = min(found, key=lambda answer: answer.objectives[answer.best])
    name = f"{peer.name} {best.told['version']}"
    target = WITHIN * ours.objective
    what = f"{name}: time to within 1% of our answer ({target:.5f}) / ours"
    rows = [_against(what, _first(found, target), ours.seconds_to(target), best.seconds[-1])]
    reached, spent = float(best.objectives[best.best]), float(best.seconds[best.best])
    what = (
        f"{name}: time to its best in {best.seconds[-1]:.0f} s ({reached:.5f}; ours ends at "
        f"{ours.objective:.5f}) / ours"
    )
    rows.append(_against(what, spent, ours.seconds_to(reached), best.seconds[-1]))
    for answer in {answer.settings["batch"]: answer for answer in (*found, best)}.values():
        what = f"{name}: a step of {answer.settings['batch']:,} pairs; violation before projecting"
        rows.append(
            Row(what, f"{answer.microseconds:,.0f} us; {answer.violations[answer.best]:.2g}", "")
        )
    return rows


def _first(answers: Sequence[Answer], target: float) -> float | None:
    """The least seconds after which any setting's projected parameters were at the target."""
    times = [answer.seconds[answer.objectives <= target] for answer in answers]
    return min((float(each[0]) for each in times if each.size), default=None)


def _against(what: str, theirs: float | None, ours: float | None, limit: float) -> Row:
    if ours is None:
        return Row(what, "ours does not get there", "> 1x", False)
    if theirs is None:
        return Row(
            what,
            f"> {limit:.0f} / {ours:.3f} s > {limit / ours:.0f}x",
            "> 1x",
            limit > ours,
            limit / ours,
        )
    return Row(
        what,
        f"{theirs:.2f} / {ours:.3f} s = {theirs / ours:.1f}x",
        "> 1x",
        theirs > ours,
        theirs / ours,
    )


def _cvxpy(folder: Path, pairs: int) -> list[Row]:
    """A problem it can hold, to its own optimum; ours to within 1% and 0.01% of that."""
    problem = paper_problem(pairs)
    print(f"      CVXPY: {pairs:,} pairs ...", flush=True)
    data = folder / "few.npz"
    save_problem(data, problem, pairs)
    try:
        [answer] = run_peer(CVXPY, problem, data, 300.0)
    except Unavailable as reason:
        return [skipped(CVXPY, reason)]
    optimum, seconds, told = float(answer.objectives[-1]), float(answer.seconds[-1]), answer.told
    ours = OurCurve(problem, 1e-6, runs=1, enough=optimum + 1e-4 * abs(optimum))
    name = f"CVXPY {told['version']} ({told['solver']}, {told['status']}), {pairs:,} pairs"
    return [
        _against(
            f"{name}: to {optimum:.5f} / ours to within {share}",
            seconds,
            ours.seconds_to(optimum + gap * abs(optimum)),
            seconds,
        )
        for share, gap in (("1%", 1e-2), ("0.01%", 1e-4))
    ]


def skipped(peer: Peer, reason: Exception) -> Row:
    return Row(f"{peer.name}: skipped, {reason}", "", "")
