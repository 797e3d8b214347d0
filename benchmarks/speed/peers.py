"""Other libraries on the paper's problem (benchmarks/peers)."""

from benchmarks.peers.comparison import run

__all__ = ["run"]
