"""`python -m lighttouch` is the command line."""

from lighttouch.cli import program

if __name__ == "__main__":
    program()
