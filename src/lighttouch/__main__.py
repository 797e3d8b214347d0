"""`python -m lighttouch` is the command line."""

import sys

from lighttouch.cli import main

if __name__ == "__main__":
    sys.exit(main())
