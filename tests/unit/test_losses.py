"""The table of losses: the functions of every row agree. A new row is tested as it stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lighttouch as lt
from lighttouch import losses
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.verbs.losses import TABLE

WIDTHS = (0.05, 0.7)


POINTS = 305
WITH_PARAMETERS = {
    "quantile": [lt.Quantile(0.3), lt.Quantile(np.linspace(0.1, 0.9, POINTS))],
    "huber": ["huber", lt.Huber(0.4)],
    "tweedie": [lt.Tweedie(1.1), lt.Tweedie(1.9)],
    "epsilon_insensitive": [lt.EpsilonInsensitive(0.3), lt.EpsilonInsensitive(0.0)],
}
GIVEN = [loss for row in TABLE for loss in WITH_PARAMETERS.get(row.name, [row.name])]


@pytest.fixture(params=GIVEN, ids=lambda loss: str(loss)[:30])
def row(request):
    return losses.loss_of(request.param)


def points(row) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(0, 2, POINTS - 5), [0.0, 1.0, -1.0, 30.0, -30.0]])
    y = {
        "labels": np.where(rng.random(z.size) < 0.5, -1.0, 1.0),
        "any": rng.normal(size=z.size),
        "nonnegative": np.maximum(0.0, rng.normal(1.0, 2.0, size=z.size)),
        "positive": rng.exponential(2.0, size=z.size),
    }[row.targets]
    if row.log_link:
        z = np.clip(z, -5.0, 5.0)
    return z, y


def levels_of(row, count):
    return np.broadcast_to(row.levels, count)


def slopes_of(row, z, y):
    return losses.derivatives(row, z, y)[1]


def test_numbers_are_places_in_the_table():
    assert [losses.LOSSES[row.name].number for row in TABLE] == list(range(len(TABLE)))


def test_the_slope_is_a_subgradient(row):
    z, y = points(row)
    at = losses.values(row, z, y)
    slopes = slopes_of(row, z, y)
    for step in (-3.0, -1e-3, 1e-3, 3.0):
        there = losses.values(row, z + step, y)
        assert np.all(there >= at + step * slopes - 1e-12 * (1.0 + np.abs(at) + np.abs(there)))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_rounded_loss_lies_below_by_at_most_half_the_width_and_is_smooth(row, width):
    z, y = points(row)
    difference = losses.values(row, z, y) - losses.values(row, z, y, width)
    assert difference.min() >= -1e-12 and difference.max() <= 0.5 * width + 1e-12
    assert row.kinked or np.all(difference == 0.0)
    slopes, _ = losses.quadratic(row, z, y, width)
    h = 1e-6
    rise = losses.values(row, z + h, y, width) - losses.values(row, z - h, y, width)
    np.testing.assert_allclose(slopes, rise / (2 * h), rtol=1e-6, atol=2e-5 / width)


def towards_the_minimum(z, y, sizes):
    """Steps of the given sizes, at most to where e^z = y."""
    way = np.log(np.maximum(y, 1e-300)) - z
    return np.sign(way) * np.minimum(sizes, np.abs(way))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_quadratic_touches_the_rounded_loss_and_lies_above_it(row, width):
    z, y = points(row)
    slopes, curvatures = losses.quadratic(row, z, y, width)
    assert curvatures.min() > 0.0
    if row.taylor:
        return  # steps are shortened where the Taylor polynomial lies below
    for drawn in np.random.default_rng(1).normal(0, 1, (20, z.size)):
        step = towards_the_minimum(z, y, np.abs(drawn)) if row.log_link else drawn
        above = losses.values(row, z, y, width) + slopes * step + 0.5 * curvatures * step**2
        here = losses.values(row, z + step, y, width)
        assert np.all(here <= above + 1e-12 * (1.0 + np.abs(above)))


def test_the_largest_curvature_bounds_the_change_of_the_slope(row):
    z, y = points(row)
    if row.kinked or row.log_link:
        assert np.isinf(row.largest_curvature)
        return
    change = slopes_of(row, z + 0.1, y) - slopes_of(row, z, y)
    assert change.max() <= 0.1 * row.largest_curvature + 1e-12
    assert change.max() > 0.09 * row.largest_curvature, "and is not larger than need be"


def test_the_curvature_is_the_change_of_the_slope(row):
    z, y = points(row)
    h = 1e-5
    rise = (slopes_of(row, z + h, y) - slopes_of(row, z - h, y)) / (2 * h)
    if row.roundness is None:
        curvatures = losses.derivatives(row, z, y)[2]
        np.testing.assert_allclose(curvatures, rise, rtol=1e-6, atol=1e-8)


def test_the_conjugate_gives_lower_bounds_that_touch(row):
    z, y = points(row)
    slopes = slopes_of(row, z, y)
    at = losses.values(row, z, y)
    for asked in (slopes, np.random.default_rng(2).normal(0, 1, z.size)):
        s, conjugates = losses.conjugate_values(row, asked, y)
        assert np.all(at >= s * z - conjugates - 1e-12 * (1.0 + np.abs(at) + np.abs(s * z)))
    s, conjugates = losses.conjugate_values(row, slopes, y)
    kink = row.kinked & (at == 0.0)  # where the slope is not unique
    touching = at - (s * z - conjugates)
    assert np.abs(touching[~kink] / (1.0 + np.abs(at[~kink]))).max() <= 1e-10


def test_the_conjugate_of_losses_with_roundness_is_what_they_say(row):
    if row.roundness is None:
        return
    z, y = points(row)
    lowest, highest = losses.slope_ranges(row, y)
    inside = np.clip(np.random.default_rng(3).normal(size=z.size), lowest, highest)
    said = inside * y + 0.5 * row.roundness * inside**2 + row.dead_zone * np.abs(inside)
    if not row.labelled:
        np.testing.assert_allclose(losses.conjugate_values(row, inside, y)[1], said, atol=1e-12)


def test_slopes_stay_within_their_range(row):
    z, y = points(row)
    lowest, highest = losses.slope_ranges(row, y)
    slopes = slopes_of(row, z, y)
    assert np.all(lowest <= slopes) and np.all(slopes <= highest)
    assert np.all(lowest < highest)


def test_compiled_and_interpreted_are_the_same_bits(row):
    z, y = points(row)
    levels = levels_of(row, z.size)
    values, slopes, curvatures = losses.derivatives(row, z, y)
    for name, found in (("value", values), ("slope", slopes), ("curvature", curvatures)):
        function = interpreted(getattr(row, name))
        plain = [function(*each) for each in zip(levels, z, y, strict=True)]
        assert np.asarray(plain, dtype=float).tobytes() == found.tobytes()


def test_a_loss_that_overflows_is_infinite_without_a_warning(row):
    y = np.ones(2)
    z = np.array([-1e4, 1e4])
    one = row if np.ndim(row.level) == 0 else replace(row, level=0.3)
    with np.errstate(all="raise"):
        values, slopes, _ = losses.derivatives(one, z, y)
        plain = [interpreted(one.value)(one.level, a, 1.0) for a in z]
    assert not np.isnan(values).any() and np.isfinite(slopes).all()
    assert plain == values.tolist()


def test_one_level_per_example_is_each_examples_loss():
    row = losses.loss_of(lt.Quantile([0.1, 0.5, 0.9]))
    z, y = np.array([1.0, -2.0, 0.5]), np.array([0.0, 0.0, 2.0])
    alone = [
        losses.values(losses.loss_of(lt.Quantile(level)), z[i : i + 1], y[i : i + 1])[0]
        for i, level in enumerate((0.1, 0.5, 0.9))
    ]
    assert losses.values(row, z, y).tolist() == alone
    assert losses.slope_ranges(row, y)[0].tolist() == [-0.1, -0.5, -0.9]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lt.Quantile(1.0), "level must lie strictly between 0 and 1, got 1.0"),
        (lambda: lt.Quantile([0.5, 0.0]), "got 0.0 in row 1"),
        (lambda: lt.Tweedie(2.0), r'power must lie.*got 2.0; use the loss "poisson"'),
        (lambda: lt.Huber(0.0), "threshold must be positive"),
        (lambda: lt.EpsilonInsensitive(-0.1), "epsilon must be non-negative"),
        (lambda: lt.EmpiricalRisk([[1.0]], [-1.0], "poisson"), r"negative.*-1.0 in row 0"),
        (lambda: lt.EmpiricalRisk([[1.0]] * 2, [1.0, 0.0], "gamma"), r"positive.*0.0 in row 1"),
        (lambda: lt.EmpiricalRisk([[1.0]], [-2.0], lt.Tweedie(1.5)), r"tweedie.*-2.0 in row 0"),
        (lambda: lt.EmpiricalRisk([[1.0]], [0.0], "hinge"), r"-1 and \+1.*0.0 in row 0"),
        (lambda: lt.EmpiricalRisk([[1.0]], [0.0], lt.Quantile([0.1, 0.2])), "1 examples, got 2"),
    ],
)
def test_bad_parameters_and_targets_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_names_are_read_and_refused():
    assert losses.given_as(losses.loss_of("hinge")) == "hinge"
    assert losses.given_as(losses.loss_of(lt.Quantile(0.2))) == lt.Quantile(0.2)
    for loss in GIVEN:
        assert losses.given_as(losses.loss_of(loss)) == loss
    with pytest.raises(ValueError, match=r"one of hinge, logistic.*Quantile\(level\)"):
        losses.loss_of("pinball")
    with pytest.raises(ValueError, match="Quantile"):
        losses.loss_of("quantile")
