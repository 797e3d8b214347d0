"""Are these pieces what a convex problem needs? Tried at random points of the domain.

`check` tries every piece of a problem and reports; `look_at_custom_pieces` is the short version
that `solve` runs on functions that users wrote. Values decide about convexity: at the middle of two
points a convex function is at most the mean of its values there. They also decide about gradients:
at the middle a subgradient lies between the slopes to both sides, also where there is a kink.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numba.core.errors import NumbaError

from lighttouch.arrays import EPSILON, Vector
from lighttouch.constraints import ConvexConstraints
from lighttouch.constraints.base import RecordConstraints
from lighttouch.errors import ConstraintError, DataError
from lighttouch.kernels.state.iterate import clear, new_gradient
from lighttouch.kernels.verbs.constraints import worst
from lighttouch.kernels.verbs.custom import not_compiled
from lighttouch.kernels.verbs.objectives import add_gradient, example_value
from lighttouch.objectives import CustomObjective
from lighttouch.problem import Problem
from lighttouch.running import Stopwatch, prepared
from lighttouch.validation import positive_int, told

NOT_CONVEX = 1e-7
"""How far a value may lie above the mean of two others, relative to the values. Rounding: that of
single precision is smaller."""

STEP = 1e-5
"""Length of a difference, relative to the distance of the two points. Rounding: short enough for
slopes, long enough to keep digits."""

SLOPE_OFF = 1e-3
"""Difference of a slope from its quotient, relative to the slopes. Tolerance: curvature within a
step makes less."""

ROUNDING = 1e3
"""Rounding errors, in units of EPSILON, that a value may carry. Rounding."""

REACH = (1.0, 0.1, 10.0)
"""Distances from the start, in its own size, at which points are drawn. Convention: the size of the
start, and ten times less and more."""

MEMBERS = 10
"""Examples, and constraints of a family, whose functions are looked at one by one. Budget."""

SPREAD = 1e6
"""Ratio of scales beyond which rounding takes digits that a solver needs. Tolerance."""

FEW_POINTS, FEW_MEMBERS = 2, 2
"""Of the short version. Budget: about fifty calls in all."""

SHORT_SECONDS = 0.1
"""Seconds after which the short version stops asking. Budget: nobody notices them."""

CALLER = 6  # frames between the warning and the line that called `solve`


@dataclass(frozen=True)
class Finding:
    """One thing that `check` saw.

    Parameters
    ----------
    kind : str
        "convexity", "gradient", "nan", "shape", "error", "sign" or "scale".
    where : str
        The function, with the example or the constraint.
    message : str
        What must hold and what was seen.
    severity : str
        "error" (cannot be solved), "warning" (must not be relied on) or "note".

    Examples
    --------
    >>> bent = lt.CustomObjective(1, lambda i, w: -float(w @ w), lambda i, w: -2.0 * w)
    >>> lt.check(lt.Problem(bent)).findings[0].kind
    'convexity'
    """

    kind: str
    where: str
    message: str
    severity: str = "warning"

    def __str__(self) -> str:
        return f"{self.severity}, {self.kind}: {self.where}: {self.message}"


@dataclass(frozen=True)
class CheckReport:
    """What `check` tried, and what it saw.

    Parameters
    ----------
    findings : tuple of Finding
        Gravest first.
    tried : tuple of str
        The pieces that were tried.
    points : int
        At how many points.

    Examples
    --------
    >>> report = lt.check(lt.Problem(lt.Quadratic(np.eye(2), [1.0, 0.0]), lt.ordering(2)))
    >>> report.ok, report.findings
    (True, ())
    """

    findings: tuple[Finding, ...]
    tried: tuple[str, ...]
    points: int

    @property
    def ok(self) -> bool:
        """Whether nothing but notes was found. It is no proof: only points were tried."""
        return all(finding.severity == "note" for finding in self.findings)

    def __str__(self) -> str:
        seen = "nothing wrong" if self.ok else "not a convex problem as it stands"
        head = f"{seen}: {', '.join(self.tried)}, at {self.points} random points"
        return "\n".join([head, *(f"  {finding}" for finding in self.findings)])


def check(problem: Problem, points: int = 20, seed: int = 0) -> CheckReport:
    """Try convexity, gradients, shapes, signs and scales of a problem's pieces at random points.

    Parameters
    ----------
    problem : Problem
        Its own functions (`CustomObjective`, `ConvexConstraints`) and built-in pieces alike.
    points : int, default=20
        How many pairs of points of the domain to draw.
    seed : int, default=0
        Of the random points.

    Returns
    -------
    CheckReport
        `ok`, `findings`, and a summary when printed. What is wrong elsewhere is not seen.

    Raises
    ------
    DataError
        If `problem` is not a Problem.
    ValueError
        If `points` is not a whole number of at least 1.

    Examples
    --------
    >>> wrong = lt.CustomObjective(2, lambda i, w: float(w @ w), lambda i, w: -2.0 * w)
    >>> report = lt.check(lt.Problem(wrong))
    >>> report.ok, report.findings[0].kind
    (False, 'gradient')
    """
    if not isinstance(problem, Problem):
        raise DataError(
            f"problem must be a Problem, got {told(problem)}; write "
            "lt.check(lt.Problem(objective, constraints))"
        )
    pairs = list(_pairs(problem, positive_int(points, "points"), np.random.default_rng(seed)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = _of_probes(_of_objective(problem), pairs)
        for part in problem.constraints.parts:
            found += _of_probes(_members(part, MEMBERS), pairs) or _all_values(part, pairs)
    found += _signs(problem, pairs) + _scales(problem)
    grave = ("error", "warning", "note")
    tried = [f"the {type(problem.objective).__name__}"]
    tried += [
        f"{part.count:,} {type(part).__name__}" for part in problem.constraints.parts if part.count
    ]
    ordered = sorted(_once(found), key=lambda finding: grave.index(finding.severity))
    return CheckReport(tuple(ordered), tuple(tried), len(pairs))


def look_at_custom_pieces(problem: Problem) -> bool:
    """A few calls of the functions that users wrote, once per problem: NaN and wrong shapes are
    errors, what does not look convex, or like its gradient, a warning.

    Returns
    -------
    bool
        False where something was seen, so that nothing proven of convex functions may be claimed.
    """
    return prepared(problem, "custom pieces", lambda: _look(problem))


def _look(problem: Problem) -> bool:
    probes = list(_terms(problem.objective, FEW_MEMBERS))
    for part in problem.constraints.parts:
        if isinstance(part, ConvexConstraints):
            probes += _members(part, FEW_MEMBERS)
    if not probes:
        return True
    clock = Stopwatch()
    pairs = list(_pairs(problem, FEW_POINTS, np.random.default_rng(0)))
    for pair, probe in itertools.product(pairs, probes):
        with np.errstate(all="ignore"):
            try:
                found = list(probe.compared(*pair))
            except _SeenError as seen:
                raise probe.error(seen.finding.message) from seen.__cause__
            for finding in found:
                said = f"{finding.where}: {finding.message}; lt.check(problem) tries more points"
                warnings.warn(said, stacklevel=CALLER)
                return False
        if clock.seconds > SHORT_SECONDS:
            break
    return True


class _SeenError(Exception):
    """A function cannot be evaluated; it carries the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(frozen=True)
