"""LightTouch as a criterion (Algorithm 2 of the paper): it looks at a few of many constraints per
step and learns which ones matter.

The network, its loss and its optimizer stay the user's; here are the draws, the push and the
distribution p, by the kernels of the core. What was found on S is learned before the next draw, so
that a card need not be waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import CheckpointMismatchError, ConstraintError
from lighttouch.kernels.state.distribution import NOW, probabilities
from lighttouch.solvers.light_touch import BYTES_PER_CONSTRAINT
from lighttouch.torch.costs import COSTS
from lighttouch.torch.learning import Learner, Ranks, refuse_not_finite
from lighttouch.validation import positive, positive_int, refuse_if_too_large

VERSION = 1  # of the state


@dataclass(frozen=True)
class Audit:
    """What an audit of the constraints found.

    Parameters
    ----------
    looked_at : int
        How many constraints were evaluated.
    count : int
        How many there are.
    violated : int
        How many of those looked at were violated.
    mean : float
        The mean of max{0, g_j} over those looked at.
    largest : float
        The largest max{0, g_j}; 0 where none is violated.
    worst : tuple of (int, float)
        The worst constraints by number, with their g_j, the worst first.

    Examples
    --------
    >>> Audit(looked_at=4, count=4, violated=1, mean=0.5, largest=2.0, worst=((3, 2.0),)).share
    0.25
    """

    looked_at: int
    count: int
    violated: int
    mean: float
    largest: float
    worst: tuple[tuple[int, float], ...]

    @property
    def share(self) -> float:
        """Of the constraints looked at that were violated."""
        return self.violated / max(1, self.looked_at)

    def __str__(self) -> str:
        of = "all" if self.looked_at == self.count else f"{self.looked_at:,} of"
        named = ", ".join(f"{j}: {value:.3g}" for j, value in self.worst)
        return (
            f"{of} {self.count:,} constraints: {self.violated:,} violated ({self.share:.2%}), mean "
            f"{self.mean:.3g}, largest {self.largest:.3g}" + (f"; worst {named}" if named else "")
        )


class LightTouch(nn.Module):
    """A penalty on a few of many constraints, which learns the ones that matter.

    Used like a criterion: ``loss = criterion(model(x), y) + touch()``. Each call draws `pushes`
    constraints from a learned distribution p, whose mean violation is the penalty, and looks at
    `checks` others to learn p (Algorithm 2 of the paper). A call costs the same for a thousand and
    for ten million constraints. Through a network nothing is guaranteed: look at `audit()`.

    Parameters
    ----------
    violations : callable
        ``violations(indices)`` takes an int64 tensor of constraint numbers and returns g_j for
        each, a tensor of the same shape that is differentiable in the parameters; positive means
        violated.
    count : int
        The number of constraints.
    checks : int, default=64
        Constraints looked at per call to learn p; at most `count`.
    penalty : float, default=1.0
        The paper's gamma, zero or positive: what one unit of the largest violation costs.
    weight_step_size : float, default=None
        The step eta_p of ln p. None is 1/16, as in the paper, or checks / count where that is
        less: a violation of 1 that is found adds at most 1 to ln p_j, at penalty 1.
    seed : int, default=0
        Of the draws: the same seed and violations give the same draws, on every device.
    pushes : int, default=None
        Constraints drawn from p per call; None is as many as `checks`, 1 is the paper's.
    process_group : ProcessGroup, default=None
        Of `torch.distributed`; None is the default group where there is one. Ranks share the
        draws of one step and merge what they find.

    Raises
    ------
    ValueError
        For numbers out of their range.

    Examples
    --------
    >>> import torch
    >>> from lighttouch.torch import LightTouch
    >>> w = torch.tensor([2.0, 1.0, 0.0], requires_grad=True)
    >>> touch = LightTouch(lambda j: w[j] - w[j + 1], count=2, checks=2)
    >>> touch().item()
    1.0
    """

    def __init__(
        self,
        violations: Callable[[Tensor], Tensor],
        count: int,
        checks: int = 64,
        penalty: float = 1.0,
        weight_step_size: float | None = None,
        seed: int = 0,
        *,
        pushes: int | None = None,
        process_group: Any = None,
    ) -> None:
        super().__init__()
        self.violations = violations
        self.count = positive_int(count, "count")
        self.checks = positive_int(checks, "checks")
        if self.checks > self.count:
            raise ValueError(
                f"checks must be at most the number of constraints, {self.count}, got {checks}"
            )
        self.pushes = self.checks if pushes is None else positive_int(pushes, "pushes")
        self.penalty = positive(penalty, "penalty", zero=True)
        own = min(COSTS.most_weight_step, COSTS.weight_step * self.checks / self.count)
        self.weight_step_size = (
            own
            if weight_step_size is None
            else positive(weight_step_size, "weight_step_size", zero=True)
        )
        self.seed = seed
        refuse_if_too_large(
            self.count * BYTES_PER_CONSTRAINT,
            f"learning which of {self.count:,} constraints matter",
            "group them: one number for the largest violation of several",
            ConstraintError,
        )
        self._ranks = Ranks(process_group)
        rate = self.penalty * self.weight_step_size
        self._learner = Learner(self.count, self.pushes, self.checks, rate, seed)
        self.register_buffer("_where", torch.empty(0), persistent=False)

    @property
    def generator(self) -> np.random.Generator:
        """Of the draws."""
        return self._learner.generator

    @property
    def device(self) -> torch.device:
        """Where the indices are put: `touch.to(device)` moves them."""
        return torch.device(self._where.device)

    @property
    def calls(self) -> int:
        """How often p has learned so far."""
        self._learner.settle()
        return int(self._learner.p.clock[NOW]) - 1

    def forward(self, indices: Tensor | None = None) -> Tensor:
        """The penalty of this step: the mean violation of the constraints drawn from p, times
        `penalty`.

        Parameters
        ----------
        indices : Tensor, default=None
            What `draw()` returned, where the draw must stay outside of a compiled graph.

        Returns
        -------
        Tensor
            A scalar. In evaluation mode nothing is learned and the draws do not advance.
        """
        drawn = self.draw() if indices is None else indices
        values = self.violations(drawn)
        _refuse_shape(values, drawn)
        if values.dtype in (torch.float16, torch.bfloat16):
            values = values.float()  # sums of halves lose what they add
        ranks, compiling = self._ranks, torch.compiler.is_compiling()
        if self.training and not compiling and values.is_cpu and ranks.world == 1:
            slopes = self._learner.taken_in(values.detach(), self.penalty / self.pushes)
            return torch.dot(values, slopes)  # as below, in one operation of autograd's
        own = ranks.share(self.pushes)
        if self.training:
            outside = _found_outside if compiling else _found
            outside(self._learner, values.detach(), own, ranks)
        total = torch.relu(values[:own]).sum()
        return total * (self.penalty * ranks.world / self.pushes)

    def draw(self) -> Tensor:
        """The constraints of the next step: first those that push, then those looked at.

        Returns
        -------
        Tensor
            Their numbers, on the device of this module; on several ranks this rank's part.
        """
        outside = _draw_outside if torch.compiler.is_compiling() else _draw
        return outside(self._learner, self._ranks, self.training, self._where)

    def probabilities(self) -> Tensor:
        """The learned p, exactly: O(m).

        Returns
        -------
        Tensor
            `count` numbers in double precision that add up to 1.
        """
        self._learner.settle()
        return torch.from_numpy(probabilities(self._learner.p))

    @torch.no_grad()
    def remember(self, batch: int = 65_536) -> None:
        """Evaluate every constraint once and begin with what was found (lines 2 and 3 of
        Algorithm 2), with a uniform p. Without it everything counts as satisfied at first.

        Parameters
        ----------
        batch : int, default=65536
            Constraints evaluated at once.
        """
        found = np.empty(self.count)
        for first, values in self._all(batch):
            found[first : first + values.size] = values
        self._learner.begin(np.maximum(found, 0.0))

    @torch.no_grad()
    def audit(self, full: bool = False, batch: int = 65_536, worst: int = 10) -> Audit:
        """Measure the constraints as they are now; nothing is learned from it.

        Parameters
        ----------
        full : bool, default=False
            Whether to look at all constraints, in batches, or at a random sample of 10,000.
        batch : int, default=65536
            Constraints evaluated at once.
        worst : int, default=10
            How many of the worst are named.

        Returns
        -------
        Audit
            Numbers of violated constraints, mean and largest violation, the worst ones.
        """
        found = _Tally(self.count, worst)
        if full or self.count <= COSTS.audited:
            for first, values in self._all(batch):
                found.add(np.arange(first, first + values.size), values)
            return found.audit()
        rng = np.random.default_rng([self.seed, self.calls])
        sample = np.sort(rng.choice(self.count, COSTS.audited, replace=False))
        for first in range(0, sample.size, batch):
            chosen = sample[first : first + batch]
            found.add(chosen, self._evaluated(chosen))
        return found.audit()

    def _all(self, batch: int) -> Iterator[tuple[int, Floats]]:
        for first in range(0, self.count, positive_int(batch, "batch")):
            yield first, self._evaluated(np.arange(first, min(self.count, first + batch)))

    def _evaluated(self, chosen: Indices) -> Floats:
        indices = torch.from_numpy(chosen).to(self.device)
        values = self.violations(indices)
        _refuse_shape(values, indices)
        found = np.asarray(values.detach().double().cpu().numpy())
        if not np.isfinite(found).all():
            refuse_not_finite(chosen, found, None)
        return found

    def get_extra_state(self) -> dict[str, Any]:
        """What `state_dict` holds: p, mu and the generator; a resumed run has the same bits."""
        return {"version": VERSION, "count": self.count, **self._learner.state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_extra_state` returned."""
        if state.get("version") != VERSION or state.get("count") != self.count:
            raise CheckpointMismatchError(
                f"the state must be of version {VERSION} and of {self.count} constraints, got "
                f"version {state.get('version')} and {state.get('count')} constraints"
            )
        self._learner.restore(state)

    def extra_repr(self) -> str:
        """What is printed between the brackets."""
        return (
            f"count={self.count}, checks={self.checks}, pushes={self.pushes}, "
            f"penalty={self.penalty}, weight_step_size={self.weight_step_size:.6g}"
        )


