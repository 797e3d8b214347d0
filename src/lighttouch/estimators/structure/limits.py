"""The numbers that decide how large and how fine a model is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StructureLimits:
    """How many terms a model has, and how fine they are.

    These numbers trade accuracy against time and memory. None has a measured crossover; `make
    bench-models` shows the accuracy of all of them together.
    """

    all_keypoints: int = 1500
    """Keypoints of all curves together, so that their least-squares problem can be factored."""

    lattices: int = 24
    """The most lattices chosen by the model itself; subsets that the user names are not limited."""

    columns_in_one: int = 12
    """Columns of lattices="single": at 2 vertices per axis 4,096 parameters, doubled by each
    further column."""

    lattice_parameters: int = 1600
    """Parameters of all lattices together, so that with the curves they can be factored."""

    examples_per_cell: float = 40.0
    """Examples per cell of the finest lattice over two columns, so that noise averages out."""

    coarsest_pair: int = 3
    """The fewest vertices per axis of a lattice over two columns: 2 cannot bend."""

    finest_pair: int = 20
    """The most vertices per axis of a lattice over two columns, as many as a curve has."""

    finest_of_many: int = 4
    """The most vertices per axis of a lattice over three or more columns."""

    largest_axis: int = 1000
    """The most vertices per axis that a user may ask for: two such axes are a million
    parameters."""

    gain_power: float = 0.25
    """A lattice whose pair explains g times less than the best has g^0.25 times fewer vertices
    per axis."""

    narrowing: float = 0.9
    """The factor by which all lattices are made coarser until they have room."""

    bins: tuple[int, ...] = (3, 8)
    """Cells per column of the grids that look for interactions: few cells find weak smooth ones,
    many cells find strong local ones."""

    screened: int = 40
    """Columns among which all pairs are looked at: 780 pairs. Of more columns those whose residuals
    vary most are taken."""

    noise_deviations: float = 3.0
    """Standard deviations of chi-squared noise that an interaction must exceed."""

    shrinkage: float = 4.0
    """Examples' worth of pull towards 0 on the mean of a cell, so that cells with few examples do
    not look like interactions."""


LIMITS = StructureLimits()


@dataclass(frozen=True)
class RecordLimits:
    """What a model's record of its training rows holds, and when new rows are called different."""

    bins: int = 10
    """Of equal shares of the training rows, per column of numbers: the convention for PSI."""

    least_share: float = 1e-4
    """What an empty bin counts as, so that the index stays finite. Convention."""

    missing: float = 0.05
    """By how much the share of missing cells must rise to be told. One row in twenty."""

    rows: int = 20_000
    """Rows, evenly spread, that distributions are taken from: quantiles within 0.5%, and scoring
    them takes a tenth of a second."""

    columns: int = 1000
    """The most columns that are recorded: 100 kB of the model file."""

    large_index: float = 0.25
    """The PSI from which rows are called different, where nothing else is asked for. Convention."""


RECORD = RecordLimits()
