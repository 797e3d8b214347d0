"""Files larger than an imposed memory limit, trained by `fit_files` and by the command line.

    python -m benchmarks.larger_than_memory                        # 4 GB, 1 GB a process
    python -m benchmarks.larger_than_memory --limit 480 --times 1  # smaller

Every process of a run is ended (SIGKILL) as soon as its resident memory is above the limit, looked
at twenty times a second. The table says how far each came below it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS = 24
GROUP = 50_000  # rows of a row group
FILE_GROUPS = 10  # row groups of a file
MEGABYTE = 1 << 20

FIT = """
import sys
import lighttouch as lt
if __name__ == "__main__":
    engine = lt.Processes(int(sys.argv[2])) if int(sys.argv[2]) else None
    model = lt.{model}.fit_files(sys.argv[1], target="y", engine=engine)
    print(model.status_, model.training_record_.rows)
"""
LATTICE = 'LatticeRegressor(monotonic_cst={"x0": 1}, lattices=0, keypoints=8)'
LINEAR = 'ConstrainedLinearRegressor(monotonic_cst={"x0": 1})'


def write_rows(folder: Path, size: float) -> int:
    """Files of so many bytes together; how many rows they hold."""
    import pyarrow
    import pyarrow.parquet

    there = sum(1 for _ in folder.iterdir())
    rng, rows, number = np.random.default_rng(there), there * FILE_GROUPS * GROUP, there
    while sum(each.stat().st_size for each in folder.iterdir()) < size:
        path = folder / f"part-{number:05d}.parquet"
        writer = None
        for _ in range(FILE_GROUPS):
            X = rng.random((GROUP, COLUMNS))
            y = X[:, 0] + np.sin(3.0 * X[:, 1]) + rng.normal(0.0, 0.3, GROUP)
            columns = {f"x{k}": X[:, k] for k in range(COLUMNS)} | {"y": y}
            table = pyarrow.table(columns)
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
        rows, number = rows + FILE_GROUPS * GROUP, number + 1
    return rows


def resident(pid: int) -> int:
    """Bytes of a process, 0 where it has ended."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> list[int]:
    """A process and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *(each for child in children for each in family(int(child)))]


def watched(words: list[str], limit: int) -> tuple[bool, int, float]:
    """Whether a command ended well under the limit, its largest process, and seconds."""
    began, largest = time.perf_counter(), 0
    process = subprocess.Popen(words)
    while process.poll() is None:
        for pid in family(process.pid):
            size = resident(pid)
            largest = max(largest, size)
            if size > limit:
                process.kill()
        time.sleep(0.05)
    return process.returncode == 0, largest, time.perf_counter() - began


def commands(folder: Path, place: Path) -> dict[str, list[str]]:
    pattern = str(folder / "*.parquet")
    for name, model in (("lattice", LATTICE), ("linear", LINEAR)):
        (place / f"{name}.py").write_text(FIT.replace("{model}", model), encoding="utf-8")
    train = [sys.executable, "-m", "lighttouch", "train", pattern, "--target", "y"]
    train += ["--linear", "--increasing", "x0", "-o", str(place / "model.lt"), "--quiet"]
    return {
        "fit_files, linear": [sys.executable, str(place / "linear.py"), pattern, "0"],
        "fit_files, curves": [sys.executable, str(place / "lattice.py"), pattern, "0"],
        "fit_files, linear, 2 processes": [sys.executable, str(place / "linear.py"), pattern, "2"],
        "lighttouch train --linear": train,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=1000.0, help="MB that a process may hold")
    parser.add_argument("--times", type=float, default=4.0, help="size of the files, in limits")
    parser.add_argument("--only", help="runs whose names begin so")
    parser.add_argument("--folder", type=Path, help="where the files are, or are put and stay")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="lighttouch-shards-"))
    try:
        folder = options.folder or place / "rows"
        folder.mkdir(parents=True, exist_ok=True)
        rows = write_rows(folder, options.times * options.limit * MEGABYTE)
        size = sum(each.stat().st_size for each in folder.iterdir()) / MEGABYTE
        print(f"{rows:,} rows of {COLUMNS + 1} columns, {size:,.0f} MB of Parquet", flush=True)
        good = True
        for name, words in commands(folder, place).items():
            if options.only and not name.startswith(options.only):
                continue
            ended, largest, seconds = watched(words, int(options.limit * MEGABYTE))
            good = good and ended
            told = "ended well" if ended else "FAILED"
            print(
                f"{name}: {told}, largest process {largest / MEGABYTE:,.0f} MB of "
                f"{options.limit:,.0f} allowed, {seconds:.0f} s",
                flush=True,
            )
        return 0 if good else 1
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
