"""Every number of the interior point, in one record: unit, kind, reason.

CONTRIBUTING ("Numbers that decide") lists the kinds; `python -m benchmarks.thresholds` runs the
experiments that are named here. Those of single steps use six small problems
(`benchmarks/thresholds/interior.py`); numbers of steps are of 2026-11-18.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InteriorCosts:
    """Tolerances, budgets and the choice between dense and sparse."""

    refinements: int = 8
    """Iterative refinements of a solve, while they help. Budget: a solve each."""
    refined: float = 1e-12
    """Residual, relative to the right side, at which a solve needs no refinement. Rounding: some
    4,500 EPSILON, for sums of many terms."""
    least_delta: float = 1e-12
    """Smallest slack per multiplier that a squared row is divided by, in scaled units. Rounding."""
    negligible_delta: float = 1e-14
    """Weights of dense rows, relative to the largest, that add nothing to a matrix. Rounding."""
    diagonal_shift: float = 1e-9
    """Keeps a factorisation going where P or the equalities are singular; refinement removes its
    effect. Rounding."""
    dense_shift: float = 1e-15
    """The same for a dense matrix, relative to each diagonal entry. Rounding: 4.5 EPSILON."""
    least_shift: float = 1e-13
    """... and in any case, in scaled units. Rounding."""
    shift_trials: int = 6
    """Larger shifts that are tried before the matrix counts as singular. Budget: a factorisation
    each."""
    shift_growth: float = 100.0
    """From one to the next. Tuning: not measured; six trials reach 1e-3."""
    residual: float = 1e-9
    """Of the conditions of optimality, in scaled units, at which a quadratic under rows is at its
    minimum. Tolerance."""
    scaling_sweeps: int = 8
    """Sweeps of Ruiz's scaling, each of which takes the root of what is left of the differences.
    Tuning: experiment `scaling_sweeps`, flat; on six small problems 2 and 20 take the same steps
    but for 25 for 23 and 34 for 33, 0 sweeps 0.85 to 1.2 of the time."""
    share_of_step: float = 0.995
    """Of the way to where a slack or a multiplier would turn negative (Mehrotra 1992). Tuning:
    experiment `share_of_step`; with 0.9 six small problems take up to 1.6 times as many steps (53
    for 33), with 0.9995 as many but for 36 for 33."""

    folded_rows: float = 0.3
    """Examples per parameter from which X'X is formed once, instead of rows in every step.
    Crossover: experiment `folded_rows` (least squares in order), equal at 0.45 with 16 of 1,000
    entries per row, at 0.2 with 100 of them and with dense rows; rows take 0.4, 0.5 and 0.7 of the
    time at 0.1, and 1.5, 6 and 1.65 times as long at 0.7."""
    folded_products: float = 1e9
    """Products that forming it from sparse rows may take. Budget: 2.5 seconds; under 20,000 rows of
    200 entries (8e8) a run once took 2.5 s, 8.4 s without it."""
    folded_at_once: float = 1e8
    """... between two looks at the clock. Budget: a quarter of a second."""
    shortest_dense_run: float = 2000.0
    """Entries, in the mean, of runs of rows with the same parameters that are taken as dense
    matrices: a call of BLAS takes some microseconds, an entry of a sparse row a nanosecond.
    Crossover: experiment `shortest_dense_run`, equal at 6,000, 2,000 and 2,000 with 5, 20 and 60
    entries per row; entry by entry takes 0.36, 0.6 and 0.8 of the time at 1,000, and 1.2, 2.5 and
    1.9 times as long at 10,000."""
    free_dense_dimension: int = 300
    """Parameters up to which eigenvalues, or another basis, are asked for by the way, and long rows
    that may come last in an order. Budget: all eigenvalues of 300 take 2.4 ms, two Cholesky
    factors, which know the least one to a factor of 2 only, 1.4 ms (equal at 45)."""
    dense_rate: float = 2.2e10
    """Multiplications per second of Cholesky's factor. Rate: experiment `dense_rate`; 2026-11, two
    cores: factors of 500, 1,000 and 2,000 took 0.63, 0.73 and 0.59 of the expected time."""
    product_rate: float = 4e10
    """... of a product of dense matrices. Rate: experiment `product_rate`; 2026-11: 1.2 to 1.4
    times the expected time."""
    gram_rate: float = 1e9
    """... of adding up sparse rows in a dense matrix. Rate: experiment `gram_rate`; 2026-11: 0.6 to
    1.2 times the expected time."""
    sparse_rate: float = 2.8e9
    """... of SuperLU. Rate: experiment `sparse_rate`; 2026-11: 0.3 of the expected time, so that
    sparse factors are chosen less often than would be best there."""
    entry_rate: float = 7e6
    """Entries of a sparse factor per second, whatever their products. Rate: experiment
    `entry_rate`; 2026-11: 0.3 of the expected time at 2,000 parameters, 0.8 at 200,000."""
    most_sparse_factor_entries: int = 50_000_000
    """Entries of a sparse factor at most. Memory: about a gigabyte."""
    tiled_products: float = 3e8
    """Multiplications of a Gram matrix from which it is made of tiles on all cores. Crossover:
    experiment `tiled_products`, equal at 3e8 (two cores that do nothing else): one core takes 0.7
    of the time at 1e8, 1.1 to 1.3 at 5e8, 1.3 to 1.8 at 1e10."""
    tiled_entries: float = 2e6
    """Entries of a dense matrix from which a product with a vector uses all cores. Crossover:
    experiment `tiled_entries`, equal at 2e6 (two cores that do nothing else): one core takes 0.6 of
    the time at 1e6, 1.5 at 5e6, 1.4 at 2e7 and 5e7."""
    tiled_scaled: float = 6e5
    """... and a copy of it with its rows multiplied: most of its time goes into new memory.
    Crossover: experiment `tiled_scaled`, equal at 6e5 (two cores that do nothing else): one core
    takes 0.6 of the time at 1e5, 1.2 at 1e6, 1.35 at 2e7."""
    tile: int = 512
    """Columns of a tile. Tuning: not measured; a tile of numbers has 2 MB."""
    tall_tile: int = 4096
    """Rows of one that is multiplied by a vector. Tuning: not measured."""
    cached_entries: int = 131_072
    """Entries of a dense matrix that are worked on together. Memory: a megabyte, which the
    processor's cache holds, and no memory is asked for anew."""
    short: float = 1e-3
    """Seconds of a dense factor below which nothing else is looked at. Crossover: experiment
    `short`, equal at 6e-4 (second differences) and 1.4e-3 (rows of 3 entries anywhere): a dense
    factor at once takes 0.3 of the time at 1e-4 of either, and 4.7 and 1.2 times as long at
    2e-3."""
    dense_share: float = 0.1
    """Of the entries of rows that are not 0, from which their Gram matrix is a product of dense
    matrices; P is stored in the same way. Crossover: experiment `dense_share`, equal at 0.09, 0.17
    and 0.18 with 200, 500 and 1,000 parameters: sparse products take 0.6, 0.3 and 0.25 of the time
    at 0.05, and 3.3 to 4 times as long at 0.4."""
    full_share: float = 0.04
    """Of the entries of P and the rows that are not 0, from which a dense factor is taken at once.
    Crossover: experiment `full_share`, equal at 0.025 and 0.045 (bands in 800 and 1,600
    parameters): looking at others takes 0.4 and 0.26 of the time at 0.015, and 1.3 and 1.2 times as
    long at 0.06."""
    order_rate: float = 1e6
    """Rows and parameters per second of finding an order for a sparse factor. Rate: experiment
    `order_rate`; 2026-11: 0.35 to 0.6 of the expected time on chains."""
    ordered_at_once: int = 30_000
    """Rows and parameters up to which an order is found in about a second, whatever they join.
    Budget."""
    widest_level: int = 5_000
    """Rows and parameters that may be equally far from the first one, beyond that: in chains and
    grids a few hundred, in a lattice of 2^13 vertices 20,000, which takes 20 seconds to order.
    Budget."""
    long_row: int = 500
    """Entries of a row that is left out of that, where such rows are few (BOYD1 has 18). Tuning:
    not measured."""
    largest_block: int = 16
    """Parameters of a block that is eliminated. Tuning: experiment `largest_block`, flat; on six
    small problems 2 and 128 take the same steps, and 0.98 to 1.12 of the time."""
    largest_matrix: float = 2e9
    """Bytes of a dense matrix. Memory."""
    most_entries: float = 5e6
    """Entries of rows of which the cost of a sparse factor is asked. Budget: the question takes as
    long as several passes over them."""
    typical_steps: int = 25
    """Steps of a path that estimates of its time count on. Rate: measured once; its six small
    problems take 11 to 37 (experiment `share_of_step`)."""
    proof_again: float = 0.01
    """Of the gap that is proven, at which the next proof is tried. Tuning: measured once; a proof
    takes as long as several steps (support vector regression: nine of them three quarters of the
    time)."""
    repair_again: float = 0.3
    """Of the complementarity at the last repair of a bound, at which the next is due. Tuning:
    experiment `repair_again`; a repair takes two factors: with 1, generated pairs take 1.3 times as
    long, with 0.03 as long as now."""
    last_rounds: int = 4
    """Rounds with rows still broken at the last goal, before the nearest feasible point is tried: a
    projection takes as long as several rounds. Budget: experiment `last_rounds`, flat; 1 and 16
    take the same steps on six small problems."""
    again_gap: float = 1e-4
    """Complementarity, relative to the objective, down to which points of a round are kept for the
    next to begin with: later ones are too near to the rows. Tuning: experiment `again_gap`, flat on
    six small problems with ten times as much and a tenth. Convex regression with 500 points takes
    56 steps with it, 67 with ten times as much, 61 with a tenth."""
    nearly_none: float = 0.005
    """Of a working set that a round still adds, below which a feasible point nearby is tried.
    Tuning: not measured."""
    most_towards_start: float = 0.01
    """Of the way to a start that breaks no row, that a point is moved to break none either. Farther
    away the objective grows too much, and another round is cheaper than asking. Tuning: not
    measured."""
    restorations: int = 4
    """Moves that bring a point back to where it breaks no row: nearly always 2 or 3. Budget."""
    most_restored: float = 0.5
    """Broken rows per parameter up to which a point is moved to where it breaks none. Crossover:
    experiment `most_restored`, between 0.06 and 0.75: under dense rows runs in which points are
    moved take 0.9 of the time at 0.04 and 0.06 (0.6 under 100,000 rows of 2,000 entries, once),
    1.3, 1.1 and 1.2 at 0.75, 1 and 2."""
    restoring_room: float = 0.05
    """Of the worst excess, by which broken rows are satisfied afterwards: next to nothing for the
    objective, and fewer rows break in exchange. Tuning: not measured."""
    near_gap: float = 0.3
    """Complementarity, relative to the objective, of a point made from a start that is near the
    optimum. Tuning: not measured."""
    free_gap: float = 10.0
    """... of the minimum of a quadratic without its rows. Tuning: measured once; 11 steps on
    lattice models of 478 and 707 parameters, 15 with a tenth of it, 21 with a hundredth, 11 with
    ten times as much."""
    pivots: int = 100
    """Guesses of the rows that hold with equality, before an interior point is tried instead: 10 to
    20 on most lattice models, 53 on one of 1,471 parameters, each a tenth of a factor of all
    parameters (an interior point took 2 to 5 times as long). Budget."""
    pivot_shift: float = 1e-12
    """Of the diagonal, in a factor of rows that may depend on each other. Rounding."""
    pivot_refinements: int = 2
    """Of multipliers. Rounding: they take the shift out again."""
    pivot_rounding: float = 1e-10
    """Excess over a row, in units of the largest without rows, that counts as none. Rounding: among
    rows that depend on each other (at 1e-12, guesses on prices of computers went in circles)."""
    pivot_least_share: float = 1e-3
    """Of the way to a guess: less is left to the row that is let go first. Budget."""
    pivot_block: int = 128
    """Rows that are learnt at once: as many columns as a product with the factor wants. Tuning: not
    measured."""
    pivot_blocks: float = 2.0
    """Rows per parameter, up to which what was learnt of them is kept for later models of the same
    matrix: in whole blocks, so that a run that was resumed has the same bits. Budget: of memory,
    and experiment `pivot_blocks`; on a surface of 625 vertices blocks take 1.1, 0.7, 1.3 and 1.0 of
    the time with 1, 2, 3 and 4 rows per parameter, under rows of 3 entries anywhere, of which few
    hold, 1.2, 1.6, 2.9 and 4.1 times as long with 1, 2, 4 and 8."""
    first_slacks: tuple[float, ...] = (50.0, 50.0, 1e4)
    """How far inside a path begins, in excesses of the worst row, at each attempt: nearer is
    faster, but ill-conditioned rows (LISWET) want to begin far away. The second is for small
    programs in another basis. Tuning: experiment `first_slacks`; six small problems take 18, 23,
    21, 11, 18 and 28 steps with 5, 13, 37, 21, 11, 23 and 33 with 50, 17, 39, 21, 11, 25 and 103
    with 500."""
    least_slack: float = 1e-3
    """What counts as excess where nothing is broken, in scaled units. Tuning: experiment
    `least_slack`; 1e-6 takes the same steps on six small problems, 1 takes 19 for 13 and 42 for
    37."""
    path_steps_per_round: int = 100
    """Steps of a round at most. Budget."""
    path_patience: int = 12
    """Steps without a better point. Budget."""
    better: float = 0.9
    """Of the merit so far that a point must reach to count as better, so that a path that creeps
    comes to its end. Budget: experiment `better`, flat; 0.5 and 0.99 take the same steps on six
    small problems."""
    enough_of_tolerance: float = 0.03
    """Of the tolerance at which no further step is taken. Tolerance: with 0.3, convex regression
    with 500 points takes 6 steps of 64 less and ends 5e-6 off."""
    enough_at_once: float = 1e-3
    """... where all rows are in use from the beginning, so that further steps are cheap.
    Tolerance."""
    goal_shrink: float = 0.1
    """Of the gap that a round aims at, from round to round; the first aims at the objective itself.
    Rows join along the path, of which each round goes a few steps. Tuning: experiment
    `goal_shrink`; of six small problems one depends on it: 35 steps with 0.3 and 39 with 0.01 for
    33."""
    rows_per_factor: float = 7.0
    """Cost of all rows, in factors, from which a working set is used: it takes twice the steps or
    more. Crossover: experiment `rows_per_factor`, equal at 5 (rows of 100 entries, d = 900): all
    rows take 0.95 of the time at 2, 1.1 times as long at 6 and 1.9 times at 18; with d = 1,200 0.8
    at 4 and 1.3 at 11."""
    all_rows_per_parameter: float = 20.0
    """Rows per parameter, below which all are used. Crossover: experiment `all_rows_per_parameter`,
    equal at 26 (pairs of convex regression): 0.99 of the time at 13, 3 times as long at 53, 7 times
    at 80."""
    searching_steps: int = 100
    """Steps of all rounds together that estimates of the time count on. Rate: not measured; four
    times as many as of one path."""
    row_rate: float = 1e6
    """Rows per second and step, whatever their entries: some sixty passes over vectors. Rate: not
    measured by an experiment."""
    quick: float = 0.05
    """Seconds per step that all rows may cost in any case. Crossover: experiment `quick`, equal at
    0.02 to 0.03 (rows of 3 entries, d = 100 and 500): all rows take 0.4 and 0.8 of the time at
    0.01, 1.4 and 1.06 at 0.03, 3.5 and 1.5 at 0.1. The value is above it for rows of 12 to 60
    entries, of which all take 0.04 to 0.5 of the time at 0.004 to 0.04."""
    least_joining_rows: int = 200
    """Rows that may join at once. Tuning: experiment `least_joining_rows`; under 8,000 dense rows
    17 steps with 2,000, 11 with 200 and with 20."""
    dense_row: float = 0.5
    """Of the parameters that a row must hold to count as dense. Convention: more than half."""
    dense_steps: int = 1
    """Steps of a round of dense rows, while they are looked for, that begins near its path. Tuning:
    measured once; with 700 parameters and three seeds 7 or 8 steps in all to 1%, with 2 steps 12 to
    14."""
    joining_dense_rows_per_parameter: float = 0.75
    """Dense rows that may join at once, per parameter. Tuning: experiment
    `joining_dense_rows_per_parameter`; under 8,000 dense rows 13 steps with 4, 11 with 0.75 and
    with 0.1."""
    dense_near: float = 0.2
    """... and so many that are nearest to being broken, per parameter: the next step breaks them.
    Tuning: measured once; with 700 parameters and three seeds 7 or 8 steps in all to 1%, without
    them 8 to 12."""
    dense_kept: float = 1.25
    """Dense rows of a working set that stay for the next round, per parameter: at a vertex as many
    rows hold the point as there are parameters. Tuning: not measured."""
    joining_rows_per_parameter: float = 4.0
    """... or so many per parameter. Tuning: experiment `joining_rows_per_parameter`, flat; 0.5 and
    40 take the same steps on six small problems."""
    no_bound: float = 1e19
    """Size from which a bound counts as infinite. Convention: files of test problems (Maros and
    Meszaros 1999) write 1e20."""
    most_compared: float = 1e7
    """Entries of rows among which opposite ones are looked for. Budget: they are sorted."""
    first_rows: float = 5.0
    """Random rows per parameter that a working set begins with. Tuning: experiment `first_rows`,
    flat; 1 and 20 take the same steps on six small problems."""
    few_new: float = 0.2
    """Of a working set that joins in a round, below which the next aims at a smaller gap. Tuning:
    experiment `few_new`, flat on six small problems; measured once under 100,000 dense rows: 19
    steps, 47 with 0.5."""
    joining_cuts: int = 64
    """Curved constraints linearised per round and family. Tuning: experiment `joining_cuts`, flat:
    its problem has one curved constraint."""
    immovable: float = 1e30
    """Stands for infinity: a slope that stays where it is. Rounding: its inverse adds nothing to
    any sum."""
    repairs: int = 2
    """Corrections of the slopes for a bound. Rounding: the second removes that of the first."""
    negligible_slope: float = 1e-10
    """Of the largest slope, below which one is put to its bound where it keeps others from
    balancing. Tolerance: too little to change a bound that is good to 1e-9."""
    negligible_products: float = 1e-15
    """Complementarity of a feasible point, relative to the objective, after which nothing is left
    to gain, proven or not. Rounding."""
    correctors: int = 3
    """Corrections for centrality per step, while they lengthen it (Gondzio 1996). A solve each.
    Tuning: experiment `correctors`; with 0, 1 and 8 a logistic loss in a ball takes 1.3 to 1.5
    times as long, the other five small problems 0.9 to 1.1 of the time."""
    long_step: float = 0.95
    """Of the way to the target, beyond which no correction is tried. Tuning: experiment
    `long_step`; with 0.8 a logistic loss takes 45 steps for 33, with 0.99 all six small problems
    take the same."""
    farther: float = 0.2
    """By how much a correction tries to lengthen the step. Tuning: experiment `farther`; with 0.1
    and 0.5 a logistic loss takes 43 and 45 steps for 33, the other five small problems up to 3 more
    or fewer."""
    worth: float = 0.1
    """Of that which it must gain. Tuning: experiment `worth`; six small problems take 36, 20, 22
    and 34 steps for 37, 21, 23 and 33 with 0.01, and 3 to 5 more with 0.5. Measured once: any gain
    at all takes convex regression with 500 points a third longer."""
    least_product: float = 0.1
    """Smallest product, in centres, that needs no correction. Convention: a tenth of the centre
    (Gondzio 1996)."""
    largest_product: float = 10.0
    """Largest one. Tuning: experiment `largest_product`; Gondzio (1996) takes 10. With 3 and 100 a
    logistic loss takes 44 and 39 steps for 33, the others one more or fewer."""
    little_rise: float = 1e-6
    """Of the bound, relative to itself, that counts as progress while the point is outside.
    Budget."""
    most_multipliers: int = 10_000_000
    """Constraints for which a vector of multipliers is made. Memory: 80 MB."""
    searching_lift: float = 1e-5
    """Added to the diagonal of P while rows are looked for, times the root of the goal: where few
    rows hold them, parameters that the objective does not know would run away. Tuning: experiment
    `searching_lift`; six small problems take the same steps with 1e-8, with 1e-3 but for 35 for
    33."""
    last_lift: float = 1e-9
    """The same once they are found; bounds are repaired for it. Tuning: experiment `last_lift`,
    flat; 0 and 1e-7 take the same steps on six small problems."""
    lift: float = 1e-8
    """Added to the diagonal of P for the steps (not for what they aim at): keeps directions in
    which nothing bends from running away (proximal point, Rockafellar 1976). Tuning: experiment
    `lift`; generated pairs take 21 steps with 0, 27 with 1e-6 and 37 with this, the other five
    small problems the same."""
    most_orthonormal: int = 3000
    """Rows up to which a basis is found in which they are orthonormal, where a path has failed.
    Budget: an SVD of that many rows takes seconds."""
    dependent: float = 1e-10
    """Of the largest singular value, below which rows say nothing about a direction. Rounding."""
    least_lift: float = 1e-13
    """... and at least, where complementarity is smaller than that. Tuning: measured once; without
    it losses of condition 1e12 (data of 1e6) take hundreds of steps."""
    first_lift: float = 1e-3
    """Of the diagonal of P for the first point, so that nothing flat runs away. Tuning: experiment
    `first_lift`, flat; 1e-6 and 1 take the same steps on six small problems."""
    longest_change: float = 4.0
    """Of a prediction per step, where a smooth loss bends like an exponential function. Tuning:
    experiment `longest_change`; a logistic loss takes 98 steps with 1, 33 with 4 and 26 with 16, in
    2.4 and 1.05 times the time."""
    least_loss_curvature: float = 1e-18
    """Of a smooth loss that looks linear. Rounding: keeps its inverse finite."""
    linear_rounding: float = 1e4
    """Rounding errors of its own terms that a sum may have left where it should be 0. Rounding."""
    largest_rounding: float = 8.0
    """... and of the largest such sum: the solve spreads them. Without it QAFIRO and QBRANDY have
    no bound. Rounding."""
    sum_rounding: float = 64.0
    """Rounding errors, in units of the sum of the sizes of its terms, that a bound is lowered by.
    NumPy adds in pairs, so that errors grow with the logarithm of the number. Rounding."""
    leftover_reach: float = 100.0
    """How far an optimum may be, in units of the point, for what rounding leaves over. Tolerance: a
    guess that says when to stop, never a proof."""
    rest_rounding: float = 16.0
    """Rounding errors of its terms by which a computed sum may be off. Rounding."""
    eigenvalue_rounding: float = 8.0
    """... and a computed eigenvalue, per row and unit of the trace. Rounding."""
    room_used: float = 0.5
    """Of the room of slopes that exact ones may be away. Rounding: the other half is for what is
    not computed exactly."""
    balance_rounds: int = 3
    """In which parameters are found that nothing bounds. Budget."""
    largest_component: int = 3000
    """Parameters that nothing bounds and rows join, up to which eigenvalues are looked for (about
    a second). Budget: beyond it nothing is proven where nothing is bounded."""
    inverse_iterations: int = 10
    """For the least eigenvalue. Budget: a solve each."""
    surely_less: float = 0.5
    """Of what they find, so that a factor shows it: they end a little above. Tolerance: a bound
    loses half of what this curvature gives."""


COSTS = InteriorCosts()
