"""Which equations to factor: all of them, by blocks, or dense."""

from __future__ import annotations

from lighttouch.interior.blocks import block_system
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, entries
from lighttouch.interior.systems import DenseSystem, SparseSystem, System, dense_seconds


def choose_system(program: Program) -> tuple[System, float]:
    """The system that is expected to be fastest, and the seconds of a factorisation."""
    by_dense = dense_seconds(program.P, program.blocks)
    stored = sum(map(entries, program.blocks))
    full = float(program.count + program.dimension) * program.dimension
    is_dense = stored + entries(program.P) > COSTS.dense_share * full
    if by_dense <= COSTS.short or stored > COSTS.most_entries or is_dense:
        return DenseSystem(program), by_dense
    by_blocks = block_system(program)
    if by_blocks is not None and by_blocks.seconds <= min(by_dense, COSTS.shorter):
        return by_blocks, by_blocks.seconds
    size = program.count + program.dimension
    if size / COSTS.order_rate > COSTS.typical_steps * by_dense:
        return DenseSystem(program), by_dense
    by_pieces = SparseSystem(program)
    least = min(by_dense, by_pieces.seconds)
    if by_blocks is not None and by_blocks.seconds <= least:
        return by_blocks, by_blocks.seconds
    return (by_pieces, least) if least < by_dense else (DenseSystem(program), by_dense)
