"""All 138 quadratic programs of Maros and Meszaros (1999), 10 seconds each.

    python -m benchmarks.coupled.maros [--folder .bench/maros] [--reference] [NAME ...]

The source archive of the package proxsuite on PyPI holds the set as MATLAB files: 55 MB, fetched
once into the folder. The first run with `--reference` also solves each program with Clarabel (90
seconds, tolerance 1e-9; `pip install clarabel`) and keeps what it found in the folder. An answer is
right if it is feasible to 1e-6 and within 0.1% of Clarabel's optimum, or of the bound that
`lt.solve` proves where Clarabel says AlmostSolved or worse.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import lighttouch as lt
from benchmarks.coupled.programs import Parts, parts_of, quadratic_program

INDEX, ARCHIVE = "https://pypi.org/simple/proxsuite/", "proxsuite-0.8.0.tar.gz"
OPTIMA = "optima.json"
SECONDS = 10.0
RIGHT = 1e-3


def fetch(folder: Path) -> None:
    """The set, out of the archive."""
    with urllib.request.urlopen(INDEX, timeout=60) as answer:
        links = re.findall(r'href="([^"#]+)', answer.read().decode())
    address = urljoin(INDEX, next(each for each in links if each.endswith(ARCHIVE)))
    print(f"fetching {address}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        archive = Path(place) / "archive.tar.gz"
        urllib.request.urlretrieve(address, archive)
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as members:
            for member in members:
                path = Path(member.name)
                data = members.extractfile(member) if path.suffix == ".mat" else None
                if data is not None and path.parent.name == "maros_meszaros_data":
                    (folder / path.name).write_bytes(data.read())


def by_clarabel(stated: Parts) -> tuple[float, str]:
    """Its optimum and its status."""
    import clarabel
    import numpy as np
    import scipy.sparse as sp

    (equal, sides), (rows, right) = stated.equalities, stated.rows
    cones = [clarabel.ZeroConeT(sides.size), clarabel.NonnegativeConeT(right.size)]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit = False, 90.0
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    A, b = sp.vstack([equal, rows], format="csc"), np.concatenate([sides, right])
    P = sp.csc_matrix(sp.triu(stated.P))
    found = clarabel.DefaultSolver(P, stated.q, A, b, cones, settings).solve()
    return float(found.obj_val) + stated.constant, str(found.status)


def optima(files: list[Path], folder: Path) -> dict[str, tuple[float, str]]:
    """By Clarabel, kept in the folder."""
    kept = folder / OPTIMA
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for file in files:
        if file.stem not in known:
            print(f"Clarabel on {file.stem}", flush=True)
            known[file.stem] = by_clarabel(parts_of(file))
            kept.write_text(json.dumps(known, indent=1))
    return {name: (float(value), str(status)) for name, (value, status) in known.items()}


def judged(file: Path, known: dict[str, tuple[float, str]]) -> str:
    """One program, solved: a line is printed; the word says what came of it."""
    try:
        case = quadratic_program(file)
        began = time.perf_counter()
        result = lt.solve(case.problem, time_limit=SECONDS)
    except Exception as error:  # a crash is a result
        print(f"{file.stem:10s} {type(error).__name__}: {str(error)[:120]}", flush=True)
        return "refused" if isinstance(error, lt.DataError) else "crash"
    seconds, value = time.perf_counter() - began, case.evaluate(result.w)
    optimum, status = known.get(file.stem, (math.nan, "not asked"))
    bound = result.lower_bound + case.offset
    off, judge = abs(value - optimum) / max(1.0, abs(optimum)), f"Clarabel {status}"
    if status != "Solved" and not off <= RIGHT:
        off, judge = (value - bound) / max(1.0, abs(value)), "our bound"
    right = off <= RIGHT and case.violation(result.w) <= 1e-6 * max(1.0, float(abs(result.w).max()))
    wrong = result.status is lt.Status.CONVERGED and not right
    verdict = "right" if right else "claimed wrongly" if wrong else "not solved"
    print(
        f"{file.stem:10s} {seconds:6.2f} s {value:16.9g} off {off:8.1e} ({judge}) "
        f"{result.status.name}: {verdict}",
        flush=True,
    )
    return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", type=Path, default=Path(".bench/maros"))
    parser.add_argument("--reference", action="store_true")
    options = parser.parse_args()
    if not list(options.folder.glob("*.mat")):
        fetch(options.folder)
    files = sorted(options.folder.glob("*.mat"), key=lambda file: file.stat().st_size)
    files = [file for file in files if not options.names or file.stem in options.names]
    asked = options.reference or (options.folder / OPTIMA).exists()
    known = optima(files, options.folder) if asked else {}
    lt.solve(quadratic_program(files[0]).problem)  # compiles
    said = [judged(file, known) for file in files]
    for verdict in sorted(set(said)):
        print(f"{said.count(verdict)} {verdict}")
    return 1 if {"crash", "claimed wrongly"} & set(said) else 0


if __name__ == "__main__":
    raise SystemExit(main())
