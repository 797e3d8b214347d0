"""Passes over shards: by the engine of the run, answers in the order of the shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lighttouch.running import ProgressBar, current_engine

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Passes:
    """How shards are visited: with or without progress on the screen."""

    progress: bool = False

    def map(
        self,
        function: Callable[[Item], Answer],
        items: Sequence[Item],
        what: str,
        names: Sequence[str] | None = None,
    ) -> Iterator[Answer]:
        """`function` of every item, in order; `what` is done, for the screen."""
        bar = ProgressBar(self.progress, f"{what}: ")
        answers = current_engine().map(function, [(item,) for item in items], names)
        try:
            for done, answer in enumerate(answers, start=1):
                bar.show(done / len(items), f"{done} of {len(items)} parts")
                yield answer
        finally:
            bar.close()
