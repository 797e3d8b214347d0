"""The constants of a problem that every bound depends on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Concatenate, ParamSpec, TypeVar, cast

from lighttouch.theory.penalties import distance_to_feasible, penalty_above
from lighttouch.validation import positive, positive_int, told


@dataclass(frozen=True)
class Constants:
    """Bounds on the problem's size and slopes, which every bound of the theory depends on.

    Give `penalty`, or `boundary_gradient` to derive it, or both.

    Parameters
    ----------
    constraints : int
        m, how many constraints there are.
    diameter : float
        D_w, the diameter of the domain.
    objective_gradient : float
        G_f, the largest norm of a stochastic gradient of the objective.
    constraint_gradient : float
        G_g, the largest norm of a gradient of a constraint.
    constraint_lipschitz : float
        L_g, the Lipschitz constant of the constraints.
    objective_lipschitz : float
        L_f, the Lipschitz constant of the objective.
    boundary_gradient : float, optional
        rho, the least norm of a subgradient of max g on the boundary.
    penalty : float, optional
        gamma, the weight of the violation in the relaxed objective.
    strong_convexity : float, optional
        lambda, the strong convexity of the objective; MidTouch needs it.

    Raises
    ------
    ValueError
        If a number is not positive, or neither `penalty` nor `boundary_gradient` is given.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ... )
    >>> constants.step_gradient
    2.0
    """

    constraints: int
    diameter: float
    objective_gradient: float
    constraint_gradient: float
    constraint_lipschitz: float
    objective_lipschitz: float
    boundary_gradient: float | None = None
    penalty: float | None = None
    strong_convexity: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "constraints", positive_int(self.constraints, "constraints", most=math.inf)
        )
        for name in (
            "diameter",
            "objective_gradient",
            "constraint_gradient",
            "constraint_lipschitz",
            "objective_lipschitz",
        ):
            object.__setattr__(
                self, name, positive(getattr(self, name), name, zero=name.startswith("objective"))
            )
        for name in ("boundary_gradient", "penalty", "strong_convexity"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(getattr(self, name), name))
        self._check_penalty()

    def _check_penalty(self) -> None:
        if self.boundary_gradient is None:
            if self.penalty is None:
                raise ValueError(
                    "penalty or boundary_gradient must be given, got neither; try "
                    "theory.boundary_gradient(g(v), diameter)"
                )
            return
        if self.penalty is None and self.objective_lipschitz == 0:
            raise ValueError(
                "penalty must be given when objective_lipschitz is 0; any penalty above 0 will do"
            )
        distance_to_feasible(
            0.0, self.chosen_penalty, self.boundary_gradient, self.objective_lipschitz
        )

    @property
    def chosen_penalty(self) -> float:
        """The penalty given, or one just above L_f / rho."""
        if self.penalty is not None:
            return self.penalty
        assert self.boundary_gradient is not None
        return penalty_above(self.boundary_gradient, self.objective_lipschitz)

    @property
    def step_gradient(self) -> float:
        """G_f + gamma G_g, which no stochastic gradient with respect to w exceeds in norm."""
        return self.objective_gradient + self.chosen_penalty * self.constraint_gradient

    @property
    def saddle_gradient(self) -> float:
        """G_f + gamma G_g + gamma L_g D_w, the gradient scale of LightTouch's two players, w and
        p.
        """
        return self.step_gradient + self.chosen_penalty * self.constraint_lipschitz * self.diameter

    @property
    def log_constraints(self) -> float:
        """The 1 + ln m that learning a distribution over m constraints costs."""
        return 1 + math.log(self.constraints)

    @property
    def widened(self) -> Constants:
        """The same with a diameter of at least 1, as LightTouch's results take it."""
        return replace(self, diameter=max(1.0, self.diameter))

    @property
    def needed_strong_convexity(self) -> float:
        """Lambda, refused when it was not given."""
        if self.strong_convexity is None:
            raise ValueError(
                "strong_convexity must be given for MidTouch, got None; try the "
                "objective's l2, or plan_light"
            )
        return self.strong_convexity


Answer = TypeVar("Answer")
Rest = ParamSpec("Rest")


def of_constants(
    function: Callable[Concatenate[Constants, Rest], Answer],
) -> Callable[Concatenate[Constants, Rest], Answer]:
    """A function whose first argument must be `Constants`, and that says so."""

    @functools.wraps(function)
    def checked(constants: Constants, *rest: Rest.args, **named: Rest.kwargs) -> Answer:
        if not isinstance(constants, Constants):
            raise ValueError(
                "constants must be theory.Constants(constraints=..., diameter=..., ...), got "
                f"{told(constants)}"
            )
        return function(constants, *rest, **named)

    return cast("Callable[Concatenate[Constants, Rest], Answer]", checked)
