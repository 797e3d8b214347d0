"""The numbers that decide how much of files larger than memory is held at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StreamingLimits:
    """How rows in files are cut into shards, and what is kept of them."""

    rows: int = 50_000
    """Rows of a shard, at most: about 60 MB of features of 100 entries a row. Fewer make the sums
    over shards dear (a Gram matrix of 3,000 parameters is 72 MB), more make workers large."""

    block: int = 1 << 22
    """Bytes of a CSV file that are looked at together while it is cut. Any size does."""

    categories: int = 100_000
    """Different texts of a column, at most: what has more is an identifier, and every one of them
    would be a parameter."""

    classes: int = 1000
    """Different labels, at most: every class is a model, or a threshold."""

    shown: int = 5
    """Columns or files that a message names, at most."""


LIMITS = StreamingLimits()
