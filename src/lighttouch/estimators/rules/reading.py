"""What the user asked for, read and checked: monotone columns and shape constraints."""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttouch.errors import ConstraintError
from lighttouch.estimators.rules.lattice_rows import BoundShape, check_places
from lighttouch.estimators.rules.shapes import ShapeConstraint
from lighttouch.estimators.tables import Columns


def read_monotonic(monotonic_cst: Any, columns: Columns) -> dict[int, int]:
    """Column positions and signs, from a dict by name (or position) or one number a column."""
    if monotonic_cst is None:
        return {}
    if isinstance(monotonic_cst, dict):
        given = [
            (columns.place(name, "monotonic_cst"), sign, name)
            for name, sign in monotonic_cst.items()
        ]
    else:
        signs = np.asarray(monotonic_cst)
        if signs.shape != (len(columns),):
            raise ConstraintError(
                f"monotonic_cst must hold -1, 0 or 1 for each of the {len(columns)} "
                f"columns, got shape {signs.shape}"
            )
        given = [(place, sign, columns[place].name) for place, sign in enumerate(signs.tolist())]
    found = {}
    for place, sign, name in given:
        if isinstance(sign, bool) or sign not in (-1, 0, 1):
            raise ConstraintError(
                f"monotonic_cst must be -1, 0 or 1 for every column, got {sign!r} for {name!r}"
            )
        if sign and columns[place].categorical:
            first = columns[place].categories or ("?",)
            raise ConstraintError(
                f"monotonic_cst for {name!r} needs a column of numbers; it holds text such "
                f"as {first[0]!r}. Give numbers, or order its "
                "categories with CategoryOrder"
            )
        if sign:
            found[place] = int(sign)
    return found


def read_shapes(
    shape_constraints: Any, columns: Columns, monotonic: dict[int, int]
) -> list[BoundShape]:
    """Shape constraints with their columns found; those that ask for increasing columns add to
    `monotonic`.
    """
    single = isinstance(shape_constraints, ShapeConstraint)
    listed = (
        [] if shape_constraints is None else [shape_constraints] if single else shape_constraints
    )
    categorical = [column.categorical for column in columns.columns]
    bound = []
    for shape in listed:
        if not isinstance(shape, ShapeConstraint):
            raise ConstraintError(
                f"shape_constraints must hold rules such as lt.Convex('age'), got {shape!r}"
            )
        places = tuple(columns.place(name, str(shape)) for name in shape.columns)
        pairs = _category_pairs(shape, columns, places) if hasattr(shape, "pairs") else ()
        bound.append(BoundShape(shape, places, pairs))
        check_places(bound[-1], categorical, columns.names)
        if shape.both_increasing:
            _make_increasing(shape, places, columns, monotonic)
    return bound


def _make_increasing(
    shape: ShapeConstraint, places: tuple[int, ...], columns: Columns, monotonic: dict[int, int]
) -> None:
    for place in places:
        if monotonic.get(place, 1) < 0:
            name = columns[place].name
            raise ConstraintError(
                f"{shape} speaks of increasing columns, but monotonic_cst makes {name!r} "
                "decreasing; negate the column"
            )
        monotonic[place] = 1


def _category_pairs(
    shape: Any, columns: Columns, places: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    column = columns[places[0]]
    codes = {category: code for code, category in enumerate(column.categories or ())}
    for pair in shape.pairs:
        for category in pair:
            if column.categorical and category not in codes:
                raise ConstraintError(
                    f"{shape}: {category!r} is not a category of column {column.name!r}; "
                    f"seen were {list(codes)[:8]}"
                )
    return (
        tuple((codes[low], codes[high]) for low, high in shape.pairs) if column.categorical else ()
    )
