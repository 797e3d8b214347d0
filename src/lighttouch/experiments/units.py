"""Units of work: one measurement each, kept on disk by its digest; a second call only reads."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lighttouch as lt
from lighttouch.experiments.provenance import provenance
from lighttouch.experiments.rates import rates
from lighttouch.experiments.trajectory import trajectory
from lighttouch.files import write_whole
from lighttouch.running import ProgressBar

Unit = dict[str, Any]
Row = dict[str, Any]

INTERRUPTED = 130
KINDS: dict[str, Callable[[Unit], list[Row]]] = {"trajectory": trajectory, "rates": rates}


def digest(unit: Unit) -> str:
    """The same for the same settings and package version, whatever their order."""
    text = json.dumps({"unit": unit, "lighttouch": lt.__version__}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def measure(unit: Unit) -> dict[str, Any]:
    """Run one unit: its rows, the seconds it took in all, and where."""
    began = time.perf_counter()
    rows = KINDS[unit["kind"]](unit)
    return {
        "unit": unit,
        "rows": rows,
        "wall_seconds": time.perf_counter() - began,
        "provenance": provenance(),
    }


def _measure_or_vanish(unit: Unit) -> dict[str, Any]:
    """In a worker, which Ctrl-C reaches too: the process that waits for it says what happened."""
    try:
        return measure(unit)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)


@dataclass
class Laboratory:
    """Runs units and keeps each when it is finished; an interrupted run goes on with the rest."""

    folder: Path
    resume: bool = True
    progress: bool = True
    workers: int | None = None
    label: str = ""
    _fresh: set[str] = field(default_factory=set)

    def rows(self, units: list[Unit], *, timed: bool = False) -> list[list[Row]]:
        """The rows of every unit. Timed units run one at a time; others share the cores."""
        missing = [unit for unit in units if self._kept(unit) is None]
        bar = ProgressBar(self.progress, f"{self.label:<8} ")
        done = len(units) - len(missing)
        bar.show(done / max(1, len(units)), f"{done} of {len(units)} runs kept from before")
        for unit, finished in self._measured(missing, 1 if timed else self._workers(len(missing))):
            self._keep(finished)
            done += 1
            bar.show(done / len(units), f"{done} of {len(units)} runs, last {name_of(unit)}")
        bar.close()
        return [self._kept(unit)["rows"] for unit in units]  # type: ignore[index]

    def _workers(self, units: int) -> int:
        return max(1, min(units, self.workers or min(4, os.cpu_count() or 1)))

    def _measured(self, units: list[Unit], workers: int) -> Iterator[tuple[Unit, dict[str, Any]]]:
        if workers == 1:
            for unit in units:
                yield unit, measure(unit)
            return
        # Spawned, not forked: a fork of a process with threads may hang. Leaving the block ends the
        # workers, also after an error.
        with multiprocessing.get_context("spawn").Pool(
            workers, signal.signal, (signal.SIGINT, signal.SIG_IGN)
        ) as pool:
            for finished in pool.imap_unordered(_measure_or_vanish, units):
                yield finished["unit"], finished

    def _path(self, unit: Unit) -> Path:
        return self.folder / f"{digest(unit)}.json"

    def _kept(self, unit: Unit) -> dict[str, Any] | None:
        path = self._path(unit)
        if not path.is_file() or not (self.resume or path.name in self._fresh):
            return None
        try:
            kept: dict[str, Any] = json.loads(path.read_text())
        except ValueError:
            return None
        return kept

    def _keep(self, finished: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(finished["unit"])
        write_whole(path, json.dumps(finished, indent=1))
        self._fresh.add(path.name)

    def provenance(self, units: list[Unit]) -> list[dict[str, Any]]:
        """Of every unit: what it was, how long it took and where."""
        kept = [found for unit in units if (found := self._kept(unit))]
        told = ("unit", "wall_seconds")
        return [
            {
                "digest": digest(one["unit"]),
                **{name: one[name] for name in told},
                **one["provenance"],
            }
            for one in kept
        ]


def name_of(unit: Unit) -> str:
    seed = f", seed {unit['seed']}" if "seed" in unit else ""
    return f"{unit['line']}{seed}"
