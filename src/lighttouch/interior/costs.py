"""Every number of the interior point, in one record: unit, reason, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InteriorCosts:
    """Tolerances, budgets and the choice between dense and sparse."""

    refinements: int = 8
    """Iterative refinements of a solve, while they help."""
    refined: float = 1e-12
    """Residual, relative to the right side, at which a solve needs no refinement. Rounding."""
    least_delta: float = 1e-12
    """Smallest slack per multiplier that a squared row is divided by, in scaled units."""
    negligible_delta: float = 1e-14
    """Weights of dense rows, relative to the largest, that add nothing to a matrix. Rounding."""
    diagonal_shift: float = 1e-9
    """Keeps a factorisation going where P or the equalities are singular; refinement removes its
    effect."""
    dense_shift: float = 1e-15
    """The same for a dense matrix, relative to each diagonal entry."""
    least_shift: float = 1e-13
    """... and in any case, in scaled units."""
    shift_trials: int = 6
    """Larger shifts that are tried before the matrix counts as singular."""
    shift_growth: float = 100.0
    """From one to the next."""
    residual: float = 1e-9
    """Of the conditions of optimality, in scaled units, at which a quadratic under rows is at its
    minimum. Tolerance."""
    scaling_sweeps: int = 8
    """Sweeps of Ruiz's scaling, each of which takes the root of what is left of the differences.
    Tolerance: well-scaled problems take as long with 0 to 20."""
    share_of_step: float = 0.995
    """Of the way to where a slack or a multiplier would turn negative (Mehrotra 1992)."""

    folded_entries: float = 64.0
    """Products per entry of sparse data that forming X'X may take."""
    shortest_dense_run: float = 2000.0
    """Entries, in the mean, of runs of rows with the same parameters that are taken as dense
    matrices: a call of BLAS takes some microseconds, an entry of a sparse row a nanosecond."""
    free_dense_dimension: int = 300
    """Parameters up to which a dense matrix costs next to nothing."""
    dense_rate: float = 2.2e10
    """Multiplications per second of Cholesky's factor."""
    product_rate: float = 4e10
    """... of a product of dense matrices."""
    gram_rate: float = 1e9
    """... of adding up sparse rows in a dense matrix."""
    sparse_rate: float = 2.8e9
    """... of SuperLU."""
    entry_rate: float = 7e6
    """Entries of a sparse factor per second, whatever their products."""
    most_sparse_factor_entries: int = 50_000_000
    """Entries of a sparse factor at most (about a gigabyte)."""
    tiled_products: float = 1e9
    """Multiplications of a Gram matrix from which it is made of tiles on all cores."""
    tiled_entries: float = 2e7
    """Entries of a dense matrix from which a product with a vector uses all cores: two cores take
    half the time for 200 million, and no less for 5 million."""
    tiled_scaled: float = 2e6
    """... and a copy of it with its rows multiplied: most of its time goes into new memory."""
    tile: int = 512
    """Columns of a tile."""
    tall_tile: int = 4096
    """Rows of one that is multiplied by a vector."""
    cached_entries: int = 131_072
    """Entries of a dense matrix that are worked on together (a megabyte): the processor's cache
    holds them, and no memory is asked for anew."""
    short: float = 2e-3
    """Seconds of a dense factor below which nothing else is looked at."""
    dense_share: float = 0.1
    """Of the entries of P and the rows that are not 0, from which all count as dense."""
    order_rate: float = 1e6
    """Rows and parameters per second of finding an order for a sparse factor."""
    ordered_at_once: int = 30_000
    """Rows and parameters up to which an order is found in about a second, whatever they join."""
    widest_level: int = 5_000
    """Rows and parameters that may be equally far from the first one, beyond that: in chains and
    grids a few hundred, in a lattice of 2^13 vertices 20,000, which takes 20 seconds to order."""
    long_row: int = 500
    """Entries of a row that is left out of that, where such rows are few (BOYD1 has 18)."""
    shorter: float = 0.3
    """Seconds of a factor by blocks below which a sparse one is not looked at."""
    largest_block: int = 16
    """Parameters of a block that is eliminated."""
    eliminated_share: float = 0.3
    """Of the parameters that blocks must hold to be worth their work."""
    largest_matrix: float = 2e9
    """Bytes of a dense matrix."""
    most_entries: float = 5e6
    """Entries of rows of which the cost of a sparse factor is asked."""
    typical_steps: int = 25
    """Of a path."""
    proof_again: float = 0.01
    """Of the gap that is proven, at which the next proof is tried: a proof takes as long as
    several steps (support vector regression: nine of them three quarters of the time)."""
    repair_again: float = 0.3
    """Of the complementarity at the last repair of a bound, at which the next is due: a repair
    takes two factors, and with 1 convex regression half as long again."""
    last_rounds: int = 4
    """With rows still broken at the last goal, before the nearest feasible point is tried: a
    projection takes as long as several rounds."""
    again_gap: float = 1e-4
    """Complementarity, relative to the objective, down to which points of a round are kept for the
    next to begin with: later ones are too near to the rows. Convex regression with 500 points takes
    56 steps with it, 67 with ten times as much, 61 with a tenth."""
    nearly_none: float = 0.005
    """Of a working set that a round still adds, below which a feasible point nearby is tried."""
    most_towards_start: float = 0.01
    """Of the way to a start that breaks no row, that a point is moved to break none either. Farther
    away the objective grows too much, and another round is cheaper than asking."""
    restorations: int = 4
    """Moves that bring a point back to where it breaks no row: nearly always 2 or 3. Budget."""
    most_restored: float = 0.5
    """Rows for that, per parameter: of more, the Gram matrix costs as much as a step."""
    restoring_room: float = 0.05
    """Of the worst excess, by which broken rows are satisfied afterwards: next to nothing for the
    objective, and fewer rows break in exchange."""
    near_gap: float = 0.3
    """... of a point made from a start that is near the optimum."""
    free_gap: float = 10.0
    """... of the minimum of a quadratic without its rows: 11 steps on lattice models of 478 and 707
    parameters, 15 with a tenth of it, 21 with a hundredth, 11 with ten times as much."""
    pivots: int = 100
    """Guesses of the rows that hold with equality, before an interior point is tried instead: 10 to
    20 on most lattice models, 53 on one of 1,471 parameters, each a tenth of a factor of all
    parameters (an interior point took 2 to 5 times as long). Budget."""
    pivot_patience: int = 3
    """Guesses that contradict no fewer rows than the best so far, before rows change sides downhill
    only (Kim and Park 2011)."""
    pivot_shift: float = 1e-12
    """Of the diagonal, in a factor of rows that may depend on each other. Rounding."""
    pivot_refinements: int = 2
    """Of multipliers, which take the shift out again."""
    pivot_rounding: float = 1e-10
    """Excess over a row, in units of the largest without rows, that counts as none: rounding, among
    rows that depend on each other (at 1e-12, guesses on prices of computers went in circles)."""
    pivot_least_share: float = 1e-3
    """Of the way to a guess: less is left to the row that is let go first."""
    pivot_block: int = 128
    """Rows that are learnt at once: as many columns as a product with the factor wants."""
    pivot_blocks: float = 2.0
    """Rows per parameter, up to which whole blocks of them are learnt: as many may be held."""
    first_slacks: tuple[float, ...] = (50.0, 50.0, 1e4)
    """How far inside a path begins, in excesses of the worst row, at each attempt: nearer is
    faster, but ill-conditioned rows (LISWET) want to begin far away. The second is for small
    programs in another basis."""
    least_slack: float = 1e-3
    """What counts as excess where nothing is broken."""
    path_steps_per_round: int = 100
    """Of a round at most. Budget."""
    path_patience: int = 12
    """Steps without a better point. Budget."""
    better: float = 0.9
    """Of the merit so far that a point must reach to count as better, so that a path that creeps
    comes to its end. Budget: 0.5 and 0.99 take as long on paths that do not."""
    enough_of_tolerance: float = 0.03
    """Of the tolerance at which no further step is taken: with 0.3, convex regression with 500
    points takes 6 steps of 64 less and ends 5e-6 off."""
    enough_at_once: float = 1e-3
    """... where all rows are in use from the beginning, so that further steps are cheap."""
    goal_shrink: float = 0.1
    """Of the gap that a round aims at, from round to round; the first aims at the objective itself.
    Rows join along the path, of which each round goes a few steps."""
    rows_per_factor: float = 1.0
    """Cost of all rows, in factors, from which a working set is used: it takes twice the steps."""
    all_rows_per_parameter: float = 20.0
    """Rows per parameter, below which all are used."""
    searching_steps: int = 100
    """Of all rounds together."""
    row_rate: float = 1e6
    """Rows per second and step, whatever their entries: some sixty passes over vectors."""
    quick: float = 0.05
    """Seconds per step that all rows may cost in any case."""
    least_joining_rows: int = 200
    """Rows that may join at once."""
    dense_row: float = 0.5
    """Of the parameters that a row must hold to count as dense."""
    dense_dimension: int = 150
    """... and the parameters from which such rows are treated apart: they are so expensive that
    few are used, those that the best point without rows breaks first. With 100 parameters the
    treatment of other rows takes as long, with 200 half as long again, with 500 twice as long."""
    dense_steps: int = 1
    """Steps of a round of dense rows, while they are looked for, that begins near its path: with
    700 parameters and three seeds 7 or 8 steps in all to 1%, with 2 steps 12 to 14."""
    joining_dense_rows_per_parameter: float = 0.75
    """Dense rows that may join at once, per parameter."""
    dense_near: float = 0.2
    """... and so many that are nearest to being broken, per parameter: the next step breaks them.
    With 700 parameters and three seeds 7 or 8 steps in all to 1%, without them 8 to 12."""
    dense_kept: float = 1.25
    """Dense rows of a working set that stay for the next round, per parameter: at a vertex as many
    rows hold the point as there are parameters."""
    joining_rows_per_parameter: float = 4.0
    """... or so many per parameter."""
    no_bound: float = 1e19
    """Size from which a bound counts as infinite, as in files of test problems."""
    most_compared: float = 1e7
    """Entries of rows among which opposite ones are looked for."""
    first_rows: float = 5.0
    """Random rows per parameter that a working set begins with."""
    few_new: float = 0.2
    """Of a working set that joins in a round, below which the next aims at a smaller gap: under
    100,000 dense rows 19 steps, 47 with 0.5."""
    joining_cuts: int = 64
    """Curved constraints linearised per round and family."""
    immovable: float = 1e30
    """Stands for infinity: a slope that stays where it is."""
    repairs: int = 2
    """Corrections of the slopes for a bound; the second removes the rounding of the first."""
    negligible_slope: float = 1e-10
    """Of the largest slope, below which one is put to its bound where it keeps others from
    balancing: too little to change a bound that is good to 1e-9."""
    negligible_products: float = 1e-15
    """Complementarity of a feasible point, relative to the objective, after which nothing is left
    to gain, proven or not. Rounding."""
    correctors: int = 3
    """Corrections for centrality per step, while they lengthen it (Gondzio 1996). A solve each."""
    long_step: float = 0.95
    """Of the way to the target, beyond which no correction is tried."""
    farther: float = 0.2
    """By how much a correction tries to lengthen the step."""
    worth: float = 0.1
    """Of that which it must gain: any gain at all takes convex regression with 500 points a third
    longer, 0.5 a logistic loss half as long again."""
    least_product: float = 0.1
    """Smallest product, in centres, that needs no correction."""
    largest_product: float = 10.0
    """Largest one."""
    little_rise: float = 1e-6
    """Of the bound, relative to itself, that counts as progress while the point is outside."""
    most_multipliers: int = 10_000_000
    """Constraints for which a vector of multipliers is made (80 MB)."""
    searching_lift: float = 1e-5
    """Added to the diagonal of P while rows are looked for, times the root of the goal: where few
    rows hold them, parameters that the objective does not know would run away."""
    last_lift: float = 1e-9
    """The same once they are found; bounds are repaired for it."""
    lift: float = 1e-8
    """Added to the diagonal of P for the steps (not for what they aim at): keeps directions in
    which nothing bends from running away (proximal point, Rockafellar 1976)."""
    most_orthonormal: int = 3000
    """Rows up to which a basis is found in which they are orthonormal, where a path has failed."""
    dependent: float = 1e-10
    """Of the largest singular value, below which rows say nothing about a direction. Rounding."""
    least_lift: float = 1e-13
    """... and at least, where complementarity is smaller than that: without it losses of condition
    1e12 (data of 1e6) take hundreds of steps."""
    first_lift: float = 1e-3
    """Of the diagonal of P for the first point, so that nothing flat runs away."""
    longest_change: float = 4.0
    """Of a prediction per step, where a smooth loss bends like an exponential function."""
    least_loss_curvature: float = 1e-18
    """Of a smooth loss that looks linear. Rounding."""
    linear_rounding: float = 1e4
    """Rounding errors of its own terms that a sum may have left where it should be 0. Rounding."""
    largest_rounding: float = 8.0
    """... and of the largest such sum: the solve spreads them. Without it QAFIRO and QBRANDY have
    no bound. Rounding."""
    sum_rounding: float = 64.0
    """Rounding errors, in units of the sum of the sizes of its terms, that a bound is lowered by.
    NumPy adds in pairs, so that errors grow with the logarithm of the number. Rounding."""
    leftover_reach: float = 100.0
    """How far an optimum may be, in units of the point, for what rounding leaves over: a guess that
    says when to stop, never a proof."""
    rest_rounding: float = 16.0
    """Rounding errors of its terms by which a computed sum may be off. Rounding."""
    eigenvalue_rounding: float = 8.0
    """... and a computed eigenvalue, per row and unit of the trace. Rounding."""
    room_used: float = 0.5
    """Of the room of slopes that exact ones may be away."""
    balance_rounds: int = 3
    """In which parameters are found that nothing bounds. Budget."""
    largest_component: int = 3000
    """Parameters that nothing bounds and rows join, up to which eigenvalues are looked for (about
    a second). Budget: beyond it nothing is proven where nothing is bounded."""
    inverse_iterations: int = 10
    """For the least eigenvalue. A solve each."""
    surely_less: float = 0.5
    """Of what they find, so that a factor shows it: they end a little above."""


COSTS = InteriorCosts()
