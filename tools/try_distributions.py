"""What `make dist` runs: build the wheel and the source archive, and try both as a user would.

Every environment is new and lies outside the clone. In each of them a small program runs in
isolated mode, so that nothing of the clone can be imported. Interpreters that are not on this
machine are named and left out; that an extra cannot be installed is an error.

    python tools/try_distributions.py                    # all interpreters, extras and checks
    python tools/try_distributions.py --python 3.11 --extras frames,plot --no-types
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
    wheel, archive = build(uv)
    check_contents(wheel)
    with tempfile.TemporaryDirectory(prefix="lighttouch-dist-") as folder:
        place = Path(folder)
        found = {name: path for name in asked.python if (path := interpreter(uv, name))}
        for name in asked.python:
            if name not in found:
                print(f"Python {name}: not on this machine, left out")
        if not found:
            return 1
        for name, path in found.items():
            for distribution in (wheel, archive):
                try_in(uv, place, name, path, distribution, "")
            for extra in asked.extras:
                try_in(uv, place, name, path, wheel, extra)
        if asked.types:
            check_types(uv, place, next(iter(found.values())), wheel)
    print("All of it worked.")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=words, default=PYTHONS, help="versions, with commas")
    parser.add_argument("--extras", type=words, default=EXTRAS, help="names, with commas")
    parser.add_argument("--no-types", dest="types", action="store_false")
    return parser.parse_args()


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def run(*command: str | Path, quiet: bool = True, cwd: Path | None = None) -> str:
    """The output of a command; if it fails, that is shown and this program ends."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        check=False,
        text=True,
        cwd=cwd,
        env=clean,
    )
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    if not quiet:
        print(done.stdout, end="", flush=True)
    return done.stdout


def build(uv: str) -> tuple[Path, Path]:
    """The wheel and the source archive, in dist/; the wheel is built from the archive."""
    run(uv, "build", "--quiet", "--out-dir", ROOT / "dist", ROOT)
    stem = f"{PROJECT['name']}-{VERSION}"
    wheel, archive = (ROOT / "dist" / f"{stem}{end}" for end in ("-py3-none-any.whl", ".tar.gz"))
    for path in (wheel, archive):
        print(f"dist/{path.name}: {path.stat().st_size / 1e3:,.0f} kB")
    return wheel, archive


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


def try_in(uv: str, place: Path, version: str, python: Path, what: Path, extra: str) -> None:
    """Install into a new environment, and run the program for the extra."""
    kind = "wheel" if what.suffix == ".whl" else "source archive"
    environment = place / f"{version}{what.suffix}{extra}"
    own = environment_with(uv, environment, python, f"{what}[{extra}]" if extra else str(what))
    program = PROGRAMS / (f"with_{extra}.py" if extra else "core.py")
    print(f"Python {version}, {kind}{f' [{extra}]' if extra else ''}:", end=" ", flush=True)
    os.environ["LIGHTTOUCH_CACHE_DIR"] = str(place / f"cache-{version}")
    run(own, "-I", program, quiet=False, cwd=environment)
    run(own.parent / "lighttouch", "--version", cwd=environment)
    shutil.rmtree(environment)


def environment_with(uv: str, environment: Path, python: Path, *packages: str) -> Path:
    """A new environment with these packages."""
    run(uv, "venv", "--quiet", "--python", python, environment)
    own = environment / "bin" / "python"
    if any("[torch]" in each for each in packages):
        install_torch_for_the_cpu(own)
    run(uv, "pip", "install", "--quiet", "--python", own, *packages)
    return own


def install_torch_for_the_cpu(own: Path) -> None:
    """As the Makefile does: the plain build brings gigabytes for cards. Any will do in the end."""
    pip = [sys.executable, "-m", "pip", "--python", str(own), "install", "-qq", "--no-compile"]
    at_pytorch = ["torch", "--index-url", "https://download.pytorch.org/whl/cpu"]
    for words_of in (["torch==2.13.0+cpu"], at_pytorch):
        if not subprocess.run([*pip, *words_of], capture_output=True, check=False).returncode:
            return
    print("(the plain build of PyTorch)", end=" ", flush=True)


def check_types(uv: str, place: Path, python: Path, wheel: Path) -> None:
    """Mypy and pyright, from outside, on a program that states what the types are."""
    environment = place / "types"
    own = environment_with(uv, environment, python, str(wheel), "mypy", "pyright[nodejs]")
    program = place / "user.py"
    shutil.copy(PROGRAMS / "typed.py", program)
    run(own, "-m", "mypy", "--strict", program, cwd=place)
    print("mypy --strict: no errors")
    run(own, "-m", "pyright", "--pythonpath", own, program, cwd=place)
    print("pyright: no errors")


if __name__ == "__main__":
    sys.exit(main())
