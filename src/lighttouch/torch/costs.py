"""Every number that decides in `lighttouch.torch`, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TorchCosts:
    """Defaults, budgets and tolerances."""

    weight_step: float = 1.0
    """By how much ln p_j grows at most when a violation of 1 is found, at penalty 1. Tuning:
    measured once, in examples/pytorch_ranking.py, one seed; 64 and 8 put all of p on single pairs,
    and the network became constant at penalties 3 and 10; with 1 it did not."""
    most_weight_step: float = 1 / 16
    """The largest eta_p. Convention: the paper's (Section 5)."""
    vertices_per_corner: float = 12.0
    """Vertices of a lattice per corner of a cell up to which interpolation from all corners is a
    product of matrices over all vertices. Crossover: experiment `vertices_per_corner`, forward and
    back on one thread: 0.02 of the time of corner by corner at 1 (2^12), equal at 11 (3^6), 1.3
    times as long at 16 (4^4), 2.3 times at 98 (5^5); 0.75 at 26 (3^8)."""
    chunk_entries: int = 2**26
    """Entries of a chunk of rows in double precision. Memory: half a gigabyte."""
    margin: float = 1e-9
    """By which inequalities are tightened on a device, in scaled units, so that the point satisfies
    them exactly. Tolerance: more than the path leaves over, less than the gap that is claimed."""
    device_dense_batch: float = 2.0
    """Dense rows that may join a working set at once, per parameter. Tuning: not measured; a round
    costs a card more than a few rows do."""
    device_sparse_batch: float = 8.0
    """... of rows with few entries. Tuning: not measured."""
    share_of_memory: float = 0.85
    """Of a card's free memory that rows may take beside the working set. Memory."""
    device_all_rows_per_parameter: float = 20.0
    """Rows per parameter up to which all are used from the beginning, where they have few entries.
    Crossover: experiment `device_all_rows_per_parameter`, equal at about 30 on an H200 (d = 300):
    all rows take 0.8, 1.6 and 2.0 of the time of broken ones at 20, 60 and 200 (at 5 they took 1.3,
    0.2 s for 0.16 s). With the processor as device below 5: 1.6, 2.8 and 9 at 5, 20 and 60."""
    bytes_per_entry: float = 40.0
    """Of a sparse row on a device: value, column, line, and room for products. Memory."""
    planned_rows: float = 6.0
    """Rows of a working set that memory is planned for, per parameter. Memory."""
    planned_squares: float = 6.0
    """Matrices of d x d numbers that a step has at once. Memory."""
    planned_copies: float = 4.0
    """Copies of the working rows: as they are, scaled, absolute, weighted. Memory."""
    rounding_room: tuple[float, ...] = (1.0, 4.0, 16.0, 64.0, 256.0, 4096.0, 65536.0)
    """By how many rounding errors of its terms a row is tightened, one after the other, until
    rounded parameters satisfy it. Rounding."""
    kept_bounds: int = 3
    """Points and slopes with the best likely bounds, of which proofs are tried at the end. Budget:
    a proof each."""
    device_inverse_iterations: int = 12
    """For a guess of the least eigenvalue, which a factor then confirms. Budget: a solve each."""
    eigenvalue_shares: tuple[float, ...] = (0.9, 0.5, 0.1)
    """Of that guess that are tried, the largest first. Tolerance: a bound loses what is left out; a
    factor each."""
    projection_rounds: int = 5
    """Of a projection onto the rows that a solution broke, where a run ended early. Budget."""
    projection_seconds: float = 10.0
    """For each of them. Budget."""
    audited: int = 10_000
    """Constraints of an audit that is not full: shares are then known to about one percent.
    Budget."""


COSTS = TorchCosts()