class _Probe:
    """One convex function of w, called as its owner wrote it."""

    member: str  # which example or constraint, in words
    value: Callable[[Vector], Any]
    gradient: Callable[[Vector], Any]
    value_name: str = "value"
    gradient_name: str = "gradient"
    role: str = "gradient"  # what its parameter is called
    error: type[ValueError] = DataError

    def findings(self, a: Vector, b: Vector) -> list[Finding]:
        """What two points and their middle say."""
        try:
            return list(self.compared(a, b))
        except _SeenError as seen:
            return [seen.finding]

    def compared(self, a: Vector, b: Vector) -> Iterator[Finding]:
        """The same, one by one; what cannot be evaluated is raised."""
        middle, apart = 0.5 * (a + b), float(np.linalg.norm(b - a))
        values = [self._number(w) for w in (a, b, middle)]
        slope = self._vector(middle)
        if apart == 0.0 or not np.all(np.isfinite(values)):
            return
        size = max(abs(value) for value in values)
        above = values[2] - 0.5 * (values[0] + values[1])
        if above > NOT_CONVEX * size:
            yield Finding(
                "convexity",
                f"the function {self.value_name!r} for {self.member}",
                f"it must be convex, but at the middle of two points it is {above:.3g} above the "
                f"mean of its values {values[0]:.6g} and {values[1]:.6g} there",
            )
        wrong = self._wrong_slope(middle, (b - a) / apart, STEP * apart, slope, size)
        if wrong:
            where = f"the function {self.gradient_name!r} for {self.member}"
            yield Finding("gradient", where, wrong)

    def _wrong_slope(self, w: Vector, p: Vector, h: float, g: Vector, size: float) -> str:
        """In words; empty where the slope along p agrees with the values a step away."""
        before, here, after = (self._number(w + t * p) for t in (-h, 0.0, h))
        slopes = sorted(((here - before) / h, (after - here) / h))
        if not np.all(np.isfinite(slopes)):
            return ""
        said = float(g @ p)
        off = SLOPE_OFF * max(abs(slopes[0]), abs(slopes[1]), abs(said))
        off += ROUNDING * EPSILON * size / h
        if slopes[0] - off <= said <= slopes[1] + off:
            return ""
        turned = slopes[0] - off <= -said <= slopes[1] + off
        return (
            f"it must return a subgradient, but along a direction it says {said:.6g} where the "
            f"values change by {slopes[0]:.6g} to {slopes[1]:.6g} per unit"
            + ("; its sign seems to be wrong" if turned else "")
        )

    def _number(self, w: Vector) -> float:
        found = self._called(self.value, w, self.value_name)
        try:
            if np.iscomplexobj(found) or np.ndim(found) != 0:
                raise TypeError
            number = float(found)
        except (TypeError, ValueError):
            raise self._seen(
                "shape",
                f"value must return a number: the function {self.value_name!r} returned "
                f"{_kind(found)} for {self.member}",
            ) from None
        if math.isnan(number):
            raise self._seen(
                "nan",
                "value must return a number at every w of the domain: the function "
                f"{self.value_name!r} returned nan for {self.member}; return inf where it is not "
                "defined, or give the problem a domain",
            )
        return number

    def _vector(self, w: Vector) -> Vector:
        found = self._called(self.gradient, w, self.gradient_name)
        if np.shape(found) != w.shape or np.asarray(found).dtype.kind not in "fiub":
            raise self._seen(
                "shape",
                f"{self.role} must return an array of {w.size} numbers, one for each parameter: "
                f"the function {self.gradient_name!r} returned {_kind(found)} for {self.member}",
            )
        vector = np.asarray(found, dtype=np.float64)
        if np.isnan(vector).any():
            raise self._seen(
                "nan",
                f"{self.role} must return numbers at every w of the domain: the function "
                f"{self.gradient_name!r} returned nan in entry {int(np.isnan(vector).argmax())} "
                f"for {self.member}",
            )
        return vector

    def _called(self, function: Callable[[Vector], Any], w: Vector, name: str) -> Any:
        given = w.copy()
        try:
            found = function(given)
        except (DataError, ConstraintError) as problem:
            raise self._seen("nan", str(problem)) from problem
        except (TypeError, IndexError) as problem:
            raise self._seen(
                "error",
                f"the function {name!r} must take w and return its answer; it ended with "
                f"{type(problem).__name__} for {self.member}: {str(problem).splitlines()[0]}",
            ) from problem
        except NumbaError as problem:
            told = f"the function {name!r} must compile: {not_compiled(problem)}"
            raise self._seen("error", told) from problem
        if not np.array_equal(given, w):
            raise self._seen(
                "error", f"the function {name!r} must not change w; it did for {self.member}"
            )
        return found

    def _seen(self, kind: str, message: str) -> _SeenError:
        return _SeenError(Finding(kind, self.member, message, "error"))


