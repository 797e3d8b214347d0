"""Environments of the peers: one each, under .bench (ignored by git), made when first needed and
kept.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / ".bench"
INSTALL_LIMIT = 900.0


class Unavailable(RuntimeError):
    """A peer that cannot run here; the message is the reason the table gives for skipping it."""


def python_of(name: str, requirements: tuple[str, ...]) -> Path:
    """The interpreter of the peer's environment, which is made first where it is not there or asks
    for other packages.
    """
    folder = ROOT / name
    stamp, wanted = folder / "requirements.txt", "\n".join(requirements) + "\n"
    python = folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == wanted and python.exists()):
        shutil.rmtree(folder, ignore_errors=True)
        _make(folder, name, requirements)
        stamp.write_text(wanted)
    return python


def _make(folder: Path, name: str, requirements: tuple[str, ...]) -> None:
    began = time.perf_counter()
    print(f"      installing {', '.join(requirements)} into .bench/{name} (once) ...", flush=True)
    try:
        _run([sys.executable, "-m", "venv", str(folder)])
        # pip, not uv: it also takes wheels from a folder named in its configuration
        _run(
            [
                str(folder / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "-q",
                "--disable-pip-version-check",
                *requirements,
            ]
        )
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Unavailable(f"not installed: {_last_line(error)}") from error
    print(f"      {time.perf_counter() - began:.0f} s", flush=True)


def _run(words: list[str]) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT)


def _last_line(error: Exception) -> str:
    told = [
        line
        for line in (getattr(error, "stderr", None) or "").splitlines()
        if line.startswith("ERROR")
    ]
    return told[-1].removeprefix("ERROR: ") if told else str(error).splitlines()[0]
