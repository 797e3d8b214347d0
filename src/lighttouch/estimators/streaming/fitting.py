"""`fit_files`: what the estimators share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from lighttouch.estimators.streaming.opening import OpenFiles, Wanted, opened, read_dialect
from lighttouch.estimators.streaming.reading import Paths
from lighttouch.estimators.streaming.source import Parts
from lighttouch.estimators.tables import Columns
from lighttouch.estimators.training import on_the_clock
from lighttouch.running import Engine, working_with

Self = TypeVar("Self", bound="FitsFiles")


class FitsFiles:
    """Estimators that can be fitted to rows in files.

    A class offers `_fit_open(files)`; `_other_parts` says which of exposure and qid it takes,
    `_whole_files` whether files are not cut.
    """

    _other_parts: tuple[str, ...] = ()
    _whole_files = False
    n_features_in_: int
    feature_names_in_: Any

    def fit_files(
        self: Self,
        paths: Paths,
        *,
        target: str,
        sample_weight: str | None = None,
        exposure: str | None = None,
        qid: str | None = None,
        drop: Iterable[str] = (),
        csv: Mapping[str, Any] | None = None,
        engine: Engine | None = None,
        progress: bool = False,
    ) -> Self:
        """Fit the model to rows in CSV or Parquet files, which may be larger than memory.

        Rows are read in parts of at most 50,000, once for every pass of the training. No process
        holds more than one part, and samples of the rows by which the model is chosen. The model is
        that of `fit` on the same rows: to the bit where they are one part, else to rounding.

        Parameters
        ----------
        paths : str, path or sequence of them
            Files, patterns such as `loans/*.parquet`, or folders. All files must have the same
            columns; files without rows are fine. Rows come in the order of the files' names.
        target : str
            The column to predict.
        sample_weight : str, optional
            The column with the weight of every row; all equal by default.
        exposure : str, optional
            The column that says how much of each row was observed, for losses with a log link.
        qid : str, optional
            The column with the query of every row, for a ranker. All rows of a query must lie in
            one file, and files are not cut.
        drop : iterable of str, optional
            Columns to leave out.
        csv : dict, optional
            How CSV files are written: "separator", "decimal", "missing" (texts that stand for a
            missing cell), "encoding". Separators are found by themselves.
        engine : Engine, optional
            What reads the files and adds up: `lt.Processes(workers)`, `lt.Ray(address)`, or None
            for this process. The model is the same, to the bit.
        progress : bool, default False
            Whether every pass shows how far it is.

        Returns
        -------
        estimator
            The estimator itself.

        Raises
        ------
        DataError
            If a file cannot be read, has other columns or other kinds of values, or there are no
            rows; the message names the file.
        ConstraintError
            If a rule does not fit the columns.
        InfeasibleConstraintsError
            If the rules contradict each other.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> import lighttouch as lt
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> rng = np.random.default_rng(0)
        >>> for name in ("january.csv", "february.csv"):
        ...     x = rng.random(100)
        ...     rows = np.column_stack([x, 2.0 * x])
        ...     np.savetxt(folder / name, rows, delimiter=",", header="income,limit", comments="")
        >>> model = lt.ConstrainedLinearRegressor()
        >>> model.fit_files(folder / "*.csv", target="limit").coef_.round(3)
        array([2.])
        """
        parts = Parts(target, sample_weight, exposure, qid, tuple(drop))
        wanted = Wanted(paths, parts, read_dialect(csv), bool(progress))
        with working_with(engine):
            return self._fit_wanted(wanted)

    @on_the_clock
    def _fit_wanted(self: Self, wanted: Wanted) -> Self:
        """The same, with the engine that is there."""
        for word, name in wanted.parts.named.items():
            if word in ("exposure", "qid") and word not in self._other_parts:
                raise ValueError(f"{type(self).__name__} takes no {word}, got {name!r}")
        categorical = getattr(self, "categorical_features", None)
        self._fit_open(opened(wanted, categorical, self._whole_files))
        return self

    @abstractmethod
    def _fit_open(self, files: OpenFiles) -> None:
        """Fit to files whose columns are known."""

    def _take_names(self, columns: Columns) -> None:
        """What `fit` learns of the names of a frame."""
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(columns.names, dtype=object)