def _of_objective(problem: Problem) -> Iterator[_Probe]:
    """The whole objective, whatever it is made of, and terms that users wrote."""
    objective = problem.objective
    terms = list(_terms(objective, MEMBERS))
    if not (isinstance(objective, CustomObjective) and objective.examples == 1):
        names = f"{type(objective).__name__}.value", f"{type(objective).__name__}.gradient"
        yield _Probe("all examples", objective.value, objective.gradient, *names)
    yield from terms


def _terms(objective: Any, most: int) -> Iterator[_Probe]:
    """A few terms of the objectives that users wrote, also within a sum."""
    for part in getattr(objective, "objectives", ()):
        yield from _terms(part, most)
    if not isinstance(objective, CustomObjective):
        return
    record = objective.record
    value, gradient = (
        (record.value, record.gradient)
        if objective.interpreted
        else (partial(example_value, record), partial(_gathered, record))
    )
    for i in _some(objective.examples, most):
        yield _Probe(f"example {i}", partial(value, i), partial(gradient, i), *objective.functions)


def _members(part: RecordConstraints, most: int) -> Iterator[_Probe]:
    """A few constraints of a family: the user's functions, or the family's own answers."""
    value: Callable[[int, Vector], Any] = partial(_worst_of_one, part.record)
    gradient: Callable[[int, Vector], Any] = part.subgradient
    if isinstance(part, ConvexConstraints) and part.interpreted:
        value, gradient = part.record.value, part.record.subgradient
    names = part.functions if isinstance(part, ConvexConstraints) else ("values", "subgradient")
    for j in _some(part.count, most):
        member = f"constraint {j}" if isinstance(part, ConvexConstraints) else part.describe(j)
        functions = partial(value, j), partial(gradient, j)
        yield _Probe(member, *functions, *names, role="subgradient", error=ConstraintError)


