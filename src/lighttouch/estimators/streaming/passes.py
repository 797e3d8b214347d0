"""Passes over shards: by an engine or in this process, results in the order of the shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from lighttouch.running import ProgressBar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Passes:
    """How shards are visited."""

    engine: Any = None
    progress: bool = False

    def map(
        self, function: Callable[[Item], Answer], items: Sequence[Item], what: str
    ) -> Iterator[Answer]:
        """`function` of every item, in order."""
        bar = ProgressBar(self.progress, f"{what} ")
        try:
            for done, answer in enumerate(self._answers(function, items), start=1):
                bar.show(done / len(items), f"{done} of {len(items)} parts")
                yield answer
        finally:
            bar.close()

    def _answers(
        self, function: Callable[[Item], Answer], items: Sequence[Item]
    ) -> Iterable[Answer]:
        if self.engine is None:
            return map(function, items)
        answers: Iterable[Answer] = self.engine.map(function, items)
        return answers