class _Tally:
    """Adds up an audit, batch by batch."""

    def __init__(self, count: int, worst: int) -> None:
        self.count, self.most = count, worst
        self.looked_at, self.violated, self.total = 0, 0, 0.0
        self.numbers, self.values = np.zeros(0, np.int64), np.zeros(0)

    def add(self, numbers: Indices, values: Floats) -> None:
        broken = values > 0.0
        self.looked_at += values.size
        self.violated += int(np.count_nonzero(broken))
        self.total += float(values[broken].sum())
        numbers = np.concatenate([self.numbers, numbers[broken]])
        values = np.concatenate([self.values, values[broken]])
        kept = np.argsort(-values, kind="stable")[: max(1, self.most)]
        self.numbers, self.values = numbers[kept], values[kept]

    def audit(self) -> Audit:
        pairs = zip(self.numbers.tolist(), self.values.tolist(), strict=True)
        largest = float(self.values[0]) if self.values.size else 0.0
        mean = self.total / max(1, self.looked_at)
        worst = tuple(pairs)[: self.most]
        return Audit(self.looked_at, self.count, self.violated, mean, largest, worst)


def _refuse_shape(values: Any, indices: Tensor) -> None:
    if not isinstance(values, Tensor) or values.shape != indices.shape:
        got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ConstraintError(
            f"violations(indices) must return one number per index, a tensor of shape "
            f"{tuple(indices.shape)}, got {got}"
        )


def _draw(learner: Learner, ranks: Ranks, keep: bool, where: Tensor) -> Tensor:
    drawn = learner.draw(ranks, keep)
    return drawn if where.device.type == "cpu" else drawn.to(where.device, non_blocking=True)


def _found(learner: Learner, values: Tensor, own: int, ranks: Ranks) -> None:
    learner.found(values, own, ranks)


_draw_outside = torch.compiler.disable(_draw)  # a compiled graph breaks here and goes on behind
_found_outside = torch.compiler.disable(_found)
