"""reproduce(): every experiment, its rows, pictures and verdicts, in one folder."""

from __future__ import annotations

import csv
import importlib
import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lighttouch.experiments.claims import Verdict, judge, read_claims
from lighttouch.experiments.pairs import as_text, data_digest, load_pairs
from lighttouch.experiments.provenance import provenance
from lighttouch.experiments.setting import HERE, Measured, Setting, problem_settings, read_config
from lighttouch.experiments.solvers import is_available
from lighttouch.experiments.summary import summary
from lighttouch.experiments.units import Laboratory
from lighttouch.files import write_whole
from lighttouch.validation import one_of, positive_int

EXPERIMENTS = ("figure1", "figure2", "figure3", "tables")
SCALES = ("full", "small")
EVERY_PAIR = 2**62


@dataclass(frozen=True)
class Reproduction:
    """A verdict for every claim, what was measured, and where it is; prints as the summary."""

    scale: str
    folder: Path
    verdicts: dict[str, list[Verdict]]
    measured: dict[str, Measured]
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def as_expected(self) -> bool:
        """Whether every number keeps the bounds stated for this scale."""
        return all(
            verdict.as_expected for verdicts in self.verdicts.values() for verdict in verdicts
        )

    def __str__(self) -> str:
        return summary(self.scale, self.verdicts, self.measured, self.seconds, self.notes)


def reproduce(
    scale: str = "full",
    only: str | Sequence[str] | None = None,
    data: object = None,
    output: str | Path = Path("results/reproduce"),
    progress: bool = True,
    seeds: int | None = None,
    resume: bool = True,
    workers: int | None = None,
) -> Reproduction:
    """Run the paper's experiments and write rows, provenance, pictures and a summary to
    `output`/`scale`.

    `only` names some of figure1, figure2, figure3, tables. `data` is a file of your own pairs (see
    `pairs.load_pairs`) instead of the generated ones. `seeds` is the number of permutations in the
    figures (5 at full scale, 2 at small, where not given). What was measured before with the same
    settings is read, not run, unless `resume` is False. Untimed runs share `workers` processes.
    """
    began = time.perf_counter()
    one_of(scale, SCALES, "scale")
    chosen = _chosen(only)
    folder = Path(output) / scale
    laboratory = Laboratory(
        Path(output) / "cache",
        resume,
        progress,
        None if workers is None else positive_int(workers, "workers"),
    )
    problem = _problem(scale, data)
    measured: dict[str, Measured] = {}
    verdicts: dict[str, list[Verdict]] = {}
    notes = _notes(chosen)
    for name in chosen:
        laboratory.label = name
        setting = Setting(
            scale,
            problem,
            read_config(name),
            None if seeds is None else positive_int(seeds, "seeds"),
            laboratory,
        )
        measured[name] = importlib.import_module(f"lighttouch.experiments.{name}.run").run(setting)
        verdicts[name] = judge(
            read_claims(HERE / name / "expected.toml"), measured[name].findings, scale
        )
        _write(folder / name, measured[name], laboratory)
        notes += [
            *(f"{name}: {note}" for note in measured[name].notes),
            *_draw(name, folder / name),
        ]
    done = Reproduction(
        scale, folder, verdicts, measured, time.perf_counter() - began, tuple(dict.fromkeys(notes))
    )
    _replace(folder / "summary.md", str(done) + "\n")
    return done


def _chosen(only: str | Sequence[str] | None) -> list[str]:
    names = list(EXPERIMENTS) if only is None else [only] if isinstance(only, str) else list(only)
    for name in names:
        one_of(name, EXPERIMENTS, "only")
    return [name for name in EXPERIMENTS if name in names]


def _problem(scale: str, data: object) -> dict[str, Any]:
    problem = problem_settings(scale) | {
        "data": as_text(data),
        "data_digest": data_digest(as_text(data)),
    }
    if data is not None:
        better, _ = load_pairs(
            problem["data"], EVERY_PAIR if scale == "full" else problem["pairs"], 0
        )
        problem |= {"pairs": better.shape[0], "features": better.shape[1]}
    return problem


def _notes(chosen: list[str]) -> list[str]:
    lines = {
        line: solver["kind"]
        for name in chosen
        for line, solver in read_config(name).get("lines", {}).items()
    }
    return [
        f"{line} is left out: this version of lighttouch has no {kind}"
        for line, kind in lines.items()
        if not is_available(kind)
    ]


def _write(folder: Path, measured: Measured, laboratory: Laboratory) -> None:
    for name, rows in measured.tables.items():
        _write_table(folder / f"{name}.csv", rows)
    about = {
        **provenance(),
        "findings": measured.findings,
        "units": laboratory.provenance(measured.units),
    }
    _replace(folder / "provenance.json", json.dumps(about, indent=1) + "\n")


def _write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    _replace(path, text.getvalue())


def _draw(name: str, folder: Path) -> list[str]:
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        return [
            "no pictures: they need matplotlib (pip install matplotlib); the rows are there, and "
            "a second call only draws"
        ]
    importlib.import_module(f"lighttouch.experiments.{name}.plot").plot(folder)
    return []


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
