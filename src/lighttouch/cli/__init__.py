"""The command line: `lighttouch train | predict | check | plan | reproduce | warmup`."""

from lighttouch.cli.main import main, program

__all__ = ["main", "program"]
