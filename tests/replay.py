"""Which examples, constraints and sets a run of the package chose: noted from its interpreted
loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest import MonkeyPatch

import reference
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.loops.touch import (
    light_touch,
    practical_light_touch,
    pushes,
    sample_losses,
    two_losses,
)


@dataclass
class Recording:
    """The choices in the order in which they were made."""

    examples: list[int] = field(default_factory=list)
    constraints: list[int] = field(default_factory=list)
    subsets: list[list[int]] = field(default_factory=list)

    def replay(self) -> reference.Replayed:
        return reference.Replayed(self.examples, self.constraints, self.subsets)


def record(monkeypatch: MonkeyPatch) -> Recording:
    """From now on, interpreted runs of the paper's algorithms note their choices here."""
    recording = Recording()

    def noting(name: str, twin: Any, note: Any) -> None:
        original = twin.__globals__[name]

        def wrapped(*arguments: Any) -> Any:
            chosen = original(*arguments)
            note(chosen, *arguments)
            return chosen

        monkeypatch.setitem(twin.__globals__, name, wrapped)

    for loop in (sample_losses, two_losses):
        noting(
            "next_example", interpreted(loop), lambda chosen, *_: recording.examples.append(chosen)
        )
    for loop in (light_touch, pushes):
        noting("draw", interpreted(loop), lambda chosen, *_: recording.constraints.append(chosen))
    for loop in (light_touch, practical_light_touch):
        noting(
            "draw_set",
            interpreted(loop),
            lambda _, p, size, rng: recording.subsets.append([int(j) for j in p.chosen[:size]]),
        )
    return recording
