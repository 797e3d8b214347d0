"""The paper's comparison of algorithms: Table 2 (convex) and Table 3 (strongly convex), up to
constant and logarithmic factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from lighttouch.validation import positive, positive_int


@dataclass(frozen=True)
class Sizes:
    """What the tables depend on; a `strong_convexity` chooses Table 3.

    Table 3 shows D_w beside every penalty, where Theorem mid has none: set `diameter=1` for the
    theorem's own dependence.

    Parameters
    ----------
    constraints : int
        m, how many constraints there are.
    penalty : float
        gamma, the weight of the violation in the relaxed objective.
    diameter : float
        D_w, the diameter of the domain.
    epsilon : float
        The accuracy wanted.
    strong_convexity : float, optional
        lambda, the strong convexity of the objective.
    dimension : int, optional
        d, the number of coordinates; for LLO-FW only.
    oracle_ratio : float, optional
        nu, for LLO-FW only.

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> sizes = lt.theory.Sizes(constraints=1000, penalty=1.0, diameter=1.0, epsilon=0.1)
    >>> round(lt.theory.checks_table("FullTouch", sizes))
    100000
    """

    constraints: int
    penalty: float
    diameter: float
    epsilon: float
    strong_convexity: float | None = None
    dimension: int | None = None
    oracle_ratio: float | None = None

    def __post_init__(self) -> None:
        for name in ("constraints", "dimension"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive_int(getattr(self, name), name))
        for name in ("penalty", "diameter", "epsilon", "strong_convexity", "oracle_ratio"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(getattr(self, name), name))

    @property
    def reach(self) -> float:
        """D_w / epsilon, or D_w / (lambda sqrt(epsilon)): its square is projected SGD's number of
        iterations in either table.
        """
        return self.diameter / (
            self.epsilon
            if self.strong_convexity is None
            else self.strong_convexity * math.sqrt(self.epsilon)
        )

    @property
    def penalized_reach(self) -> float:
        """The reach times the penalty: its square is FullTouch's number of iterations in either
        table.
        """
        return self.penalty * self.reach


class ComparisonRow(NamedTuple):
    """One algorithm's row of Table 2 or 3; it prints aligned.

    Parameters
    ----------
    algorithm : str
        Its name.
    iterations : float or None
        Its iterations, up to constant and logarithmic factors.
    checks : float or str
        Its constraint checks, or what it does instead.

    Examples
    --------
    >>> print(lt.theory.ComparisonRow("ProjectedSGD", 100.0, "projection"))
    ProjectedSGD               100  N/A (projection)
    """

    algorithm: str
    iterations: float | None
    checks: float | str

    def __str__(self) -> str:
        iterations = "" if self.iterations is None else f"{self.iterations:.3g}"
        checks = f"N/A ({self.checks})" if isinstance(self.checks, str) else f"{self.checks:.3g}"
        return f"{self.algorithm:<18}{iterations:>12}  {checks}"


def _full_checks(sizes: Sizes) -> float:
    return sizes.constraints * sizes.penalized_reach**2


def _light_iterations(sizes: Sizes) -> float:
    return math.log(sizes.constraints) * (sizes.diameter * sizes.penalized_reach) ** 2


def _light_checks(sizes: Sizes) -> float:
    learning = sizes.constraints * math.pow(
        math.log(sizes.constraints) * sizes.diameter * sizes.penalized_reach, 1.5
    )
    return _light_iterations(sizes) + learning


def _mid_second_phase(sizes: Sizes) -> float:
    m, log, reach = sizes.constraints, math.log(sizes.constraints), sizes.penalized_reach
    return log * reach**2 + math.pow(m * log * reach, 1.5)


def _mid_first_phase(sizes: Sizes) -> float:
    m, log, reach = sizes.constraints, math.log(sizes.constraints), sizes.penalized_reach
    return m * math.cbrt(log * reach**2) ** 2 + m**2 * log * reach


def _local_frank_wolfe_iterations(sizes: Sizes) -> float | None:
    if sizes.dimension is None or sizes.oracle_ratio is None:
        return None
    return sizes.dimension * (sizes.oracle_ratio * sizes.reach) ** 2


Entry = tuple[Callable[[Sizes], float | None], Callable[[Sizes], float] | str]

CONVEX: dict[str, Entry] = {
    "FullTouch": (lambda sizes: sizes.penalized_reach**2, _full_checks),
    "LightTouch": (_light_iterations, _light_checks),
    "ProjectedSGD": (lambda sizes: sizes.reach**2, "projection"),
    "OnlineFrankWolfe": (lambda sizes: sizes.reach**3, "linear optimization"),
    "LocalFrankWolfe": (_local_frank_wolfe_iterations, "local linear oracle"),
}
STRONGLY_CONVEX: dict[str, Entry] = {
    "FullTouch": CONVEX["FullTouch"],
    "MidTouch": (
        lambda sizes: _mid_first_phase(sizes) + _mid_second_phase(sizes),
        lambda sizes: sizes.constraints * _mid_first_phase(sizes) + _mid_second_phase(sizes),
    ),
    "ProjectedSGD": CONVEX["ProjectedSGD"],
    "LocalFrankWolfe": CONVEX["LocalFrankWolfe"],
}


def _table(sizes: Sizes) -> dict[str, Entry]:
    return CONVEX if sizes.strong_convexity is None else STRONGLY_CONVEX


def _entry(algorithm: str, sizes: Sizes) -> Entry:
    table = _table(sizes)
    name = "LocalFrankWolfe" if algorithm == "LLO-FW" else algorithm
    if name not in table:
        which = (
            "Table 2" if sizes.strong_convexity is None else "Table 3 (strong_convexity is given)"
        )
        raise ValueError(
            f"algorithm must be in {which}, got {algorithm!r}; try one of {', '.join(table)}"
        )
    return table[name]


def iterations_table(algorithm: str, sizes: Sizes) -> float | None:
    """The table's number of iterations.

    Parameters
    ----------
    algorithm : str
        A name of the table, such as "LightTouch".
    sizes : Sizes
        What the tables depend on.

    Returns
    -------
    float or None
        The number; None for LLO-FW if `dimension` or `oracle_ratio` is not given.

    Raises
    ------
    ValueError
        If the table has no such algorithm.

    Examples
    --------
    >>> sizes = lt.theory.Sizes(constraints=1000, penalty=1.0, diameter=1.0, epsilon=0.1)
    >>> round(lt.theory.iterations_table("LightTouch", sizes))
    691
    """
    iterations, _ = _entry(algorithm, sizes)
    return iterations(sizes)


def checks_table(algorithm: str, sizes: Sizes) -> float | str:
    """The table's number of constraint checks.

    Parameters
    ----------
    algorithm : str
        A name of the table, such as "LightTouch".
    sizes : Sizes
        What the tables depend on.

    Returns
    -------
    float or str
        The number, or what the algorithm does instead where the table says N/A.

    Raises
    ------
    ValueError
        If the table has no such algorithm.

    Examples
    --------
    >>> sizes = lt.theory.Sizes(constraints=1000, penalty=1.0, diameter=1.0, epsilon=0.1)
    >>> lt.theory.checks_table("ProjectedSGD", sizes)
    'projection'
    """
    _, checks = _entry(algorithm, sizes)
    return checks if isinstance(checks, str) else checks(sizes)


def comparison_table(sizes: Sizes) -> tuple[ComparisonRow, ...]:
    r"""Every row of Table 2, or of Table 3 when `strong_convexity` is given.

    Parameters
    ----------
    sizes : Sizes
        What the tables depend on.

    Returns
    -------
    tuple of ComparisonRow
        The rows, in the order of the paper.

    Examples
    --------
    >>> sizes = lt.theory.Sizes(constraints=1000, penalty=1.0, diameter=1.0, epsilon=0.1)
    >>> print(*lt.theory.comparison_table(sizes), sep="\n")
    FullTouch                  100  1e+05
    LightTouch                 691  5.75e+05
    ProjectedSGD               100  N/A (projection)
    OnlineFrankWolfe         1e+03  N/A (linear optimization)
    LocalFrankWolfe                 N/A (local linear oracle)
    """
    return tuple(
        ComparisonRow(name, iterations_table(name, sizes), checks_table(name, sizes))
        for name in _table(sizes)
    )
