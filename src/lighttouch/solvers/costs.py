"""Every number that decides what a solver does, in one record: unit, kind, reason.

CONTRIBUTING ("Numbers that decide") lists the kinds; `python -m benchmarks.thresholds` runs the
experiments that are named here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverCosts:
    """When which method is cheaper, how long to wait, and what counts as enough."""

    # -- the driver -----------------------------------------------------------------------------
    chunk_seconds: float = 0.1
    """Seconds between two looks at clock and signals. Budget: a limit is kept within 0.2 s."""
    first_chunk: int = 16
    """Iterations of the first chunk, before any was timed. Budget: few, so that slow functions of
    users end in time."""
    chunk_growth: int = 8
    """Times longer than the last that a chunk may be. Budget: one cheap chunk misleads little."""
    shortest_chunk: float = 1e-9
    """Seconds; a clock that did not move counts as this. Rounding: keeps a quotient finite."""
    default_passes: int = 10
    """Passes over the examples where no limit is given and the solver does not stop. Budget: not a
    promise of accuracy."""
    fewest_default_iterations: int = 20_000
    """Iterations, however few examples there are. Budget."""
    most_default_iterations: int = 5_000_000
    """Iterations, however many examples there are. Budget: about ten seconds."""
    recording_share: float = 0.05
    """Of the run's counted work that rows of the history may take. Budget: a promise of `solve`."""
    free_record: float = 1e5
    """Operations of a row that nobody notices (about 0.1 ms). Budget."""
    curvature_seconds: float = 1.5e-10
    """Seconds per cubed dimension of the least eigenvalue of a quadratic and its factor; a bound
    from them is left out where a time limit leaves less. Rate: measured once, 1,500 parameters: 0.4
    s."""
    overtime: float = 0.05
    """Seconds beyond the time limit that a projection just begun may still take, and not more than
    the limit itself. Budget: looks at the clock are up to 0.1 s apart, and the answer is checked
    afterwards."""
    signal_grace: float = 0.5
    """Seconds after a signal in which functions in Python may still be called, so that the last
    point can be looked at. Budget: a run ends within 1 s of a signal."""
    final_projection_share: float = 0.2
    """Of the time limit that is kept for the projection of an answer that needs one. Budget."""
    looking_share: float = 0.01
    """Of a run's time in which points are checked to know whether one must be projected. Budget."""
    feasibility_tolerance: float = 1e-8
    """Excess over a constraint, in units of its row and of the point, that still counts as
    rounding. Tolerance: NOT_PROJECTED is said beyond it."""
    bound_rounding: float = 1e-9
    """By how much a bound may exceed the objective of a feasible point, relative to 1 and to it.
    Rounding."""
    claim_rounding: float = 1e-6
    """Relative rounding of a gap that is compared with a tolerance. Rounding."""
    far_lengths: tuple[float, ...] = (1e2, 1e4, 1e6)
    """Distances at which a direction is tried along which an iterate ran away. Tolerance: far
    enough that what falls without end is told from what is flat."""
    still: float = 1e-9
    """Part of a direction, relative to its largest, that counts as none. Rounding."""
    falling: float = 10.0
    """How much more an objective must fall with each of those distances to fall without end.
    Tolerance: a hundred times where it is linear, so that a tenth of that counts too."""
    blown_up: float = 1e150
    """Size of a parameter whose square overflows. Rounding."""

    # -- which method: Automatic ------------------------------------------------------------------
    cheap_pass: float = 1e8
    """Operations of a full gradient up to which FISTA goes first, for smooth losses. Budget: of
    larger data, which were not tried, sampling has a first answer earlier. In experiment
    `cheap_pass` (dense logistic, d = 100, the whole default) FISTA first takes 0.07, 0.23 and 0.9
    of the time to within 0.2% at 1e6, 4e6 and 1.6e7, and 1.6 and 2.3 s at 4e7 and 1e8, where
    sampling first does not come near in 20 s."""
    kinked_cheap_pass: float = 1.6e5
    """The same for losses with kinks. It decides where the interior point, which is asked first,
    would take too long. Crossover: experiment `kinked_cheap_pass` (hinge on a 2^12 lattice, the
    whole default), equal at 1.6e5; FISTA first takes 0.6 of the time to within 0.2% at 9.4e4 and
    1.2 times at 1.9e5. At 4.7e4 sampling first does not come near in 20 s."""
    cheap_check: float = 2e7
    """Operations of checking all constraints up to which projecting in every step is no burden.
    Budget: of more, sampling has a first answer earlier. In experiment `cheap_check` (logistic,
    sparse rows, d = 500, the default without its interior point) FISTA first takes 0.17, 0.18, 0.15
    and 0.25 of the time at 2e4, 2e5, 2e6 and 2e7."""
    polish_pass: float = 1.2e7
    """Operations of a full gradient up to which FISTA may finish what sampling began. Budget:
    experiment `polish_pass`; the finish makes a run 2.1 to 3.1 times as long at 6e6 to 4e7."""
    kinked_polish_pass: float = 4e6
    """The same for losses with kinks. Budget: experiment `kinked_polish_pass`; 1.5 to 1.9 times as
    long."""
    polish_share: float = 0.25
    """Work of that finish under kinks, relative to the work of the sampling before. Budget: without
    it an eighth of the paper's pairs took three to ten times as long as all of them; with it both
    take the same, 0.01% above what four times the share reaches."""
    fewest_polish_passes: int = 20
    """Full gradients of that finish in any case. Budget."""
    passes_before_proof: int = 500
    """Full gradients of FISTA where an interior point or cutting planes would follow in less than a
    second. Budget: ill-conditioned data take FISTA a hundred times as many."""
    estimated_share: float = 1.25
    """Of the time that is left, that the interior point's estimate may take. Budget: the estimate
    is for 25 steps, and most programs need fewer (EXDATA 11)."""
    interior_seconds: float = 10.0
    """Estimated seconds of an interior point up to which it takes kinked losses and coupled rows
    at once. Budget."""
    short_interior: float = 1.0
    """... up to which it goes on to 1e-6, whatever the tolerance: the last digits take a few steps.
    Budget."""
    proof_seconds: float = 30.0
    """... up to which it proves what sampling has found, or takes coupled rows where sampling has
    nothing to offer; the same for FISTA's bounds where the interior point would take longer, as on
    the paper's problem. Budget."""
    pass_rate: float = 3e8
    """Operations of full gradients per second. Rate: measured once, 42 ms for 612,587 sparse
    examples of 24 numbers."""
    proof_passes: int = 300
    """Full gradients below which FISTA proves nothing under kinks: 320 within 0.1% on the paper's
    problem. Budget."""
    proof_tolerance: float = 1e-3
    """The tolerance for which that many are enough. Budget: a tenth of it takes ten times as many.
    It is also how near sampling need come where others finish: a smaller one takes it minutes."""
    projection_operations: float = 300.0
    """Operations of projecting onto an order, per parameter. Rate: measured once, 3 ms for 2^12
    vertices."""

    # -- sampled AdaGrad --------------------------------------------------------------------------
    run_length: int = 4
    """Neighbouring examples read in one go: memory likes neighbours, randomness several runs.
    Tuning: experiment `run_length`; best of 1 to 16, flat from 2 on (1: 1.4 times as long)."""
    runs: int = 4
    """Such runs per iteration. Tuning: experiment `runs`, flat; in two runs, 1 took 0.8 and 0.9 of
    the time, 2 took 1.0 and 1.1, 8 took 1.0 and 1.3."""
    fewest_for_runs: int = 64
    """Examples below which single ones are drawn: longer runs would repeat each other. Tuning: not
    measured."""
    example_operations: float = 12.0
    """Operations per number of a dense example: read, gathered, and stepped on; a constraint's is
    only read. Rate: experiment `example_operations`; on 20,000 dense rows (2026-11-18, one run) 3
    took 0.8 of the time to within 0.2%, and 48, slower at first, ended lower than this came in 20
    s."""
    sparse_operations: float = 4.0
    """The same where an example is stepped on at once. Rate: experiment `sparse_operations`, flat;
    on 300,000 pairs (2026-11-18, one run) 1 took 0.9 of the time, 16 took 1.2."""
    constraint_share: float = 0.1
    """Of the time of the examples that constraints get at least. Tuning: experiment
    `constraint_share`, flat; in two runs, 0.02 took 1.0 and 1.2 of the time, 0.5 took 1.0 and
    1.2."""
    largest_share: float = 2.0
    """... and at most. Tuning: experiment `largest_share`; on 20,000 dense rows 0.1 and 0.2 took
    0.6 to 0.8 of the time and 20 took 0.9, but on 60,000 sparse rows (d = 500, 20,000 examples)
    0.1, 0.2 and 0.5 never came within 0.2%, and 2 did."""
    penalty_share: float = 0.2
    """Of the time of the examples that the rows of a roughness penalty get. Tuning: experiment
    `penalty_share`; the best value depends on the weight of the penalty. With a hundredth of its
    roughness, 1 took 1.3 to 1.6 times as long to come within 0.2%; with a tenth, 0.8 to 0.9 of the
    time; with all of it, 0.2 was still 2% above 1 and 4 after 20 s."""
    penalty_operations: float = 8.0
    """Operations per entry of such a row: two square roots and divisions. Rate: not measured."""
    largest_group: int = 1024
    """Constraints per visit. Tuning: experiment `largest_group`; best of 64, 1,024 and 8,192."""
    group_stretch: int = 8
    """Iterations that one visit may serve, so that a group is worth its visit. Tuning: not
    measured."""
    projection_checks: float = 30.0
    """Checks of all constraints that a projection costs about as much as. Rate: measured by
    `benchmarks.projection`, on orders and rows."""
    shortest_stage: int = 200
    """Iterations of the first stage at least. Budget: a stage is judged at its end, which costs a
    pass over some examples."""
    shortest_record_interval: int = 10
    """Iterations between two terms of the tail average. Budget: it costs a pass over w."""
    record_intervals: int = 16
    """Terms of the tail average in the first stage at least. Budget."""
    record_cost: int = 8
    """How many example entries adding w to the tail average may cost per parameter. Budget."""
    near_coordinates: int = 200_000
    """Coordinates, at 16 bytes each, that stay in the caches; beyond it they are kept in single
    precision and fetched ahead. Crossover: experiment `near_coordinates`, equal at 1e5; per
    iteration double precision takes 0.5 of the time at 2^14, 0.9 at 2^16, 1.06 at 2^17, 1.2 at 2^18
    and 4.4 at 2^20. The value is above it, because single precision is less exact."""
    finest_single: float = 1e-5
    """Relative tolerance below which nothing is left to single precision. Rounding."""
    largest_single: float = 1e5
    """Data whose sixth power, a million times over, single precision holds. Rounding."""
    most_deviations: float = 1e3
    """Size of the targets in standard deviations up to which single precision tells them apart.
    Rounding."""
    trial_examples: int = 8192
    """Examples of a trial of a step size. Budget."""
    fewest_trial_steps: int = 20
    """Iterations of a trial at least. Budget."""
    trial_judges: int = 2048
    """Examples by which trials are compared. Budget."""
    trial_grid: float = 4.0
    """Factor between step sizes that are tried. Convention: that of the paper's experiments."""
    farthest_trial: int = 10
    """Powers of it in each direction. Budget."""
    almost: float = 0.01
    """Of the gain of the best trial that another may lack and still count as equal; of equals the
    smallest step wins, because long runs want it smaller. Tuning: not measured."""
    judges: int = 16_384
    """Examples by which the points at the end of a stage are compared. Budget."""
    scale_sample: int = 100_000
    """Numbers read to find the scale of data. Budget."""
    scale_rows: int = 1000
    """Dense rows read for it. Budget."""

    # -- FISTA ------------------------------------------------------------------------------------
    check_every: int = 10
    """Steps between two looks at the bounds, each of which costs four projections. Budget."""
    shrinking: float = 0.8
    """Of the curvature that a step starts its search with: it may fall along the way. Tuning: not
    measured."""
    value_rounding: float = 1e-13
    """Relative rounding of the objective that a step need not lower. Rounding."""
    power_steps: int = 6
    """Power iterations for the first estimate of the curvature. Budget."""
    first_difference: float = 1e-3
    """Length of the differences in it, relative to the point and its reach. Rounding: long enough
    that differences of gradients keep most of their digits."""
    least_objective_curvature: float = 1e-12
    """Of an objective that looks linear. Rounding."""
    longest_step: float = 1e3
    """Lengths of the point and of its natural reach that a step may go: keeps the curvature from
    shrinking until rounding decides. Tolerance."""
    first_width: float = 0.5
    """Width over which kinks are rounded at first, relative to the objective. Tuning: not measured;
    it is narrowed on the way."""
    kink_narrowing: float = 4.0
    """Factor by which that width shrinks when rounding dominates the gap. Tuning: not measured."""
    near_narrowing: float = 16.0
    """How much narrower it begins at a point that sampling has brought near the optimum. Tuning:
    not measured."""
    lookahead: tuple[float, ...] = (1.0, 10.0, 100.0, 1000.0)
    """Step lengths, in steps, of the projections that bounds are made from: which one gives the
    best depends on the distance to the optimum. Tuning: not measured; each costs a projection."""
    smooth_patience: int = 20
    """Looks at the bounds without progress before giving up, for smooth losses. Budget."""
    kinked_patience: int = 6
    """... with kinks, where bounds seldom meet. Budget."""
    little_progress: float = 0.02
    """Of the tolerance that counts as none. Budget."""
    little_rounding: float = 0.05
    """Of the tolerance below which rounding kinks is no reason to narrow them. Tuning: not
    measured."""
    little_objective: float = 1e-6
    """Of what was gained that accuracy is relative to where the objective is nearly 0.
    Tolerance."""
    settled_growth: float = 1.05
    """Growth of the way from the start, between two looks, that counts as none. Tolerance: of a
    guess, never of a proof."""
    reach_travelled: float = 10.0
    """How much farther than the way so far an optimum may be, for a guess at the bound. Tolerance:
    of a guess, never of a proof."""
    targets_away: float = 3.0
    """Typical targets that a prediction may change by on the way to an optimum. Tolerance: of a
    guess, never of a proof."""
    flat_reach: float = 100.0
    """How far an optimum may be where nothing curves, in units of everything else. Tolerance: of a
    guess, never of a proof."""
    known_scale: float = 1e-6
    """Size of a column, relative to the largest, below which its scale is not trusted. Rounding."""
    known_column: float = 1e-9
    """... and below which it counts as empty. Rounding."""

    # -- interior point, ADMM ---------------------------------------------------------------------
    interior_claim: float = 1e-6
    """Relative gap at which a point may be called optimal. Tolerance."""
    nearly_feasible: float = 1e-11
    """Excess over a row, relative to the point, that still counts as feasible. Tolerance."""
    splitting_steps: int = 20
    """ADMM steps on one quadratic model of the loss. Budget."""
    splitting_rounds: int = 100
    """Models at most. Budget."""
    splitting_residual: float = 1e-9
    """Residual at which steps change nothing. Tolerance."""
    rest_of_slack: float = 1e-9
    """Relative size of what auxiliary numbers may still falsify, that counts as rounding.
    Rounding."""
    splitting_look: float = 0.3
    """Of the tolerance within which the copies must be before a feasible point is made. Budget:
    such a point costs a projection."""

    # -- cutting planes -------------------------------------------------------------------------
    cutting_dimension: int = 100
    """Parameters up to which functions without structure go to cutting planes. Budget: rounds grow
    with the dimension, and so does the work of each."""
    cutting_pass: float = 1e6
    """Operations of a full gradient up to which they do. Budget: some hundred are needed."""
    planes_rows_at_once: int = 500
    """Rows up to which all are in use from the beginning; of more, those that were broken.
    Crossover: experiment `planes_rows_at_once`, equal at 600 (d = 20) and below 300 (d = 50): all
    take 0.9 and 1.2 of the time at 300, 1.1 and 1.3 at 1,000, 3.1 and 4.5 at 10,000."""
    cutting_rounds: int = 150
    """Rounds at most, each with two gradients and two interior points. Budget."""
    cutting_rise: float = 0.1
    """Of the gap by which a bound must rise to count, once the model says that nothing is left to
    gain. Budget."""
    cutting_patience: int = 10
    """Rounds without a better point, bound or model before giving up. Budget."""
    cutting_reach: float = 10.0
    """Half the width of the first box around the start, in steps that would take the objective to 0
    if it were linear. Tuning: not measured; the box grows where it is in the way."""
    cutting_growth: float = 10.0
    """Factor by which that box grows when it was in the way. Tuning: not measured."""
    touching: float = 0.99
    """Of half its width from which on the box counts as being in the way. Tolerance."""
    cutting_accuracy: float = 0.01
    """Of the tolerance, for the least value of a model. Tolerance."""
    level: float = 0.5
    """Of the way from the best point down to the bound at which the next point is looked for.
    Convention: Lemarechal, Nemirovskii and Nesterov (1995) take a fixed level between both."""
    level_accuracy: float = 1e-12
    """Of the point that is found there, in scaled units. Tolerance."""

    # -- quadratic steps --------------------------------------------------------------------------
    shard_passes: float = 4.0
    """Passes over its own examples that a shard is solved by before solutions are averaged. Tuning:
    measured by `benchmarks.shards.rounds`; what it learns later is about itself only, and full
    gradients follow."""
    largest_factored: int = 3000
    """Parameters up to which a dense matrix is factored; beyond it conjugate gradients take over.
    Crossover: experiment `largest_factored`, equal at 4,000 under well-conditioned rows: factors
    take 0.25 of the time to within 0.2% at 2,000, 1.8 times as long at 6,000. On surfaces of 400 to
    2,025 vertices conjugate gradients with ADMM by pieces never come near."""
    model_residual: float = 1e-4
    """Residuals of ADMM on a model at most, relative: an error there changes the objective by its
    square. Tolerance."""
    model_residual_share: float = 0.1
    """... and of the square root of the tolerance. Tolerance."""
    least_width: float = 1e-9
    """Of rounded kinks, where all residuals are 0. Rounding."""
    least_objective: float = 1e-12
    """What accuracy is relative to where the objective is 0, in training units. Rounding."""
    model_inner_steps: int = 400
    """Steps of ADMM on a quadratic that is the objective itself (squared loss): no other follows.
    Budget."""
    model_inner_steps_of_many: int = 80
    """Of ADMM on a quadratic that another one follows, which goes on from there. Budget."""
    model_first_width: float = 0.3
    """Of rounded kinks, in mean residuals of the start. Tuning: not measured."""
    model_narrowing: float = 0.25
    """Factor of the width when steps have stopped gaining. Tuning: not measured."""
    model_narrowest: float = 1e-3
    """The last width, as a share of the first. Tolerance: the objective is then off by less than
    1e-4."""
    model_least_share: float = 1e-4
    """Of the way to the model's minimum; shorter steps are not tried. Budget."""
    model_free_residual: float = 1e-7
    """Of conjugate gradients without rules, relative to that of the start. Tolerance."""
    model_free_steps: int = 500
    """Steps of conjugate gradients without rules. Budget."""
    interior_rows: int = 100_000
    """Rules up to which a quadratic model is minimised by an interior point: each step adds them to
    the matrix that it factors. Crossover: experiment `interior_rows`, equal at 90,000 (d = 400);
    ADMM takes 3.7 and 1.5 times as long at 3,000 and 30,000. With d = 100 it takes 4 times as long
    at 100,000."""
    gram_entries: int = 100_000
    """Entries of the rows that are added to a Gram matrix at a time. Memory: 1.2 MB, which stay in
    the cache; no second copy of all rows is made (100,000 rows of 97 entries: 2.0 s, 1.5 s so)."""
    gram_dense: float = 0.25
    """Share of a row's columns that have an entry, above which Gram matrices are products of dense
    rows. Crossover: experiment `gram_dense`, equal at 0.25; sparse ones take 0.2, 0.7, 1.06, 1.9
    and 3.8 times as long at 0.1, 0.2, 0.25, 0.35 and 0.5 (5,000 rows of 1,000 columns)."""
    gram_nonzero: float = 0.6
    """Share of the stored entries that are not 0, up to which Gram matrices are sums over those.
    Crossover: experiment `gram_nonzero`, equal at 0.6; to leave zeros out takes 0.5, 0.8, 1.6 and
    2.2 times as long at 0.3, 0.5, 0.8 and 1 (20,000 rows of 3,000 columns)."""
    gram_dense_entries: int = 2_000_000
    """Entries of dense rows that are made at a time. Memory: 16 MB."""
    gram_width: int = 12
    """Entries that a row has in a group of columns at least. Tuning: measured once; each pair of
    groups is a loop over all rows, whose beginning costs as much as ten products (adult, 105
    entries per row: 0.40 s with groups of 1 to 8 entries, 0.17 with 4 or more, 0.13 with 8, 12 or
    24, 0.21 with 64)."""
    model_stale: float = 0.2
    """Change of an objective's curvatures, relative, from which its matrix is formed anew: steps
    with an old one leave about that share of the way. Tuning: experiment `model_stale`, flat; 0.02,
    0.1 and 0.5 took 0.9, 0.9 and 0.85 of the time of a fit to 80,000 labels (one run each, the
    first run the slowest)."""
    model_old_gap: float = 0.1
    """Share of the tolerance within which the gap must be proven for a run to end with a matrix of
    another point. Tolerance: after a step of Newton's it is far within. (Once steps with an old
    matrix ended where they gained less than the tolerance, and predicted counts added up to 0.2%
    less than the observed ones.)"""
    model_large_tolerance: float = 0.01
    """Residuals of ADMM by pieces, relative to those by whole projections: its copies satisfy the
    rules together only in the limit. Tolerance."""

    # -- bounds -----------------------------------------------------------------------------------
    bound_factor_products: float = 2e9
    """Multiplications of forming and factoring a curvature matrix for a bound. Budget: a second."""
    bound_products: int = 60
    """Products with the data before a curvature matrix is factored instead. Budget."""
    outward: float = 8.0
    """Rounding errors per column that a factored matrix is lowered by. Rounding."""
    certified_accuracy: float = 1e-10
    """Of its distance, that a certified projection may be away from the nearest
    point. Tolerance: ten times that of the projections."""
    unbounded_slope: float = 1e300
    """Stands for infinity among slopes. Rounding."""


COSTS = SolverCosts()
