"""All of it: `make bench-shards`. Each part can be run alone with other sizes."""

from __future__ import annotations

import subprocess
import sys

PARTS = (
    ("rounds", "--picture", "results/shard_rounds.svg"),
    ("engines", "--ray"),
    ("examples", "--shards", "8"),
    ("constraints",),
)

for name, *options in PARTS:
    print(f"\n== {name}", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.shards.{name}", *options], check=False)
