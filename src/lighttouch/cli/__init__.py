"""The command line: `lighttouch train | predict | check | plan | reproduce | warmup |
completion`.
"""

from lighttouch.cli.main import main

__all__ = ["main"]
