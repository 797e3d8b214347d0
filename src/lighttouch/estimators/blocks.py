"""Training of medium-sized models: quadratic blocks, each solved under the rules with exact
projections.

Every block replaces the loss by a quadratic that touches it, minimises that over the parameters
that obey the rules, and is accepted only if the objective falls. A block alternates between the
quadratic (one Cholesky factor) and `project`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.estimators.losses import PointLoss
from lighttouch.kernels.numerics.gram import weighted_gram
from lighttouch.projections import project
from lighttouch.projections.rows.nested import splitting_of
from lighttouch.projections.splitting import Standing, conjugate_gradients
from lighttouch.result import History

Floats = NDArray[np.float64]
LARGEST_FACTORED = 3000  # parameters
RELAXATION = 1.6
INNER_STEPS = 400
STEPS_OF_MANY = 80  # of a block that another one follows, which goes on from there
NARROWING = 0.25
NARROWEST = 1e-3
asked_to_stop: ContextVar[Callable[[], bool] | None] = ContextVar(
    "asked_to_stop", default=None
)  # set by the command line, for Ctrl-C


@dataclass
class Deadline:
    """A time limit that may be absent, and whether someone has asked to stop."""

    seconds: float | None
    began: float = field(default_factory=time.perf_counter)

    @property
    def passed(self) -> bool:
        return self.interrupted or (
            self.seconds is not None and time.perf_counter() - self.began >= self.seconds
        )

    @property
    def interrupted(self) -> bool:
        asked = asked_to_stop.get()
        return asked is not None and asked()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    @property
    def left(self) -> float | None:
        return (
            None
            if self.seconds is None
            else max(1e-3, self.seconds - (time.perf_counter() - self.began))
        )


@dataclass(frozen=True)
class Penalised:
    """The weighted mean of a loss of features @ w, plus w' penalty w / 2 - pull.w."""

    features: Any
    y: Floats
    weights: Floats  # adding up to 1, or less where `penalty` and `pull` stand for earlier examples
    loss: PointLoss
    penalty: Any  # sparse, symmetric, positive semidefinite
    pull: Floats | None = None

    def value(self, w: Floats, width: float = 0.0) -> float:
        return self.value_at(np.asarray(self.features @ w), w, width)

    def value_at(self, z: Floats, w: Floats, width: float = 0.0) -> float:
        pulled = 0.0 if self.pull is None else float(self.pull @ w)
        return (
            float(
                self.weights @ self.loss.values(z, self.y, width) + 0.5 * (w @ (self.penalty @ w))
            )
            - pulled
        )

    def gradient(self, slopes: Floats, w: Floats) -> Floats:
        """With the slopes of the loss at every example."""
        found = np.asarray(self.features.T @ (self.weights * slopes)) + self.penalty @ w
        return np.asarray(found if self.pull is None else found - self.pull)


@dataclass(frozen=True)
class Trained:
    """What training gives back."""

    w: Floats
    objective: float
    blocks: int
    status: str  # "converged", "iteration limit", "time limit" or "interrupted"
    history: History = field(default_factory=History)


def gram(features: Any, weights: Floats) -> Floats:
    """features' diag(weights) features, symmetric and dense."""
    if not sparse.issparse(features):
        return np.asarray(features.T @ (weights[:, None] * features))
    out = np.zeros((features.shape[1], features.shape[1]))
    weighted_gram(features.data, features.indices, features.indptr, weights, out)
    return np.asarray(out + np.tril(out, -1).T)


@dataclass(frozen=True)
class FeatureBowl:
    """The quadratic w'Hw/2 - c.w with H = features' diag(weights) features + penalty."""

    features: Any
    weights: Floats
    penalty: Any
    c: Floats

    @property
    def dense(self) -> Floats:
        return np.asarray(gram(self.features, self.weights) + self.penalty.todense())

    @cached_property
    def diagonal(self) -> Floats:
        squares = (
            self.features.multiply(self.features)
            if sparse.issparse(self.features)
            else np.square(self.features)
        )
        return np.asarray(np.asarray(squares.T @ self.weights).ravel() + self.penalty.diagonal())

    @cached_property
    def _transposed(self) -> Any:
        return self.features.T.tocsr() if sparse.issparse(self.features) else self.features.T

    def apply(self, w: Floats) -> Floats:
        return np.asarray(
            self._transposed @ (self.weights * np.asarray(self.features @ w)) + self.penalty @ w
        )


