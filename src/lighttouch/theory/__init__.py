"""What the paper proves, as numbers: penalties, bounds, plans that reach a wanted accuracy, and its
comparison tables.

Words stand for the paper's letters as in docs/notation.md; every function names the lemma or
theorem it evaluates.
"""

from lighttouch.theory.bounds import (
    full_bound,
    full_step_size,
    light_bound,
    light_constraint_batch,
    light_step_size,
    mid_bound,
    mid_weight_step_size,
    staleness_bound,
)
from lighttouch.theory.constants import Constants
from lighttouch.theory.penalties import (
    PENALTY_MARGIN,
    boundary_gradient,
    box_boundary_gradient,
    box_penalty,
    distance_to_feasible,
    linear_boundary_gradient,
    linear_penalty,
    ordering_boundary_gradient,
    ordering_penalty,
    penalty_above,
    penalty_from_interior_point,
)
from lighttouch.theory.plans import Plan, plan_full, plan_light, plan_mid
from lighttouch.theory.tables import (
    ComparisonRow,
    Sizes,
    checks_table,
    comparison_table,
    iterations_table,
)

__all__ = [
    "PENALTY_MARGIN",
    "ComparisonRow",
    "Constants",
    "Plan",
    "Sizes",
    "boundary_gradient",
    "box_boundary_gradient",
    "box_penalty",
    "checks_table",
    "comparison_table",
    "distance_to_feasible",
    "full_bound",
    "full_step_size",
    "iterations_table",
    "light_bound",
    "light_constraint_batch",
    "light_step_size",
    "linear_boundary_gradient",
    "linear_penalty",
    "mid_bound",
    "mid_weight_step_size",
    "ordering_boundary_gradient",
    "ordering_penalty",
    "penalty_above",
    "penalty_from_interior_point",
    "plan_full",
    "plan_light",
    "plan_mid",
    "staleness_bound",
]
