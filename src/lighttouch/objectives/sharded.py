"""An objective whose examples come in parts that are never together in memory."""

from __future__ import annotations

import functools
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import DataError, NoExamplesError
from lighttouch.fingerprints import fingerprint
from lighttouch.interfaces import Objective
from lighttouch.objectives.empirical import EmpiricalRisk
from lighttouch.objectives.sums import column_squares, data_bytes, has_kinks, mass
from lighttouch.running import Engine, Shared, current_engine, remembered
from lighttouch.validation import finite_vector, told

LOG = logging.getLogger("lighttouch")


@dataclass(frozen=True)
class Reading:
    """How patient reading a shard is."""

    attempts: int = 3
    """Times that a shard is read before it is an error: a network file system that is busy for a
    moment must not end a run of hours."""
    pause: float = 0.2
    """Seconds before the second attempt; doubled before every other."""


READING = Reading()


@dataclass(frozen=True)
class Facts:
    """What one shard says about itself; `squares` are those of its columns."""

    dimension: int
    examples: int
    mass: float
    l2: float
    cost: float
    interpreted: bool
    independent: bool
    kinked: bool
    bytes: int
    penalty: str  # a fingerprint of loss and penalties, without the examples
    squares: Vector


@dataclass(frozen=True)
class Survey:
    """What all shards say together: what solvers ask before they begin."""

    shares: Vector  # what each shard counts; 0 for empty ones, together 1
    examples: int
    l2: float
    cost: float
    interpreted: bool
    independent: bool
    kinked: bool
    largest: int  # bytes of the largest shard
    alike: bool  # whether all have the same loss and penalties
    squares: Vector


