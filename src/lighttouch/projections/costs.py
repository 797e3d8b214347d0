"""Every number that decides in the projections, in one record: unit, kind, reason.

CONTRIBUTING ("Numbers that decide") lists the kinds; `python -m benchmarks.thresholds` runs the
experiments that are named here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TINY = float(np.finfo(np.float64).tiny)  # keeps quotients of lengths finite; never decides anything


@dataclass(frozen=True)
class ProjectionCosts:
    """All numbers of the projections that are not 0, 1, 2, a half, or a multiple of EPSILON."""

    # -- which method takes general rows (rows/portfolio.py) --

    very_few_violated: int = 30
    """Violated rows that the active-set method takes one by one in any case. Crossover: experiment
    `very_few_violated`, equal to the interior point at 29 spikes in a convex sequence of 2,000: 15
    spikes take 0.3 of its time, 60 take 9 times as long, as each spike makes some twenty rows
    active."""

    few_violated: int = 120
    """Violated rows that it takes one by one unless the interior point is nearly free. Crossover:
    experiment `few_violated`; a limit on risk, below the crossover: of d = 500 dense rows it takes
    0.5 of the time of Newton and active set at 120, and still 0.7 at 480, but rows that make many
    others active (the spikes above) cost it far more."""

    tiny_dimension: int = 150
    """Parameters up to which few violated rows go to the active-set method in any case. Crossover:
    experiment `tiny_dimension`; with one spike per ten parameters of a convex sequence it takes 0.7
    of the interior point's time at 150, 0.9 at 300, and 3 times as long at 600."""

    lagrangian_dimension: int = 1000
    """Parameters up to which many violated rows go to Newton and the active-set method rather than
    to the interior point, unless that is nearly free. Crossover: experiment `lagrangian_dimension`,
    equal at 950 (two rows per parameter in a band of 30): 0.7 of its time at 500, 1.5 times at
    2,000."""

    warm_rows: int = 350
    """Active rows of an earlier answer that the active-set method starts from; more go to the
    augmented Lagrangian. Crossover: experiment `warm_rows`, equal at 350 (d = 2,000 sparse): 0.4 of
    its time at 200, 3 times at 640."""

    trifling_factor: float = 2e6
    """Multiplications of a factorisation that is nearly free beside any other method. Crossover:
    experiment `trifling_factor`; condition decides more than size. On convex surfaces of noise the
    interior point takes 1.0 of the time of Newton and active set at 2e5, 0.5 at 2e6 and 0.3 at 1e7;
    on rows in a band, which are well conditioned, 1.4 times as long at 7e5 and 1.5 times at 4e6."""

    cheap_factor: float = 3e8
    """Multiplications of a factorisation up to which the interior point is tried at all, about half
    a second per path. Crossover: experiment `cheap_factor`; on convex surfaces of noise it takes
    0.14 of the time of the augmented Lagrangian at 3e7, which does not end at 2e8; on
    well-conditioned bands 3 times as long."""

    most_analysed_entries: int = 500_000
    """Entries of a sparse system up to which its factorisation is looked at. Budget: the question
    takes a pass over them and an order for a band."""

    dense_line: float = 0.5
    """Entries of a row, in roots of the size of the system, from which it is set aside where the
    cost of a factor is estimated: it would fill the band, though a factor has it last. Crossover:
    experiment `dense_line`; five such rows across second differences of 400 take the same time in
    the band at 0.2, and 8 times as long at 0.5, 1, 2 and 4. (Parameters in many rows stay in the
    band: set aside, projections took 1 to 4 times as long, with 1.5 to 20 roots.)"""

    largest_active_gram: int = 6000
    """Active rows whose Gram matrix is still formed. Memory: 288 MB."""

    # -- nested rows (rows/nested.py) --

    fewest_nested_rows: int = 4000
    """Nested rows from which splitting pays. Crossover: experiment `fewest_nested_rows`, equal at
    4,000 (dominance on 2^9, 4,374 rows: one by one takes 0.9 to 1.1 of its time; 0.6 at 1,458 rows,
    1.1 at 13,122)."""

    nested_tolerance: float = 1e-8
    """Relative residuals of alternating directions that count as settled. Tolerance: what they
    leave over, a share of the strictly feasible point makes up for."""

    nested_steps: int = 1000
    """Steps of alternating directions before the rows are taken one by one. Budget."""

    nested_room: float = 1e-4
    """By how much the strictly feasible point obeys the rows, relative to the largest parameter.
    Tolerance: a hundred times its residuals (`tightened_tolerance`)."""

    nested_room_per_excess: float = 100.0
    """The same, relative to the excess that it has to make up for. Tolerance: the answer then holds
    at most about a hundredth of that point."""

    tightened_tolerance: float = 1e-6
    """Relative residuals for the strictly feasible point. Tolerance: a hundredth of its room."""

    rounding_share: float = 1e-15
    """Added to that share, in largest parameters per room: what rounding may take back. Rounding:
    four to five times EPSILON."""

    most_room_taken: float = 0.02
    """The largest share of the strictly feasible point in the answer. Tolerance: beyond it the rows
    are taken one by one, which is exact."""

    # -- accuracy of general rows --

    row_tolerance: float = 1e-12
    """Excess of a row of length one, relative to the worst at the start, that methods aim at.
    Tolerance: a thousand times rounding, so that sums of hundreds of terms reach it."""

    accepted_excess: float = 1e-10
    """The same, for an answer to be certified. Tolerance: a hundred times what methods aim at."""

    accepted_gap: float = 1e-9
    """Duality gap, relative to the squared distance, for an answer to be certified. Tolerance: the
    point is then within 4.5e-5 of its distance from the nearest one, the root of twice the gap."""

    certified_tolerances: float = 4.0
    """The same in tolerances, where rounding of large points makes these larger. Rounding."""

    close_excess: float = 1e-3
    """Excess from which further projections, from there, remove what is left. Tolerance: of answers
    that are not certified."""

    close_gap: float = 1e-6
    """The gap that such an answer may have. Tolerance."""

    suspicious_excess: float = 1e-2
    """Excess of the first method's answer from which a contradiction is looked for. Budget: the
    search is a linear program, and solvable rows seldom end above it."""

    repeats: int = 3
    """Projections of the answer itself, while they reduce its violation. Budget: a projection
    each."""

    halfspace_steps: int = 3
    """Steps onto one half-space. Rounding: those after the first only remove it."""

    # -- equalities alone (methods.py) --

    affine_steps: int = 4
    """Steps onto the equalities. Rounding: those after the first remove it, and the shift below."""

    affine_shift: float = 1e-9
    """Keeps the factor of sparse equalities going where some follow from others. Rows have length
    one: a step leaves this share of the error, divided by the squared smallest singular value.
    Rounding: some 1e6 EPSILON, for pivots that would be 0."""

    dependent_equality: float = 1e-12
    """Length left of an equality outside the span of others, relative to the longest, that counts
    as none. Rounding."""

    # -- the lazy active set (rows/portfolio.py, rows/active_set.py) --

    lazy_rounds: int = 500
    """Rounds in which violated rows join the working set. Budget: rounds end by themselves when no
    row is violated."""

    lazy_least_batch: int = 64
    """Rows that may join in one round, at least ... Tuning: not measured."""

    lazy_batch_divisor: int = 4
    """... and at most the dimension divided by this. Tuning: not measured; rows that join in vain
    make the Gram matrix larger."""

    active_set_operations: float = 2e8
    """Multiplications of the active-set method between two looks at the clock (about 0.1 s).
    Budget."""

    active_set_least_steps: int = 8
    """Steps between two looks at the clock, at least. Budget."""

    active_set_steps_per_row: int = 50
    """Steps per row before the method gives up; well-posed problems need a few. Budget."""

    active_set_spare_rows: int = 10
    """Rows added to the budget, so that one row has one too. Budget."""

    dependent_row: float = 1e-12
    """Squared length left of a row, outside the span of the active ones, that counts as none.
    Rounding."""

    dependent_start: float = 1e-9
    """The same for rows that a warm start proposes, whose factor is made at once. Rounding: larger,
    because the factor is not updated row by row."""

    # -- the augmented Lagrangian (rows/portfolio.py) --

    rough_rounds: int = 2
    """Rounds of the augmented Lagrangian before the active-set method takes over ... Tuning: not
    measured."""

    rough_goal: float = 1e-3
    """... and the excess it aims at: enough to tell the active rows. Tuning: not measured; the
    active-set method corrects the rest."""

    full_rounds: int = 60
    """Rounds of the augmented Lagrangian on its own. Budget."""

    full_goal: float = 1e-11
    """The excess it aims at then, relative to the worst at the start. Tolerance: ten times that of
    the other methods, because its last digits are slow."""

    lagrangian_sparse_batch: int = 50
    """Sparse rows that may join in one round, per parameter. Tuning: not measured; many, because a
    sparse row costs its few entries."""

    lagrangian_dense_batch: int = 2
    """Dense rows that may join in one round, per parameter. Tuning: not measured; few, because each
    costs a row of the Gram matrix."""

    kept_slack: float = 1e-4
    """Slack up to which a row without multiplier stays for the next round. Tuning: not measured."""

    round_shrink: float = 1e-3
    """The excess that a round aims at, relative to the worst row that joins it. Tuning: not
    measured; three digits per round, while rows still join."""

    first_penalty: float = 1.0
    """The penalty of the first round; rows have length one. Convention: 1, the curvature of the
    distance itself."""

    penalty_growth: float = 3.0
    """Growth of the penalty per round. Tuning: not measured."""

    largest_penalty: float = 1e5
    """Beyond, the condition of Newton's matrix costs more digits than the penalty gains.
    Rounding."""

    penalty_rounds: int = 30
    """Rounds of multipliers. Budget."""

    newton_steps: int = 400
    """Newton steps of one run; well-posed problems need a quarter of that. Budget."""

    first_goal: float = 0.1
    """Length of the gradient at which the first minimisation ends. Tuning: not measured."""

    newton_forcing: float = 0.1
    """Residual of a Newton step, relative to the gradient. Convention: a constant forcing term
    (Dembo, Eisenstat and Steihaug 1982)."""

    conjugate_price: float = 400.0
    """Multiplications per entry of a run of conjugate gradients; it is tried where this is less
    than the factor of the smaller square matrix, n^3 / 3. Crossover: experiment `conjugate_price`;
    on 120 to 140 rows of 4 entries both take the same at 1,500, but projections onto 20,000 sparse
    rows on 2,000 parameters, which call it most, take 0.91 to 0.95 of the time at 400."""

    conjugate_steps: int = 300
    """Steps of conjugate gradients before a factorisation is due. Budget."""

    largest_dense_factor: int = 2500
    """Rows or columns of a dense factor for sparse rows, where conjugate gradients have not
    settled. Memory: 50 MB; with more the method gives up."""

    line_search_steps: int = 30
    """Steps of the exact line search. Budget."""

    line_search_slope: float = 1e-3
    """Slope at which it ends, relative to that at the start. Tolerance: the next Newton step
    corrects the rest."""

    # -- the interior point (rows/nearest_interior.py); its steps have costs of their own --

    interior_enough: float = 1e-13
    """Gap, relative to the squared distance, at which no further step is taken. Tolerance: a
    ten-thousandth of the gap that is certified."""

    interior_start: float = 1e4
    """Slack and multipliers begin this many times larger than the rows are broken: ill-conditioned
    rows end with large ones. Tuning: not measured."""

    interior_shift: float = 1e-14
    """Keeps the factorisation going where equalities are singular; the distance bends everywhere.
    Refinement removes its effect. Rounding."""

    interior_refinements: int = 2
    """Iterative refinements of a solve, while they help: so small a shift leaves little to refine.
    Tuning: measured once; with 8, convex sequences of 500 and 5,000 take 10% to 24% more solves and
    end no nearer."""

    negligible_weight: float = 1e-13
    """Multipliers, relative to the largest, that count as zero. Rounding."""

    # -- contradictions (rows/active_set.py) --

    proof_reach: float = 1e9
    """A proof must cover points this many times further away than the worst row is. Tolerance: a
    point farther away than that would satisfy the rows by rounding only."""

    sharp_proof_reach: float = 1e12
    """The same, to replace a proof with more rows. Tolerance."""

    proof_rounds: int = 2
    """Corrections of the weights by least squares. Rounding: the second removes what the first
    leaves."""

    negligible_proof: float = 1e-10
    """Weights of a proof, relative to the largest, that count as zero. Rounding."""

    priced_row: float = 1e-9
    """Prices of a linear program that count as positive (HiGHS is accurate to 1e-7). Tolerance:
    rows that are let in too many are removed by the proof."""

    largest_filtered: int = 400
    """Rows of a conflict that are tried one by one for being dispensable. Budget: a linear program
    each."""

    least_seconds: float = 0.01
    """The time limit that HiGHS gets at least. Budget."""

    most_rows_in_words: int = 6
    """Constraints of a conflict that an error writes out. Convention: what fits into a few
    lines."""

    # -- orders (orders.py) --

    first_sweeps: int = 10
    """Dykstra sweeps before the first attempt at a certificate. Tuning: not measured."""

    first_sweeps_warm: int = 4
    """The same from the multipliers of an earlier answer. Tuning: not measured."""

    most_sweeps: int = 160
    """Sweeps before maximum flow divides and conquers. Budget: four doublings of the first look."""

    flow_per_sweeps: float = 8.0
    """Seconds of maximum flow per second of the sweeps before it, about. It is not begun where less
    is left. Rate: measured once, on 2^16 vertices of noise 0.7 s after 0.1 s."""

    clocked_edges: int = 20_000
    """Edges from which a projection onto orders looks at the clock on its way, where there is a
    limit. With fewer it is over within 0.05 s, which a limit allows for. Budget."""

    order_repairs: int = 8
    """Attempts of maximum flow to repair the blocks that the sweeps suggest. Budget: a maximum flow
    each."""

    order_rounding: float = 1e-13
    """Excess that a block may keep, relative to the largest coordinate. Rounding."""

    margin_repairs: int = 64
    """Rounds that lift upper ends by the last bits, where margins were subtracted and added.
    Rounding: each lifts by one bit, and chains of orders pass it on."""

    shortest_edge_run: int = 14
    """Mean edges per run from which sweeps by runs pay. Crossover: experiment `shortest_edge_run`,
    equal at 14 (lattices of 2^14 vertices): edge by edge takes 0.7 of the time at 7, 1.2 at 28 and
    2.1 at 112."""

    bytes_per_edge: int = 100
    """Of graph, multipliers and scratch at the peak. Memory."""

    most_rows_of_cycle: int = 8
    """Orders of a contradictory cycle that an error writes out. Convention: what fits into a few
    lines."""

    # -- blocks with exchange (exchange/) --

    block_edges: int = 1 << 22
    """Orders of a block, where a lattice is too large for this process. Memory: 0.4 GB of a
    worker."""

    kept_blocks: int = 2
    """Blocks that a worker keeps prepared from round to round. Memory: 0.8 GB; one shape per layer
    is usual."""

    first_exchange: int = 4
    """Rounds before groups are guessed again; each further guess after twice as many. Tuning: not
    measured."""

    exchange_rounds: int = 512
    """Rounds before the best point known is handed back, not certified. Budget."""

    tie_shares: tuple[float, ...] = (1.0, 0.1, 0.01, 0.0, -0.1, -0.5)
    """How little room a constraint leaves that ties its parameters together, in disagreements of
    the layers. The first at which every group fits into a block is taken. Tuning: not measured."""

    broken_shares: tuple[float, ...] = (0.0, -0.05, -0.25, -0.5, -0.9)
    """The same between steps of groups, in shares of the worst excess: below 0 only constraints
    that are broken by more join. Tuning: not measured."""

    group_steps: int = 200
    """Steps of the active-set method by groups before rounds are made. Budget: lattices of 2^20
    vertices, increasing plus noise, take 22; noise on 2^16 vertices takes 45."""

    exchange_gap: float = 1e-16
    """Gap, relative to the squared distance, at which rounds end without the exact end. Tolerance:
    1.4e-8 of the distance."""

    # -- curved constraints (curved.py, cutting_planes.py) --

    curved_rounds: int = 300
    """Rounds of cutting planes. Budget."""

    curved_cuts_per_round: int = 64
    """Constraints linearised per round and family. Tuning: not measured."""

    idle_rounds: int = 10
    """Rounds after which a cut that holds nothing in place is forgotten. Tuning: not measured."""

    largest_generated: float = 2e6
    """Entries of generated rows up to which all are stored. Memory: some 50 MB."""

    found_rows_per_parameter: float = 2.0
    """Generated rows that join per round and parameter. Tuning: measured once; convex regression of
    300 points takes 1.3 times as long with 1, and 1.6 times with 0.5."""

    exploring_rounds: int = 30
    """Rounds with approximate points before the first exact one ... Budget."""

    exploring_share: float = 0.02
    """... or until so few rows join, in rows known: exact points find those as well. Tuning: not
    measured."""

    exploring_idle: int = 2
    """Rounds since a row last held an approximate point, up to which the exact ones know it.
    Tuning: not measured."""

    interior_for_found_rows: float = 2e9
    """Multiplications of a dense normal matrix's factor up to which found rows go to the interior
    point first. Budget: a tenth of a second per step; experiment `interior_for_found_rows` (convex
    regression): the interior point takes 0.9, 0.7, 0.7 and 0.2 of the time of Newton and active set
    at 2e6, 7e6, 1.6e7 and 5e7."""

    rounding_errors: float = 64.0
    """Rounding errors of the largest coordinate that a row may be broken by. Rounding."""

    cutting_tolerance: float = 1e-11
    """Excess over the length of the gradient, relative to the size of the point, aimed at.
    Tolerance."""

    cutting_accepted: float = 1e-9
    """The same, for an answer to be certified. Tolerance: a hundred times what is aimed at."""

    curved_patience: int = 20
    """Rounds after which an accepted answer that does not improve is taken. Budget."""

    ball_sweeps: tuple[int, ...] = (3, 6, 12, 25, 50, 100, 200)
    """Sweeps over balls between attempts to finish with Newton. Budget: each about doubles the
    sweeps before."""

    ball_excess: float = 10.0
    """Excess over balls, in tolerances, for an answer to be certified. Tolerance."""

    ball_newton_steps: int = 40
    """Newton steps of an attempt. Budget."""

    newton_shrink: float = 0.7
    """An attempt ends where the error shrinks by less than this. Budget: Newton's method then is
    not near enough, and sweeps go on."""

    gram_rank: float = 1e-13
    """Singular values of a Gram matrix of balls, relative to the largest, that count as zero.
    Rounding."""

    clarabel_tolerance: float = 1e-11
    """The tightest at which Clarabel usually succeeds. Tolerance."""

    clarabel_steps: int = 200
    """Steps of Clarabel. Budget: its own default."""

    path_steps: int = 200
    """Projections along the path to a ball's centre. Budget: the bracket usually reaches rounding
    first."""

    path_tolerance: float = 1e-13
    """Distance to the ball's surface, relative to the radius, at which the search ends.
    Rounding."""

    # ADMM: the same for every quadratic and every piece

    admm_relaxation: float = 1.6
    """Over-relaxation, without unit. Convention: Boyd et al. (2011, 3.4.3) recommend 1.5 to 1.8."""
    admm_first_strength: float = 4.0
    """The first rho, in mean curvatures of the quadratic per copy of a parameter. Tuning: not
    measured; rho adapts."""
    admm_adapt_every: int = 10
    """Steps between two looks at the balance of the residuals. Tuning: not measured; a change of
    rho takes a factorisation."""
    admm_balanced: float = 3.0
    """Ratio of the residuals, either way, within which rho stays. Tuning: not measured; Boyd et al.
    (2011, 3.4.1) take 10."""
    admm_largest_change: float = 5.0
    """Of rho at once, as a factor either way. Tuning: not measured."""
    admm_adapt_until: float = 0.75
    """Share of the steps after which rho stays. Convention: the method converges where rho is fixed
    after finitely many steps (Boyd et al. 2011, 3.4.1)."""
    admm_look_every: int = 8
    """Steps between two looks at the clock. Budget."""
    admm_conjugate_steps: int = 10
    """Of conjugate gradients per step in w; the next step goes on from there. Budget."""
    admm_conjugate_shrink: float = 0.05
    """Residual of a step in w, relative to the residual that it starts with. Tuning: not
    measured."""
    admm_auxiliary_stride: float = 1.9
    """How far auxiliary numbers move, in distances to their nearest feasible place. Tuning: not
    measured; below 2, where such a step is no longer nearer."""
    admm_aligned: float = 0.98
    """Cosine from which two moves count as the same direction, so that a jump is tried. Tuning: not
    measured."""
    admm_least_ratio: float = 0.3
    """Of the lengths of two moves, below which a jump gains nothing. Tuning: not measured."""
    admm_largest_ratio: float = 0.9995
    """Of the lengths of two moves, above which their sum is not known well enough. Rounding."""
    admm_least_diagonal: float = 1e-12
    """Of the largest diagonal entry, below which conjugate gradients are not scaled. Rounding:
    keeps the scaling finite."""
    admm_auxiliary_reach: float = 10.0
    """How much larger than now auxiliary numbers may be at an optimum: a guess, in no proof.
    Tuning: not measured."""
    admm_farthest: float = 50.0
    """Longest jump, in moves. Tuning: not measured."""

    def active_set_budget(self, rows: int) -> int:
        """Steps of the active-set method on so many rows."""
        return self.active_set_steps_per_row * (rows + self.active_set_spare_rows)


COSTS = ProjectionCosts()