class QuadraticBlock:
    """Minimise a quadratic over the rules by alternating directions, remembering where it stood for
    the next one.
    """

    settled = True  # whether more steps on the same quadratic would change nothing

    def __init__(self, rules: Any, dimension: int, steps: int = INNER_STEPS) -> None:
        self.rules, self.steps = rules, steps
        self.z = np.zeros(dimension)
        self.push = np.zeros(dimension)  # the scaled multiplier, times `strength`
        self.strength = 0.0
        self.warm: Any = None
        self.checks = (
            0  # rows looked at: all of them in every projection and in every look at a free minimum
        )

    def nearest(self, w: Floats) -> Floats:
        self.checks += self.rules.count
        found = project(w, self.rules, warm=self.warm)
        self.warm = found.warm
        return found.w

    def minimise(self, bowl: FeatureBowl, tolerance: float, deadline: Deadline) -> Floats:
        H, c = bowl.dense, bowl.c
        free = _solve(H, c)
        self.checks += 0 if self.rules is None else self.rules.count
        if (
            self.rules is None
            or self.rules.count == 0
            or float(self.rules.values(free).max()) <= 0.0
        ):
            self.z = free
            return free
        if self.strength == 0.0:
            self.strength = float(np.trace(H)) / H.shape[0]
        return self._alternate(H, c, tolerance, deadline)

    def _alternate(self, H: Floats, c: Floats, tolerance: float, deadline: Deadline) -> Floats:
        factor = _shifted_factor(H, self.strength)
        z, u = self.z, self.push / self.strength
        for step in range(1, self.steps + 1):
            w = scipy.linalg.cho_solve(factor, c + self.strength * (z - u), check_finite=False)
            blend = RELAXATION * w + (1.0 - RELAXATION) * z
            before, z = z, self.nearest(blend + u)
            u = u + blend - z
            apart = float(np.linalg.norm(w - z)) / max(
                1e-12, float(np.linalg.norm(z)), float(np.linalg.norm(w))
            )
            size = max(float(np.linalg.norm(c)), self.strength * float(np.linalg.norm(u)), 1e-12)
            moved = self.strength * float(np.linalg.norm(z - before)) / size
            if (apart < tolerance and moved < tolerance) or (step % 8 == 0 and deadline.passed):
                break
            if (
                step % 10 == 0
                and step < self.steps // 2
                and not 0.2 < apart / max(moved, 1e-300) < 5.0
            ):
                change = min(10.0, max(0.1, math.sqrt(apart / max(moved, 1e-300))))
                self.strength, u = self.strength * change, u / change
                factor = _shifted_factor(H, self.strength)
        self.z, self.push = z, u * self.strength
        return z


class LargeBlock:
    """The same where a matrix of all parameters would be too much: conjugate gradients, and the
    rules told apart (projections).
    """

    def __init__(self, rules: Any, dimension: int, steps: int) -> None:
        self.rules, self.steps, self.checks = rules, steps, 0
        self.w = np.zeros(dimension)
        self.splitting = splitting_of(rules) if rules is not None and rules.count else None
        self.standing: Standing | None = None

    @property
    def settled(self) -> bool:
        return self.standing is None or self.standing.settled

    def minimise(self, bowl: FeatureBowl, tolerance: float, deadline: Deadline) -> Floats:
        if self.splitting is None:
            self.w = conjugate_gradients(bowl.apply, bowl.c, self.w, bowl.diagonal, 1e-7, 500)
            return self.w
        if self.standing is None:
            self.standing = self.splitting.begin(self.w)
        before = self.standing.steps
        self.splitting.minimise(
            bowl, self.standing, 0.01 * tolerance, self.steps, lambda: deadline.passed
        )
        self.checks += self.rules.count * (self.standing.steps - before)
        return self.splitting.ordered(self.standing)