class ShardedRisk:
    """The (weighted) mean of the losses of examples that come in parts, such as files.

    It is the objective that one `EmpiricalRisk` of all examples would be, but no process holds more
    than one part of them at a time. Sums over the shards are taken in their order, so that every
    number is the same, to the bit, with any engine and any number of workers.

    Parameters
    ----------
    shards : sequence
        Each an objective, or a picklable function without arguments that makes one when asked:
        `functools.partial(read, "part-0.parquet")`. A function may return None for no examples. All
        must have the same number of parameters. Shards count by their examples, or by the sum of
        their `sample_weight`.

    Raises
    ------
    DataError
        If a shard is no objective, cannot be read, or has another number of parameters.

    Examples
    --------
    >>> halves = [lt.EmpiricalRisk([[1.0]], [0.0]), lt.EmpiricalRisk([[1.0]], [2.0])]
    >>> lt.ShardedRisk(halves).value([2.0])
    1.0
    """

    def __init__(self, shards: Sequence[Any]) -> None:
        self.shards: tuple[Any, ...] = tuple(shards)
        if not self.shards:
            raise DataError("shards must hold at least one objective or function, got none")
        for place, shard in enumerate(self.shards):
            if isinstance(shard, ShardedRisk):
                raise DataError(
                    f"shards must not be in shards themselves, as the one at place {place} is: "
                    "give their shards instead, (*one.shards, *other.shards)"
                )
            made = isinstance(shard, Objective) and not isinstance(shard, type)
            if not made and (isinstance(shard, type) or not callable(shard)):
                raise DataError(
                    "shards must hold objectives such as EmpiricalRisk, or functions without "
                    f"arguments that return one; got {told(shard)} at place {place}"
                )
        self.names = tuple(_name(place, shard) for place, shard in enumerate(self.shards))
        self._token = uuid.uuid4().hex  # tells the shards of this one from those of another
        self._handles: tuple[Any, list[Shared]] | None = None
        self._survey: Survey | None = None
        self._template: Any = None

    # ---------------------------------------------------------------------------------------------
    # passes over the shards

    def each(
        self, function: Callable[..., Any], *arguments: Any, own: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """`function(objective, *arguments)` of every shard, in their order; None for empty ones.
        With `own`, one value for each shard, that of the shard is the last argument.

        The function must be picklable and deterministic: it may be computed elsewhere, or twice.
        """
        engine = current_engine()
        handles = self._shared_with(engine)
        given = [engine.share(each) for each in arguments]
        items = [
            (self._token, place, self.names[place], handle, function, *given)
            + (() if own is None else (own[place],))
            for place, handle in enumerate(handles)
        ]
        try:
            yield from engine.map(evaluate, items, self.names)
        finally:
            for argument in given:
                argument.release()

    def mean(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The weighted mean over shards of what `function(objective, *arguments)` returns: a
        number, an array or a tuple of them.
        """
        shares = self.survey.shares
        totals: list[Any] | None = None
        single = True
        for share, found in zip(shares, self.each(function, *arguments), strict=True):
            if found is None:
                continue
            single = not isinstance(found, tuple)
            parts = (found,) if single else found
            if totals is None:
                totals = [share * part for part in parts]
            else:
                for k, part in enumerate(parts):
                    totals[k] = totals[k] + share * part
        assert totals is not None  # the survey found examples
        return totals[0] if single else tuple(totals)

    def _shared_with(self, engine: Engine) -> list[Shared]:
        """Every shard where the workers of this engine find it; put there once."""
        if self._handles is None or self._handles[0] != (id(engine), engine.session):
            handles = [engine.share(shard, lasting=True) for shard in self.shards]
            self._handles = ((id(engine), engine.session), handles)
        return self._handles[1]

    # ---------------------------------------------------------------------------------------------
    # what solvers ask

    @property
    def survey(self) -> Survey:
        """All shards are read once, at the first question that needs it."""
        if self._survey is None:
            self._survey = self._surveyed()
            LOG.info("%s", self.memory())
        return self._survey

    def _surveyed(self) -> Survey:
        facts = [found for found in self.each(facts_of)]
        known = [each for each in facts if each is not None]
        if not known:
            raise DataError(
                f"all {len(self.shards)} shards are empty: at least one example is needed"
            )
        for place, each in enumerate(facts):
            if each is not None and each.dimension != self.dimension:
                raise DataError(
                    f"all shards must have the same number of parameters: {self.names[place]} has "
                    f"{each.dimension}, others have {self.dimension}"
                )
        masses = np.array([0.0 if each is None else each.mass for each in facts])
        shares = masses / masses.sum()
        counted = [(share, each) for share, each in zip(shares, facts, strict=True) if each]
        examples = sum(each.examples for each in known)
        squares = np.zeros(self.dimension)
        for share, each in counted:
            squares += share * each.squares
        return Survey(
            shares=shares,
            examples=examples,
            l2=_common(counted, "l2"),
            cost=sum(each.cost * each.examples for each in known) / examples,
            interpreted=any(each.interpreted for each in known),
            independent=any(each.independent for each in known),
            kinked=any(each.kinked for each in known),
            largest=max(each.bytes for each in known),
            alike=len({each.penalty for each in known}) == 1,
            squares=squares,
        )

    @property
    def template(self) -> Any:
        """The first shard that holds examples, of which one is left: the loss and the penalties."""
        if self._template is None:
            for place in range(len(self.shards)):
                objective = held(self._token, place, self.names[place], self.shards[place])
                if objective is not None:
                    self._template = one_example(objective)
                    break
            else:
                raise DataError(
                    f"all {len(self.shards)} shards are empty: at least one example is needed"
                )
        return self._template

    @property
    def dimension(self) -> int:
        return int(self.template.dimension)

    @property
    def examples(self) -> int:
        return self.survey.examples

    @property
    def l2(self) -> float:
        return self.survey.l2

    @property
    def cost(self) -> float:
        return self.survey.cost

    @property
    def interpreted(self) -> bool:
        return self.survey.interpreted

    @property
    def independent(self) -> bool:
        return self.survey.independent

    @functools.cached_property
    def record(self) -> list[str]:
        """Fingerprints of the shards' data: no kernel reads them, a checkpoint compares them."""
        return [found or "" for found in self.each(print_of)]

    def value(self, w: Any) -> float:
        """The objective at w, from every example; of a few points it is remembered, because a run
        asks again for its first, its best and its last, and a pass may read files.
        """
        point = finite_vector(w, "w", self.dimension)
        return remembered(self, "values", point, lambda: float(self.mean(value_of, point)))

    def gradient(self, w: Any) -> Vector:
        """A subgradient of the whole objective at w."""
        return np.asarray(self.mean(gradient_of, finite_vector(w, "w", self.dimension)))

    def penalty_value(self, w: Vector) -> float:
        """The penalties: what is left of the objective without examples."""
        if self.survey.alike:
            return float(self.template.penalty_value(w))
        return float(self.mean(penalty_of, w))

    def memory(self) -> str:
        """What a worker holds, in words; known before the first step."""
        survey = self.survey
        return (
            f"{len(self.shards)} shards with {survey.examples:,} examples on "
            f"{current_engine().describe()}: a worker holds one shard at a time, at most "
            f"{survey.largest / 1e6:,.1f} MB of data, and a few vectors of "
            f"{8e-6 * self.dimension:,.1f} MB"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without what belongs to an engine of this process."""
        return {**vars(self), "_handles": None}


# -------------------------------------------------------------------------------------------------
# what is computed of one shard, in whichever process


_held: dict[str, tuple[int, Any]] = {}  # the latest shard of the latest ShardedRisk: one in all


def evaluate(
    token: str, place: int, name: str, shard: object, function: Callable[..., Any], *arguments: Any
) -> Any:
    """The task of every pass: make the shard, unless it is the one at hand, and ask it."""
    objective = held(token, place, name, shard)
    return None if objective is None else function(objective, *arguments)


def held(token: str, place: int, name: str, shard: Any) -> Any:
    """The objective of a shard, None for an empty one. The shard before it is let go first."""
    if isinstance(shard, Objective):
        return shard
    if token not in _held or _held[token][0] != place:
        _held.clear()
        _held[token] = (place, _made(shard, name))
    return _held[token][1]


def _made(shard: Callable[[], Any], name: str) -> Any:
    for attempt in range(READING.attempts):
        try:
            made = shard()
        except NoExamplesError:
            return None
        except OSError as error:
            failure = error
            time.sleep(READING.pause * 2**attempt)
        except Exception as error:
            error.add_note(f"in {name}")
            raise
        else:
            if made is None or (isinstance(made, Objective) and not isinstance(made, type)):
                return made
            raise DataError(f"{name} must return an objective or None, got {told(made)}")
    raise DataError(f"{name} could not be read in {READING.attempts} attempts: {failure}")


def facts_of(objective: Any) -> Facts:
    return Facts(
        dimension=int(objective.dimension),
        examples=int(objective.examples),
        mass=mass(objective),
        l2=float(objective.l2),
        cost=float(objective.cost),
        interpreted=bool(objective.interpreted),
        independent=bool(objective.independent),
        kinked=has_kinks(objective),
        bytes=data_bytes(objective),
        penalty=_penalty_print(objective),
        squares=column_squares(objective),
    )


def _penalty_print(objective: Any) -> str:
    if not isinstance(objective, EmpiricalRisk):
        return fingerprint([type(objective).__name__, objective.record])
    record = objective.record
    names = ("penalty_data", "penalty_indices", "penalty_indptr", "penalty_target", "l1")
    kept = [getattr(record, name, None) for name in names]
    return fingerprint([objective.loss_row.name, objective.l2, objective.l1, kept])


def one_example(objective: Any) -> Any:
    """The loss and the penalties of a mean loss, with its first example; others as they are."""
    if not isinstance(objective, EmpiricalRisk):
        return objective
    row = objective.loss_row
    loss: Any = objective.loss
    if np.ndim(row.level):  # one number for each example
        loss = type(loss)(np.asarray(row.level)[:1])
    return EmpiricalRisk(
        objective.X[:1],
        objective.y[:1],
        loss,
        objective.l2,
        roughness=(objective.roughness, objective.roughness_target),
        l1=objective.l1,
    )


def value_of(objective: Any, w: Vector) -> float:
    return float(objective.value(w))


def gradient_of(objective: Any, w: Vector) -> Vector:
    return np.asarray(objective.gradient(w))


def penalty_of(objective: Any, w: Vector) -> float:
    return float(objective.penalty_value(w))


def print_of(objective: Any) -> str:
    return fingerprint([objective.record, objective.examples])


def _common(counted: list[tuple[float, Facts]], name: str) -> float:
    """The number that all shards have, to the bit, or else its mean."""
    values = {getattr(each, name) for _, each in counted}
    if len(values) == 1:
        return float(values.pop())
    return float(sum(share * getattr(each, name) for share, each in counted))


def _name(place: int, shard: object) -> str:
    """A shard in messages."""
    if isinstance(shard, Objective):
        return f"shard {place}"
    if isinstance(shard, functools.partial):
        words = [repr(each) for each in shard.args]
        words += [f"{key}={each!r}" for key, each in shard.keywords.items()]
        return f"shard {place} ({_called(shard.func)}({', '.join(words)[:LONGEST]}))"
    return f"shard {place} ({_called(shard)})"


LONGEST = 200  # letters of the arguments of a function in a message


def _called(function: Any) -> str:
    return str(getattr(function, "__name__", None) or repr(function)[:LONGEST])