def _of_probes(probes: Iterable[_Probe], pairs: Sequence[tuple[Vector, Vector]]) -> list[Finding]:
    return [finding for probe in probes for finding in _first_of_each(probe, pairs)]


def _gathered(record: object, example: int, w: Vector) -> Vector:
    """A compiled term's gradient."""
    gradient = new_gradient(w.size)
    clear(gradient)
    add_gradient(record, example, w, 1.0, gradient)
    return np.where(gradient.stamp == gradient.cursor[1], gradient.values, 0.0)


def _worst_of_one(record: object, j: int, w: Vector) -> float:
    return float(worst(record, j, j + 1, w)[0])


def _some(count: int, most: int) -> list[int]:
    """The first, the last and others evenly between."""
    return sorted({int(k) for k in np.linspace(0, count - 1, min(count, most))})


def _pairs(
    problem: Problem, count: int, rng: np.random.Generator
) -> Iterator[tuple[Vector, Vector]]:
    """Pairs of points of the domain, near the start and far from it."""
    start = problem.start()
    size = max(1.0, float(np.abs(start).max()))
    for number in range(count):
        reach = REACH[number % len(REACH)] * size
        yield tuple(  # type: ignore[misc]
            np.ascontiguousarray(
                problem.domain.project(start + reach * rng.normal(size=start.size))
            )
            for _ in range(2)
        )


