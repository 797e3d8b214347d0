"""The numbers that decide how smoothing is chosen."""

from __future__ import annotations

from dataclasses import dataclass

PULL = 1e-7  # on every parameter, which keeps matrices definite
FIRST_CHOICE = (1e-3, 1e-2)  # strengths of curves and lattices to begin with
STRENGTHS = tuple(10.0 ** (power / 2.0) for power in range(-11, 3))  # of large models


@dataclass(frozen=True)
class SmoothingCosts:
    """How far, how often and on how many examples. None has a measured crossover unless it says
    so; `make bench-models` shows the accuracy of all of them together.
    """

    caution: float = 1.2
    """Factor of the degrees of freedom in cross-validation: above 1, against too little smoothing
    (Wood 2017 recommends 1.2 to 1.5)."""

    first_differences: float = 0.1
    """Weight of a curve's first differences beside its second ones, to begin with."""

    slope_share: float = 0.03
    """Squared weight of a lattice's slopes beside its bends and twists."""

    ridge: float = 2.0
    """Examples' worth of pull towards 0 for parameters without neighbours."""

    least_room: float = 0.02
    """The least that 1 - freedom / examples counts as, so that errors stay finite."""

    least_strength: float = 1e-10
    """Below it a term is not smoothed at all: rounding errors are larger."""

    most_strength: float = 10.0
    """Above it a term is as good as flat."""

    boldness: float = 1.5
    """Power of the factor by which a strength changes: the fixed point itself is slow."""

    largest_change: float = 100.0
    """Of a strength at once: the quadratic model holds nearby only."""

    least_freedom: float = 1e-3
    """Degrees of freedom of a term, below which it counts as smoothed away."""

    settling: int = 12
    """Newton's steps without rules with the last strengths, at most: with a matrix that is a fifth
    off, each leaves a fifth of the way."""

    settled: float = 1e-3
    """Largest change of a parameter, relative to the largest parameter, that ends them. With 1e-4 a
    fit to adult takes 1.1 times as long, with 1e-2 phonemes are 0.3% worse."""

    left_out_steps: int = 10
    """Steps from a fit to the one without some of its examples, all with one matrix."""

    halvings: int = 20
    """Of a step that does not lower the objective: a millionth of it is none."""

    crowded: float = 0.5
    """Degrees of freedom per example, above which strengths begin larger."""

    stiffer: float = 10.0
    """The factor by which they do, again and again."""

    determined: float = 0.3
    """Mean squared residual in units of the labels' variance, below which labels are hardly random:
    1 where they are drawn, 0.1 or less on car evaluations, which rules decide."""

    folds: int = 3
    """Of cross-validation. Convention."""

    enough: int = 1000
    """Held-out rows that decide: further folds are not tried."""

    looser: tuple[float, ...] = (1e-4, 1e-5)
    """Strengths of all terms that are tried one after the other where labels are determined."""

    stale: float = 0.2
    """Change of the weights, relative, from which a Gram matrix is formed anew: forming it was half
    of a fit to labels, and steps with an old one still go downhill."""

    probes: int = 2
    """Random vectors of the trace estimate: its error is about sqrt(2 / (probes * freedom))."""

    trace_residual: float = 0.01
    """Of conjugate gradients, relative: the trace is no more exact."""

    trace_steps: int = 100
    """Of conjugate gradients, at most."""

    judged_dense_entries: float = 1e7
    """Entries of the feature matrix by which smoothing is chosen with a Gram matrix: 120 MB."""

    judged_entries: float = 2e6
    """Entries of the feature matrix by which a large model's smoothing is chosen: hundreds of
    passes over them take seconds."""

    judged_products: float = 1.2e9
    """Products of entries of the same row in a Gram matrix: a second or two. Where all rows are
    judged, the fit without rules is known, and need not be trained again (magic: 10.8 s, 11.4 s
    with a third of it)."""

    least_judged: int = 1000
    """Rows by which smoothing is chosen in any case."""


COSTS = SmoothingCosts()
