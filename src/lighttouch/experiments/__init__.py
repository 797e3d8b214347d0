"""Every experiment of the paper's Section 6, and its Tables 2 and 3, measured: config -> rows ->
picture.
"""

from lighttouch.experiments.reproduce import EXPERIMENTS, Reproduction, reproduce

__all__ = ["EXPERIMENTS", "Reproduction", "reproduce"]
