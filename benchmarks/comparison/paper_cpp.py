"""The paper's own algorithms, transcribed to C++ (paper.cpp): build, feed, run, read back.

    data = prepare(better, worse)
    for checkpoint in run("light", data, iterations=300_000, checkpoints=[10_000, 100_000], seed=0):
        print(checkpoint.iteration, checkpoint.seconds, objective(data, checkpoint.w),
        violation(data, checkpoint.w))

Variants and their parameters (the defaults are the paper's):

- "light": Algorithm 4. group=256 (1: not aggregated), gamma=1, eta_w=16, eta_p=1/16, memory=0.999,
  costs="counted" or "timed" (timed: as in the paper, so no two runs are the same), layout="blocks"
- "full": Algorithm 1 with steps eta_w / sqrt(t). batch=16, gamma=1, eta_w=16, layout="blocks"
- "unconstrained": the same loop without constraints. batch=2, eta_w=16

layout="rows" reads the two vertices of every constraint from arrays, one constraint at a time;
"blocks" knows the lattice, and compares eight pairs of parameters at once. The iterates are the
same. All: box_lower=-10, box_upper=10.

`python -m benchmarks.comparison.paper_cpp --quick` prints a small table, `--self-test` compares the
program with a transcription in NumPy (paper_reference.py).
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import lighttouch as lt
from lighttouch.datasets import ranking_pairs

SOURCE = Path(__file__).with_name("paper.cpp")
CACHE = Path(__file__).resolve().parents[2] / "results" / "paper_cpp"
FLAGS = ["-std=c++17", "-O3", "-march=native", "-ffast-math", "-Wall", "-Wextra"]
PARAMETERS: dict[str, dict[str, Any]] = {
    "light": {
        "group": 256,
        "gamma": 1.0,
        "eta_w": 16.0,
        "eta_p": 1 / 16,
        "memory": 0.999,
        "costs": "counted",
        "layout": "blocks",
    },
    "full": {"batch": 16, "gamma": 1.0, "eta_w": 16.0, "layout": "blocks"},
    "unconstrained": {"batch": 2, "eta_w": 16.0},
}
BOX = {"box_lower": -10.0, "box_upper": 10.0}


class Unavailable(RuntimeError):
    """The program cannot be built on this machine; the message is the reason a benchmark gives for
    skipping it.
    """


class Checkpoint(NamedTuple):
    """The state after `iteration` updates; `seconds` is time in the loop alone and `checks` counts
    single constraints evaluated.
    """

    iteration: int
    seconds: float
    checks: int
    w: np.ndarray
    mean_k_g: float
    mean_k_p: float


@dataclass(frozen=True)
class PairData:
    """Pairs as the program reads them: rows Phi(better) - Phi(worse), and w[lower_j] <= w[upper_j]
    feature by feature.
    """

    folder: Path
    rows: sp.csr_matrix
    lower: np.ndarray
    upper: np.ndarray
    features: int

    @property
    def width(self) -> int:
        return int(np.diff(self.rows.indptr).max())

    @property
    def dimension(self) -> int:
        return int(self.rows.shape[1])


def skip_reason() -> str | None:
    """Why the program cannot run here, or None."""
    return (
        None
        if shutil.which("g++")
        else "g++ was not found on PATH, so the C++ transcription of the paper cannot be built"
    )


def prepare(better: np.ndarray, worse: np.ndarray) -> PairData:
    """Write the pairs' lattice features and the monotonicity constraints where the program finds
    them; once for the same pairs.
    """
    digest = hashlib.blake2b(np.ascontiguousarray(better).tobytes(), digest_size=8)
    digest.update(np.ascontiguousarray(worse).tobytes())
    features = better.shape[1]
    lattice = lt.Lattice([2] * features)
    rows = _canonical(lattice.features(better) - lattice.features(worse))
    lower, upper = monotonicity_pairs(features)
    data = PairData(
        CACHE / f"pairs-{rows.shape[0]}x{features}-{digest.hexdigest()}",
        rows,
        lower,
        upper,
        features,
    )
    if not data.folder.exists():
        with _complete_folder(data.folder) as folder:
            _write(data, folder)
    return data


def run(
    variant: str,
    data: PairData,
    iterations: int,
    checkpoints: Sequence[int] = (),
    seed: int = 0,
    **parameters: Any,
) -> list[Checkpoint]:
    """Run a variant and return its state at each checkpoint and at the end; the seed permutes the
    examples and draws the constraints.
    """
    unknown = set(parameters) - set(PARAMETERS[variant]) - set(BOX)
    if unknown:
        raise ValueError(
            f"{variant} has the parameters {sorted(PARAMETERS[variant] | BOX)}, got "
            f"{sorted(unknown)}"
        )
    stops = np.array(sorted({*checkpoints, iterations}), dtype=np.int64)
    if stops[0] < 1 or stops[-1] > iterations:
        raise ValueError(
            f"checkpoints must lie between 1 and iterations={iterations}, got {stops.tolist()}"
        )
    program = build(data.width)
    with tempfile.TemporaryDirectory() as folder:
        return _run(
            program,
            data,
            stops,
            seed,
            {"variant": variant, **BOX, **PARAMETERS[variant], **parameters},
            Path(folder),
        )


def build(width: int) -> Path:
    """The compiled program for rows of at most `width` nonzeros, named by its source, flags and
    machine.
    """
    reason = skip_reason()
    if reason:
        raise Unavailable(reason)
    command = ["g++", *FLAGS, f"-DWIDTH={width}"]
    native = subprocess.run(
        ["g++", "-march=native", "-Q", "--help=target"], capture_output=True, text=True, check=True
    ).stdout
    digest = hashlib.blake2b(
        SOURCE.read_bytes() + " ".join(command).encode() + native.encode(), digest_size=8
    ).hexdigest()
    program = CACHE / f"paper-{digest}"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = program.with_name(f"{program.name}.{os.getpid()}")
        done = subprocess.run(
            [*command, str(SOURCE), "-o", str(unfinished)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"g++ could not compile {SOURCE.name}: {done.stderr.strip()[:2000]}")
        unfinished.replace(program)
    return program


def objective(data: PairData, w: np.ndarray) -> float:
    """The mean hinge loss over all pairs."""
    return float(np.maximum(0.0, 1.0 - data.rows @ w).mean())


def violation(data: PairData, w: np.ndarray) -> float:
    """The largest violation of a single monotonicity constraint, 0 where all hold."""
    return float(max(0.0, (w[data.lower] - w[data.upper]).max()))


def projected(data: PairData, w: np.ndarray) -> np.ndarray:
    """Project w onto the constraints and the box of the defaults, as the paper does with every
    iterate that it plots.
    """
    return np.asarray(
        lt.project(
            w,
            lt.lattice.increasing([2] * data.features),
            lt.Box(BOX["box_lower"], BOX["box_upper"]),
        ).w
    )


def monotonicity_pairs(features: int) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) vertices of every edge of the 2^D lattice: feature by feature, and by vertex
    within a feature.
    """
    vertices = np.arange(2**features, dtype=np.int32)
    bits = [np.int32(1 << (features - 1 - k)) for k in range(features)]
    lower = np.concatenate([vertices[(vertices & bit) == 0] for bit in bits])
    upper = np.concatenate([vertices[(vertices & bit) == 0] | bit for bit in bits])
    return lower, upper


