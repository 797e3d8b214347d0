"""Interpolation on a lattice for many rows at once, and its gradients.

The same weights as the core's (`kernels/numerics/lattice_features.py`), in tensors: a row's
fractions are sorted (simplex) or multiplied out (hypercube). Under export plain operations are
traced; otherwise gradients are written out, which keeps less in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from lighttouch.torch.costs import COSTS


def simplex(x: Tensor, theta: Tensor, tops: Tensor, strides: Tensor) -> Tensor:
    """The interpolated value of every row of x, by the d + 1 corners of its simplex."""
    if torch.compiler.is_compiling() or torch.onnx.is_in_onnx_export():
        vertices, weights, _ = _corners(x, tops, strides, by_topk)
        return (weights * theta[vertices]).sum(dim=-1)
    found: Tensor = _Simplex.apply(x, theta, tops, strides)
    return found


def hypercube(
    x: Tensor, theta: Tensor, tops: Tensor, strides: Tensor, sizes: tuple[int, ...]
) -> Tensor:
    """... by all 2^d corners of its cell: as a product of matrices where the lattice has few
    vertices beside them, else corner by corner.
    """
    corners = 2 ** len(sizes)
    if theta.numel() <= COSTS.vertices_per_corner * corners:
        return _by_halves(x, theta, tops, sizes)
    at_once = max(1, COSTS.chunk_entries // corners)
    if torch.compiler.is_compiling() or x.shape[0] <= at_once:
        return _multilinear(x, theta, tops, strides)
    parts = [  # some rows after the other, made again for gradients
        checkpoint(_multilinear, part, theta, tops, strides, use_reentrant=False)
        for part in torch.split(x, at_once)
    ]
    return torch.cat(parts)


def _by_halves(x: Tensor, theta: Tensor, tops: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """sum over a, b of u_a theta_ab v_b: a row's weights are products of those of the first
    features, u, and of the last, v.
    """
    cell, fractions = _located(x, tops)
    whole = math.prod(sizes)
    middle = min(
        range(1, len(sizes) + 1),
        key=lambda k: math.prod(sizes[:k]) + whole // math.prod(sizes[:k]),
    )
    first = _weights(cell[:, :middle], fractions[:, :middle], sizes[:middle])
    last = _weights(cell[:, middle:], fractions[:, middle:], sizes[middle:])
    return ((first @ theta.reshape(first.shape[1], last.shape[1])) * last).sum(dim=-1)


def _weights(cell: Tensor, fractions: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Of every vertex of a grid, for each row: products of the two that are not 0 per feature."""
    weights = torch.ones_like(fractions.new_empty(fractions.shape[0], 1))
    for feature, size in enumerate(sizes):
        share = fractions[:, feature : feature + 1]
        own = torch.cat([1.0 - share, share], dim=1)
        if size > 2:
            place = cell[:, feature : feature + 1]
            none = torch.zeros_like(share).expand(-1, size)
            own = none.scatter(1, torch.cat([place, place + 1], dim=1), own)
        weights = (weights[:, :, None] * own[:, None, :]).reshape(share.shape[0], -1)
    return weights


def _located(x: Tensor, tops: Tensor) -> tuple[Tensor, Tensor]:
    """The lowest vertex of each row's cell along every feature, and the place within the cell."""
    inside = torch.minimum(torch.clamp(x, min=0.0), tops)
    cell = torch.minimum(torch.nan_to_num(inside.detach()).floor(), tops - 1.0)
    return cell.long(), inside - cell


Order = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


def by_topk(fractions: Tensor, strides: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Fractions and strides in descending order of the fractions, and the rank of each feature;
    ONNX has no stable sort, and ties have weight 0.
    """
    ordered, order = torch.topk(fractions, int(strides.numel()), dim=-1)
    return ordered, strides[order], order


def by_sorting(fractions: Tensor, strides: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """... by a stable sort: fast on a CPU."""
    ordered, order = torch.sort(fractions, dim=-1, descending=True, stable=True)
    places = torch.arange(strides.numel(), device=order.device).expand_as(order)
    return ordered, strides[order], torch.empty_like(order).scatter_(-1, order, places)


def by_counting(fractions: Tensor, strides: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """... by counting the larger ones: a card sorts a million short rows in 10 ms, and compares
    all their pairs in less.
    """
    features = int(strides.numel())
    ranks = torch.zeros_like(fractions, dtype=torch.int16)
    for other in range(features):
        mine = fractions[..., other : other + 1]
        ranks[..., :other] += mine > fractions[..., :other]
        ranks[..., other + 1 :] += mine >= fractions[..., other + 1 :]
    rank = ranks.long()
    ordered = torch.empty_like(fractions).scatter_(-1, rank, fractions)
    steps = torch.empty_like(rank).scatter_(-1, rank, strides.expand_as(rank).contiguous())
    return ordered, steps, rank


def _corners(x: Tensor, tops: Tensor, strides: Tensor, by: Order) -> tuple[Tensor, Tensor, Tensor]:
    """Vertices and weights of every row, and the rank of its features."""
    cell, fractions = _located(x, tops)
    ordered, steps, rank = by(fractions, strides)
    base = (cell * strides).sum(dim=-1, keepdim=True)
    vertices = torch.cat([base, base + steps.cumsum(dim=-1)], dim=-1)
    weights = torch.cat(
        [1.0 - ordered[..., :1], ordered[..., :-1] - ordered[..., 1:], ordered[..., -1:]], dim=-1
    )
    return vertices, weights, rank


class _Simplex(torch.autograd.Function):
    """theta at the corners, weighted; d value / d fraction is the step between two corners."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, theta: Tensor, tops: Tensor, strides: Tensor) -> Tensor:
        by = by_counting if x.is_cuda else by_sorting
        vertices, weights, rank = _corners(x, tops, strides, by)
        ctx.save_for_backward(x, theta, tops, vertices, weights, rank)
        return (weights * theta[vertices]).sum(dim=-1)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, theta, tops, vertices, weights, rank = ctx.saved_tensors
        of_x = of_theta = None
        if ctx.needs_input_grad[1]:
            shares = (weights * slope[:, None]).reshape(-1)
            of_theta = torch.zeros_like(theta).index_add_(0, vertices.reshape(-1), shares)
        if ctx.needs_input_grad[0]:
            values = theta[vertices]
            steps = torch.gather(values[:, 1:] - values[:, :-1], 1, rank)
            inside = (x >= 0.0) & (x <= tops)
            of_x = torch.where(inside, steps * slope[:, None], 0.0)
        return of_x, of_theta, None, None


def _multilinear(x: Tensor, theta: Tensor, tops: Tensor, strides: Tensor) -> Tensor:
    cell, fractions = _located(x, tops)
    vertices = (cell * strides).sum(dim=-1, keepdim=True)
    weights = torch.ones_like(fractions[..., :1])
    for feature in range(int(tops.numel())):
        share = fractions[..., feature : feature + 1]
        vertices = torch.cat([vertices, vertices + strides[feature]], dim=-1)
        weights = torch.cat([weights * (1.0 - share), weights * share], dim=-1)
    return (weights * theta[vertices]).sum(dim=-1)