def _first_of_each(probe: _Probe, pairs: Sequence[tuple[Vector, Vector]]) -> Iterator[Finding]:
    """The first finding of each kind; after an error the function is left alone."""
    seen: set[str] = set()
    for pair in pairs:
        for finding in probe.findings(*pair):
            if finding.kind not in seen:
                yield finding
            seen.add(finding.kind)
            if finding.severity == "error":
                return


def _all_values(part: RecordConstraints, pairs: Sequence[tuple[Vector, Vector]]) -> list[Finding]:
    """Convexity of every constraint of a family, from its values."""
    for a, b in pairs if part.count else ():
        try:
            at_a, at_b, middle = (part.values(w) for w in (a, b, 0.5 * (a + b)))
        except (ValueError, TypeError, IndexError):
            return []  # what its functions say, one by one
        with np.errstate(invalid="ignore"):
            above = middle - 0.5 * (at_a + at_b)
            size = np.maximum(np.maximum(np.abs(at_a), np.abs(at_b)), np.abs(middle))
            bent = np.isfinite(size) & (above > NOT_CONVEX * size)
        if bent.any():
            j = int(bent.argmax())
            return [
                Finding(
                    "convexity",
                    f"constraint {j} of {type(part).__name__}",
                    f"it must be convex, but at the middle of two points it is {above[j]:.3g} "
                    f"above the mean of its values there ({int(bent.sum())} of {part.count} "
                    "constraints)",
                )
            ]
    return []


def _signs(problem: Problem, pairs: Sequence[tuple[Vector, Vector]]) -> list[Finding]:
    """Constraints that hold at none of the points: perhaps g_j >= 0 was meant."""
    found = []
    for part in problem.constraints.parts:
        if not isinstance(part, ConvexConstraints) or not part.count:
            continue
        points = [problem.start(), *(w for pair in pairs for w in pair)]
        try:
            least = np.min([part.values(w) for w in points], axis=0)
        except (ValueError, TypeError, IndexError):
            continue
        for j in np.flatnonzero(least > 0.0)[:1]:
            found.append(
                Finding(
                    "sign",
                    f"the function {part.functions[0]!r} for constraint {j}",
                    f"g(w) <= 0 is asked for, and it is at least {least[j]:.6g} at each of "
                    f"{len(points)} points; was g(w) >= 0 meant?",
                    "note",
                )
            )
    return found


def _scales(problem: Problem) -> list[Finding]:
    """Columns of examples, and rows, that differ by many orders of magnitude."""
    found = []
    X = getattr(problem.objective, "X", None)
    if X is not None:
        columns = abs(X).max(axis=0)
        columns = columns.toarray().ravel() if scipy.sparse.issparse(columns) else columns
        found += _spread(np.asarray(columns), "X", "column", "rescale the columns")
    for part in problem.constraints.parts:
        if part.is_linear and part.count:
            rows = np.asarray(part.row_scales())
            found += _spread(rows, "the constraints", "row", "divide rows by their norms")
    return found


def _spread(sizes: Vector, whose: str, what: str, advice: str) -> list[Finding]:
    found = []
    for place in np.flatnonzero(sizes == 0.0)[:1]:
        found.append(Finding("scale", f"{what} {place} of {whose}", "it is 0 everywhere", "note"))
    sizes = sizes[sizes > 0.0]
    if sizes.size and sizes.max() > SPREAD * sizes.min():
        message = f"the largest is {sizes.max() / sizes.min():.1g} times the smallest; {advice}"
        found.append(Finding("scale", f"the {what}s of {whose}", message, "note"))
    return found


def _once(findings: Iterable[Finding]) -> list[Finding]:
    return list(dict.fromkeys(findings))


def _kind(found: Any) -> str:
    """What was returned, in words."""
    if found is None or isinstance(found, str):
        return repr(found)
    shape = np.shape(found)
    return f"an array of shape {shape}" if shape else f"a {type(found).__name__}"