def _canonical(rows: sp.csr_matrix) -> sp.csr_matrix:
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _padded(data: PairData) -> tuple[np.ndarray, np.ndarray]:
    """Values and vertices as rectangles; a short row is filled with zeros at vertex 0."""
    lengths = np.diff(data.rows.indptr)
    kept = np.arange(data.width) < lengths[:, None]
    values, vertices = np.zeros(kept.shape), np.zeros(kept.shape, dtype=np.int32)
    values[kept], vertices[kept] = data.rows.data, data.rows.indices
    return values, vertices


def _write(data: PairData, folder: Path) -> None:
    values, vertices = _padded(data)
    values.tofile(folder / "values")
    vertices.tofile(folder / "vertices")
    data.lower.astype(np.int32).tofile(folder / "lower")
    data.upper.astype(np.int32).tofile(folder / "upper")


@contextlib.contextmanager
def _complete_folder(folder: Path) -> Iterator[Path]:
    """A folder that appears under its name only when everything in it is written."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix="unfinished-"))
    try:
        yield unfinished
        with contextlib.suppress(OSError):  # another process finished first
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _run(
    program: Path,
    data: PairData,
    stops: np.ndarray,
    seed: int,
    options: dict[str, Any],
    folder: Path,
) -> list[Checkpoint]:
    np.random.default_rng(seed).permutation(data.rows.shape[0]).astype(np.int32).tofile(
        folder / "order"
    )
    stops.tofile(folder / "checkpoints")
    paths = {name: data.folder / name for name in ("values", "vertices", "lower", "upper")}
    paths |= {name: folder / name for name in ("order", "checkpoints", "iterates")}
    numbers = {"dimension": data.dimension, "seed": seed, "cost_example": 2 * (data.features + 1)}
    arguments = [f"{name}={value}" for name, value in (options | numbers | paths).items()]
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program.name} failed: {done.stderr.strip()}")
    iterates = np.fromfile(folder / "iterates").reshape(len(stops), data.dimension)
    return [
        _checkpoint(json.loads(line), w)
        for line, w in zip(done.stdout.splitlines(), iterates, strict=True)
    ]


def _checkpoint(row: dict[str, Any], w: np.ndarray) -> Checkpoint:
    done = row["iteration"]
    return Checkpoint(
        done, row["seconds"], row["checks"], w, row["total_k_g"] / done, row["total_k_p"] / done
    )


def _table(data: PairData, iterations: int) -> None:
    variants: dict[str, tuple[str, dict[str, Any]]] = {
        "unconstrained": ("unconstrained", {}),
        "full, batch 2": ("full", {"batch": 2}),
        "full, batch 16": ("full", {"batch": 16}),
        "light, 96 groups of 256": ("light", {"group": 256}),
        "  the same, index arrays": ("light", {"group": 256, "layout": "rows"}),
        "  the same, timed costs": ("light", {"group": 256, "costs": "timed"}),
        "light, not aggregated": ("light", {"group": 1}),
    }
    columns = {"iterations": 11, "seconds": 9, "us/iter": 9, "checks/iter": 12, "k_g": 7, "k_p": 9}
    columns |= {"objective": 11, "violation": 11, "projected": 11}
    print(f"{'variant':26}" + "".join(f"{name:>{width}}" for name, width in columns.items()))
    for name, (variant, parameters) in variants.items():
        for row in run(
            variant,
            data,
            iterations,
            [max(1, iterations // 16), max(1, iterations // 4)],
            **parameters,
        ):
            print(
                f"{name:26}{row.iteration:11d}{row.seconds:9.3f}"
                f"{1e6 * row.seconds / row.iteration:9.3f}{row.checks / row.iteration:12.1f}"
                f"{row.mean_k_g:7.2f}{row.mean_k_p:9.2f}{objective(data, row.w):11.5f}"
                f"{violation(data, row.w):11.5f}"
                f"{objective(data, projected(data, row.w)):11.5f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.comparison.paper_cpp",
        description="The paper's algorithms in C++, timed.",
    )
    parser.add_argument("--quick", action="store_true", help="20,000 pairs and few iterations")
    parser.add_argument(
        "--self-test",
        action="store_true",
        help="compare with the NumPy transcription on small problems",
    )
    parser.add_argument(
        "--iterations", type=int, help="iterations of every variant (default 300,000; quick 30,000)"
    )
    chosen = parser.parse_args()
    if skip_reason():
        print(f"skipped: {skip_reason()}")
        return
    if chosen.self_test:
        from benchmarks.comparison import paper_reference

        paper_reference.self_test()
        return
    total = chosen.iterations or (30_000 if chosen.quick else 300_000)
    data = prepare(*ranking_pairs(20_000 if chosen.quick else 612_587))
    _table(data, total)


if __name__ == "__main__":
    main()
