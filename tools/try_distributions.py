"""What `make dist` runs: build the wheel and the source archive, and try both as a user would.

Every environment is new and lies outside the clone. In each of them a small program runs in
isolated mode, so that nothing of the clone can be imported. Interpreters that are not on this
machine are named and left out; that an extra cannot be installed is an error. Several environments
are tried at a time, and several runs of this program do not disturb each other.

    python tools/try_distributions.py                    # all interpreters, extras and checks
    python tools/try_distributions.py --python 3.11 --extras frames,plot --no-types --jobs 1
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION = re.search(  # where pyproject.toml has it from
    r'^__version__ = "(.*)"$',
    (ROOT / "src/lighttouch/__init__.py").read_text("utf-8"),
    re.MULTILINE,
)[1]  # type: ignore[index]
PYTHONS = ("3.11", "3.12", "3.13")
FOR_DEVELOPERS = {"test", "bench", "rivals", "docs", "lint"}
EXTRAS = [name for name in PROJECT["optional-dependencies"] if name not in FOR_DEVELOPERS]
PROGRAMS = ROOT / "tools" / "programs"


def main() -> int:
    """Build, then try each distribution in each interpreter, bare and with each extra alone."""
    asked = arguments()
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        print("make dist needs uv, which could not be found; make installs it into .venv")
        return 1
    found = {name: path for name in asked.python if (path := interpreter(uv, name))}
    for name in asked.python:
        if name not in found:
            print(f"Python {name}: not on this machine, left out")
    if not found:
        return 1
    with tempfile.TemporaryDirectory(prefix="lighttouch-dist-") as folder:
        place = Place(uv, Path(folder))
        wheel, archive = build(place)
        check_contents(wheel)
        # The first try with each interpreter compiles for the others.
        tries = [(wheel, ""), (archive, ""), *((wheel, extra) for extra in asked.extras)]
        work = [
            partial(try_in, place, name, path, *each)
            for each in tries
            for name, path in found.items()
        ]
        if asked.types:
            work.append(partial(check_types, place, next(iter(found.values())), wheel))
        in_parallel(work, asked.jobs)
        for path in (wheel, archive):
            keep(path)
    print("All of it worked.")
    return 0


@dataclass(frozen=True)
class Place:
    """Where one run of this program works: nothing in it is shared with another run."""

    uv: str
    folder: Path


def in_parallel(work: Iterable[Callable[[], str]], jobs: int) -> None:
    """Do all of it, several pieces at a time, and say what each found. A failure ends it."""
    with ThreadPoolExecutor(jobs) as pool:
        started = [pool.submit(each) for each in work]
        try:
            for each in started:
                print(each.result(), flush=True)
        except SystemExit:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=words, default=PYTHONS, help="versions, with commas")
    parser.add_argument("--extras", type=words, default=EXTRAS, help="names, with commas")
    parser.add_argument("--no-types", dest="types", action="store_false")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--jobs", type=int, default=usable, help="environments tried at a time")
    return parser.parse_args()


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """The output of a command; if it fails, that is shown and this program ends."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        check=False,
        text=True,
        cwd=cwd,
        env=clean | variables,
    )
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def build(place: Place) -> tuple[Path, Path]:
    """The wheel and the source archive; the wheel is built from the archive."""
    folder = place.folder / "dist"
    run(place.uv, "build", "--quiet", "--out-dir", folder, ROOT)
    stem = f"{PROJECT['name']}-{VERSION}"
    wheel, archive = (folder / f"{stem}{end}" for end in ("-py3-none-any.whl", ".tar.gz"))
    for path in (wheel, archive):
        print(f"{path.name}: {path.stat().st_size / 1e3:,.0f} kB")
    return wheel, archive


def keep(path: Path) -> None:
    """Put a distribution that worked into dist/ of the clone, whole or not at all."""
    own = ROOT / "dist"
    own.mkdir(exist_ok=True)
    arrived = Path(shutil.copy(path, own / f".{path.name}.{os.getpid()}"))
    arrived.replace(own / path.name)
    print(f"dist/{path.name}")


def check_contents(wheel: Path) -> None:
    """The types are shipped, the licence is there, and nothing but the package is."""
    with zipfile.ZipFile(wheel) as package:
        names = set(package.namelist())
    assert "lighttouch/py.typed" in names, "py.typed is missing from the wheel"
    assert any(name.endswith("licenses/LICENSE") for name in names), "the licence is missing"
    tops = {name.split("/")[0] for name in names}
    assert tops == {"lighttouch", f"lighttouch-{VERSION}.dist-info"}, tops
    print(f"wheel: {len(names)} files, py.typed and the licence among them")


def interpreter(uv: str, version: str) -> Path | None:
    """An interpreter of this version on this machine, whoever installed it."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in sorted(pyenv.glob(f"{version}.*/bin/python")):
        return path
    command = [uv, "python", "find", "--no-python-downloads", version]
    found = subprocess.run(command, capture_output=True, check=False, text=True)
    return Path(found.stdout.strip()) if found.returncode == 0 else None


def try_in(place: Place, version: str, python: Path, what: Path, extra: str) -> str:
    """Install into a new environment, and run the program for the extra."""
    kind = "wheel" if what.suffix == ".whl" else "source archive"
    environment = place.folder / f"{version}{what.suffix}{extra}"
    own = environment_with(place, environment, python, f"{what}[{extra}]" if extra else str(what))
    program = PROGRAMS / (f"with_{extra}.py" if extra else "core.py")
    cache = str(place.folder / f"cache-{version}")
    said = run(own, "-I", program, cwd=environment, LIGHTTOUCH_CACHE_DIR=cache)
    run(own.parent / "lighttouch", "--version", cwd=environment, LIGHTTOUCH_CACHE_DIR=cache)
    shutil.rmtree(environment)
    return f"Python {version}, {kind}{f' [{extra}]' if extra else ''}: {said.strip()}"


def environment_with(place: Place, environment: Path, python: Path, *packages: str) -> Path:
    """A new environment with these packages."""
    run(place.uv, "venv", "--quiet", "--python", python, environment)
    own = environment / "bin" / "python"
    if any("[torch]" in each for each in packages):
        install_torch_for_the_cpu(own)
    run(place.uv, "pip", "install", "--quiet", "--python", own, *packages)
    return own


def install_torch_for_the_cpu(own: Path) -> None:
    """As the Makefile does: the plain build, which comes else, brings gigabytes for cards."""
    pip = [sys.executable, "-m", "pip", "--python", str(own), "install", "-qq", "--no-compile"]
    at_pytorch = ["torch", "--index-url", "https://download.pytorch.org/whl/cpu"]
    for words_of in (["torch==2.13.0+cpu"], [*at_pytorch, "--retries", "1", "--timeout", "20"]):
        if not subprocess.run([*pip, *words_of], capture_output=True, check=False).returncode:
            return


def check_types(place: Place, python: Path, wheel: Path) -> str:
    """Mypy and pyright, from outside, on a program that states what the types are."""
    environment = place.folder / "types"
    own = environment_with(place, environment, python, str(wheel), "mypy", "pyright[nodejs]")
    program = environment / "user.py"
    shutil.copy(PROGRAMS / "typed.py", program)
    run(own, "-m", "mypy", "--strict", program, cwd=environment)
    run(own, "-m", "pyright", "--pythonpath", own, program, cwd=environment)
    return "mypy --strict and pyright, from outside: no errors"


if __name__ == "__main__":
    sys.exit(main())
