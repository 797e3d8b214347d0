"""The table of losses: the functions of every row agree. A new row is tested as it stands."""

from __future__ import annotations

import numpy as np
import pytest

import lighttouch as lt
from lighttouch import losses
from lighttouch.kernels.verbs.losses import TABLE

WIDTHS = (0.05, 0.7)


def row_of(name: str):
    return losses.loss_of(lt.Quantile(0.3) if name == losses.NEEDS_LEVEL else name)


@pytest.fixture(params=[row.name for row in TABLE])
def row(request):
    return row_of(request.param)


def points(row) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(0, 2, 300), [0.0, 1.0, -1.0, 30.0, -30.0]])
    y = np.where(rng.random(z.size) < 0.5, -1.0, 1.0) if row.labelled else rng.normal(size=z.size)
    return z, y


def slopes_of(row, z, y):
    return np.array([row.slope(row.level, a, b) for a, b in zip(z, y, strict=True)])


def test_numbers_are_places_in_the_table():
    assert [losses.LOSSES[row.name].number for row in TABLE] == list(range(len(TABLE)))


def test_the_slope_is_a_subgradient(row):
    z, y = points(row)
    at = losses.values(row, z, y)
    slopes = slopes_of(row, z, y)
    for step in (-3.0, -1e-3, 1e-3, 3.0):
        assert np.all(losses.values(row, z + step, y) >= at + step * slopes - 1e-12)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_rounded_loss_lies_below_by_at_most_half_the_width_and_is_smooth(row, width):
    z, y = points(row)
    difference = losses.values(row, z, y) - losses.values(row, z, y, width)
    assert difference.min() >= -1e-12 and difference.max() <= 0.5 * width + 1e-12
    assert row.kinked or np.all(difference == 0.0)
    slopes, _ = losses.quadratic(row, z, y, width)
    h = 1e-6
    rise = losses.values(row, z + h, y, width) - losses.values(row, z - h, y, width)
    np.testing.assert_allclose(slopes, rise / (2 * h), atol=2e-5 / width)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_quadratic_touches_the_rounded_loss_and_lies_above_it(row, width):
    z, y = points(row)
    slopes, curvatures = losses.quadratic(row, z, y, width)
    assert curvatures.min() > 0.0
    if row.name == "logistic":
        return  # its model is the Taylor polynomial; steps are shortened where it lies below
    for step in np.random.default_rng(1).normal(0, 1, (20, z.size)):
        above = losses.values(row, z, y, width) + slopes * step + 0.5 * curvatures * step**2
        assert np.all(losses.values(row, z + step, y, width) <= above + 1e-12)


def test_the_largest_curvature_bounds_the_change_of_the_slope(row):
    if row.kinked:
        assert np.isinf(row.largest_curvature)
        return
    z, y = points(row)
    change = slopes_of(row, z + 0.1, y) - slopes_of(row, z, y)
    assert change.max() <= 0.1 * row.largest_curvature + 1e-12
    assert change.max() > 0.09 * row.largest_curvature, "and is not larger than need be"


def test_the_conjugate_gives_lower_bounds_that_touch(row):
    z, y = points(row)
    for asked in (slopes_of(row, z, y), np.random.default_rng(2).normal(0, 1, z.size)):
        s, conjugates = losses.conjugate_values(row, asked, y)
        assert np.all(losses.values(row, z, y) >= s * z - conjugates - 1e-12)
    s, conjugates = losses.conjugate_values(row, slopes_of(row, z, y), y)
    kink = losses.values(row, z, y) == 0.0  # where the slope is not unique
    touching = losses.values(row, z, y) - (s * z - conjugates)
    assert np.abs(touching[~kink]).max() <= 1e-10


def test_slopes_stay_within_their_range(row):
    z, y = points(row)
    for slope, target in zip(slopes_of(row, z, y), y, strict=True):
        lowest, highest = row.slope_range(row.level, target)
        assert lowest <= slope <= highest


def test_names_are_read_and_refused():
    assert losses.given_as(losses.loss_of("hinge")) == "hinge"
    assert losses.given_as(losses.loss_of(lt.Quantile(0.2))) == lt.Quantile(0.2)
    with pytest.raises(ValueError, match=r"one of hinge, logistic.*or Quantile"):
        losses.loss_of("pinball")
    with pytest.raises(ValueError, match="Quantile"):
        losses.loss_of("quantile")
