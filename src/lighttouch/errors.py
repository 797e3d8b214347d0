"""What can go wrong; every error says what must hold, what was given and what to try."""

from __future__ import annotations

from collections.abc import Sequence


class DataError(ValueError):
    """The examples cannot be used: not finite, empty, of the wrong shape or type.

    Examples
    --------
    >>> try:
    ...     lt.EmpiricalRisk([[1.0], [float("nan")]], [1.0, 2.0])
    ... except lt.DataError as problem:
    ...     print(problem)
    X must be finite: 1 entry is not, the first at row 1, column 0 (nan); drop or impute them
    """


class NoExamplesError(DataError):
    """There is no example at all; of a shard that is no error."""


class ConstraintError(ValueError):
    """The constraints cannot be used as given.

    Examples
    --------
    >>> try:
    ...     lt.order([0, 1], [1, 1])
    ... except lt.ConstraintError as problem:
    ...     print(type(problem).__name__)
    ConstraintError
    """


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

    Examples
    --------
    >>> rows = lt.LinearConstraints([[1.0], [-1.0]], [0.0, -1.0])  # w <= 0 and w >= 1
    >>> try:
    ...     lt.project([0.5], rows)
    ... except lt.InfeasibleConstraintsError as problem:
    ...     print(sorted(problem.rows))
    [0, 1]
    """

    def __init__(
        self, message: str, rows: Sequence[int] = (), missing: float = float("inf")
    ) -> None:
        super().__init__(message)
        self.rows = tuple(int(row) for row in rows)
        self.missing = missing


class ModelFileError(ValueError):
    """A model file is damaged, truncated, of an unknown version or not a model at all.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.lt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("not a model")
    ...     try:
    ...         lt.load(path)
    ...     except lt.ModelFileError as problem:
    ...         print(type(problem).__name__)
    ModelFileError
    """


class FileProblem(OSError):
    """A file that cannot be read or written, or must not be."""


class CheckpointMismatchError(RuntimeError):
    """A run cannot be resumed on this problem or with these settings.

    Examples
    --------
    >>> first = lt.Problem(lt.EmpiricalRisk(np.eye(2), [1.0, 2.0]), lt.ordering(2))
    >>> other = lt.Problem(lt.EmpiricalRisk(np.eye(2), [1.0, 3.0]), lt.ordering(2))
    >>> solver = lt.FullTouch(penalty=1.0, step_size=0.1)
    >>> state = lt.solve(first, solver, iterations=10).state
    >>> try:
    ...     lt.solve(other, solver, iterations=20, resume=state)
    ... except lt.CheckpointMismatchError as problem:
    ...     print(type(problem).__name__)
    CheckpointMismatchError
    """


class ProjectionError(RuntimeError):
    """No method came near the feasible set, and none proved it empty."""


class EngineError(RuntimeError):
    """Work in parts could not be done: workers were lost again and again, or one took too long.

    Examples
    --------
    >>> issubclass(lt.EngineError, RuntimeError)
    True
    """