def _shifted_factor(H: Floats, shift: float) -> Any:
    shifted = H.copy()
    shifted.flat[:: H.shape[0] + 1] += shift
    return scipy.linalg.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)


def _solve(H: Floats, c: Floats) -> Floats:
    try:
        return np.asarray(
            scipy.linalg.cho_solve(
                scipy.linalg.cho_factor(H, lower=True, check_finite=False), c, check_finite=False
            )
        )
    except scipy.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(H, c, rcond=None)[0])


class BlockTrainer:
    """The outer loop: one quadratic block after the other until the objective settles."""

    def __init__(
        self,
        objective: Penalised,
        rules: Any,
        tolerance: float,
        blocks: int,
        deadline: Deadline,
        report: Any = None,
    ) -> None:
        self.objective, self.tolerance, self.most, self.deadline, self.report = (
            objective,
            tolerance,
            blocks,
            deadline,
            report,
        )
        steps = INNER_STEPS if objective.loss.name == "squared" else STEPS_OF_MANY
        dimension = objective.features.shape[1]
        large = dimension > LARGEST_FACTORED
        self.block: Any = (
            LargeBlock(rules, dimension, steps)
            if large
            else QuadraticBlock(rules, dimension, steps)
        )

    def train(self, start: Floats) -> Trained:
        w = start
        z = np.asarray(self.objective.features @ w)
        width = self._first_width(z)
        narrowest = NARROWEST * width
        value = self.objective.value_at(z, w, width)
        best = (self.objective.value_at(z, w), w)
        status, done, history = "iteration limit", 0, History()
        self._note(history, 0, best[0], w)
        while done < self.most:
            done += 1
            w, z, new_value = self._one_block(w, z, value, width)
            gain = value - new_value
            value = new_value
            best = min(best, (self.objective.value_at(z, w), w), key=lambda pair: pair[0])
            self._note(history, done, best[0], w)
            if self.report is not None:
                self.report(done, self.most, best[0])
            if self.deadline.passed:
                status = "interrupted" if self.deadline.interrupted else "time limit"
                break
            exact = self.objective.loss.name == "squared" and self.block.settled
            if exact or gain <= self.tolerance * max(abs(value), 1e-12):
                if width <= narrowest:
                    status = "converged"
                    break
                width = max(narrowest, width * NARROWING)
                value = self.objective.value_at(z, w, width)
        return Trained(best[1], best[0], done, status, history)

    def _note(self, history: History, done: int, objective: float, w: Floats) -> None:
        rules = self.block.rules
        violation = (
            0.0 if rules is None or rules.count == 0 else max(0.0, float(rules.values(w).max()))
        )
        batches = {"loss_batch": self.objective.y.size, "push_batch": 0, "learn_batch": 0}
        seconds, checks = self.deadline.elapsed, self.block.checks
        history.append(
            iteration=done,
            seconds=seconds,
            constraint_checks=checks,
            objective=objective,
            violation=violation,
            **batches,
        )

    def _first_width(self, z: Floats) -> float:
        if not self.objective.loss.kinked:
            return 0.0
        return max(
            1e-9, 0.3 * float(np.mean(np.abs(self.objective.loss._residual(z, self.objective.y))))
        )

    def _one_block(
        self, w: Floats, z: Floats, value: float, width: float
    ) -> tuple[Floats, Floats, float]:
        objective = self.objective
        slopes, curvatures = objective.loss.quadratic(z, objective.y, width)
        curved = objective.weights * curvatures
        bend = FeatureBowl(objective.features, curved, objective.penalty, w).apply(w)
        bowl = FeatureBowl(
            objective.features, curved, objective.penalty, bend - objective.gradient(slopes, w)
        )
        proposed = self.block.minimise(bowl, min(1e-4, 0.1 * self.tolerance**0.5), self.deadline)
        z_proposed = np.asarray(objective.features @ proposed)
        share = 1.0
        while share > 1e-4:
            w_new, z_new = w + share * (proposed - w), z + share * (z_proposed - z)
            new_value = objective.value_at(z_new, w_new, width)
            if new_value <= value:
                return w_new, z_new, new_value
            share *= 0.5
        return w, z, value
