"""Where numbers come from: commit, versions, machine."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("lighttouch", "numpy", "scipy", "numba", "llvmlite", "matplotlib")


def provenance() -> dict[str, Any]:
    """What someone needs to know to make the same numbers again."""
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "system": platform.platform(),
        },
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """The commit of the source tree, marked where files differ from it; None when installed from a
    wheel.
    """
    here = Path(__file__).parent
    found = _git(here, "rev-parse", "HEAD")
    if found is None:
        return None
    return found + (" with changes" if _git(here, "status", "--porcelain", "--", "..") else "")


def _git(folder: Path, *words: str) -> str | None:
    try:
        told = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip()


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
