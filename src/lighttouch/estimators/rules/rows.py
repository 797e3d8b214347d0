"""A rule as linear rows about a model's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Matrix
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.nested import NestedRows, one_after_another


@dataclass(frozen=True)
class RuleRows:
    """A rule, or a part of one: A w <= b, in the user's units.

    A rule that is `about_order` only compares predictions, so it holds for every increasing
    function of the score too: for a classifier's probability, not only for its log-odds. One that
    holds for the `exponential` of the score holds for a mean that is modelled by its logarithm.
    """

    label: str
    A: Matrix
    b: Floats
    nested: tuple[NestedRows, ...] = ()
    about_order: bool = False
    exponential: bool = False

    @property
    def count(self) -> int:
        return int(self.b.size)


def joined(
    label: str,
    parts: Sequence[RuleRows],
    dimension: int,
    about_order: bool = False,
    exponential: bool = False,
) -> RuleRows:
    """One rule made of all rows of its parts."""
    if not parts:
        empty = sparse.csr_matrix((0, dimension))
        return RuleRows(label, empty, np.zeros(0), (), about_order, exponential)
    A = sparse.vstack([part.A for part in parts], format="csr")
    b = np.concatenate([part.b for part in parts])
    return RuleRows(label, A, b, one_after_another(parts), about_order, exponential)


def stacked(rules: Sequence[RuleRows], dimension: int) -> LinearConstraints:
    """All rows of all rules, one rule after the other."""
    if not rules:
        return LinearConstraints(sparse.csr_matrix((0, dimension)), np.zeros(0))
    rows = LinearConstraints(
        sparse.vstack([rule.A for rule in rules], format="csr"),
        np.concatenate([rule.b for rule in rules]),
    )
    rows.nested = one_after_another(rules)
    return rows
