"""What can go wrong; every error says what must hold, what was given and what to try."""

from __future__ import annotations

from collections.abc import Sequence


class DataError(ValueError):
    """The examples cannot be used: not finite, empty, of the wrong shape or type."""


class NoExamplesError(DataError):
    """There is no example at all; of a shard that is no error."""


class ConstraintError(ValueError):
    """The constraints cannot be used as given."""


class InfeasibleConstraintsError(ConstraintError):
    """No point satisfies all constraints.

    Parameters
    ----------
    message : str
        What contradicts what, in words.
    rows : sequence of int, optional
        A small set of constraints that contradict each other, by their numbers.
    missing : float, optional
        By how much the best point would break one of them, for rows of length one; infinite where
        that is not known.
    """

    def __init__(
        self, message: str, rows: Sequence[int] = (), missing: float = float("inf")
    ) -> None:
        super().__init__(message)
        self.rows = tuple(int(row) for row in rows)
        self.missing = missing


class ModelFileError(ValueError):
    """A model file is damaged, truncated, of an unknown version or not a model at all."""


class FileProblem(OSError):
    """A file that cannot be read or written, or must not be."""


class CheckpointMismatchError(RuntimeError):
    """A run cannot be resumed on this problem or with these settings."""


class ProjectionError(RuntimeError):
    """No method came near the feasible set, and none proved it empty."""


class EngineError(RuntimeError):
    """Work in parts could not be done: workers were lost again and again, or one took too long."""
