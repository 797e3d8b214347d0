"""Layers that obey rules: lattices, calibrators and linear maps, certified by the core."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import lighttouch.lattice as grid
from lighttouch.constraints import LinearConstraints
from lighttouch.errors import DataError
from lighttouch.lattice import Lattice as Grid
from lighttouch.torch.feasible import Ruled, joined
from lighttouch.torch.interpolation import hypercube, simplex


class Lattice(Ruled):
    """A table of values at the vertices of a grid, interpolated between them, under rules.

    Feature d of the input lies in 0 .. sizes[d] - 1, with vertices at the whole numbers; values
    outside are clamped. The output has one number per row, and no last axis.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature, at least 2.
    increasing : int, sequence of int or True, default=None
        Features in which the output must never fall; True is all of them.
    rules : constraints or list of constraints, default=None
        More rules about the parameters, for example `lt.lattice.convex(sizes, 0)`.
    interpolation : {"simplex", "hypercube"}, default="simplex"
        From the d + 1 corners of a simplex, or all 2^d corners of a cell (multilinear).
    device, dtype : default=None
        As for every layer of PyTorch.

    Raises
    ------
    ValueError, ConstraintError
        For sizes below 2, unknown features, and rules about another number of parameters.

    Examples
    --------
    >>> import torch
    >>> from lighttouch.torch import Lattice
    >>> layer = Lattice([2, 2], increasing=[0])
    >>> layer(torch.tensor([[0.5, 0.5]])).shape
    torch.Size([1])
    >>> str(layer.certificate())
    '2 rows hold exactly'
    """

    tops: Tensor
    strides: Tensor

    def __init__(
        self,
        sizes: Sequence[int],
        increasing: int | Sequence[int] | bool | None = None,
        rules: Any = None,
        interpolation: str = "simplex",
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.grid = Grid(tuple(sizes), interpolation)
        count = self.grid.parameter_count
        own = [] if rules is None else list(rules) if isinstance(rules, list | tuple) else [rules]
        if increasing is not None and increasing is not False:
            features = None if increasing is True else increasing
            own.insert(0, grid.increasing(self.grid.sizes, features))
        self.rules = joined(own, count, "lattice")
        kind = dtype or torch.get_default_dtype()
        tops = torch.tensor([size - 1.0 for size in self.grid.sizes], dtype=kind, device=device)
        strides = torch.tensor(self.grid.strides, dtype=torch.int64, device=device)
        self.register_buffer("tops", tops, persistent=False)
        self.register_buffer("strides", strides, persistent=False)
        self.theta = nn.Parameter(torch.empty(count, dtype=kind, device=device))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """The mean of the features, each from 0 to 1; projected onto the rules."""
        axes = [np.linspace(0.0, 1.0, size) for size in self.grid.sizes]
        mean = sum(np.meshgrid(*axes, indexing="ij")) / len(axes)
        self.theta.copy_(torch.from_numpy(np.asarray(mean).reshape(-1)))
        self.project_()

    def _ruled(self) -> Tensor:
        return self.theta

    def forward(self, x: Tensor) -> Tensor:
        """Interpolate.

        Parameters
        ----------
        x : Tensor of shape (..., features)
            Positions along the features.

        Returns
        -------
        Tensor of shape (...)
            The values.
        """
        if x.shape[-1] != len(self.grid.sizes):
            raise DataError(
                f"the last axis must hold the {len(self.grid.sizes)} features of the lattice, got "
                f"shape {tuple(x.shape)}"
            )
        rows = x.reshape(-1, x.shape[-1]).to(self.theta.dtype)
        where = rows, self.theta, self.tops, self.strides
        found = simplex(*where) if self.grid.simplex else hypercube(*where, self.grid.sizes)
        return found.reshape(x.shape[:-1])

    def to_core(self) -> tuple[Grid, Any]:
        """The core's lattice and its parameters, whose `evaluate` is monotone to the last bit.

        Returns
        -------
        tuple of (lt.Lattice, ndarray)
            So that `lattice.evaluate(X, theta)` predicts what this layer does.
        """
        return self.grid, self.theta.detach().double().cpu().numpy()

    @classmethod
    def from_core(cls, lattice: Grid, theta: Any, rules: Any = None, **more: Any) -> Lattice:
        """A layer with the parameters of a lattice of the core.

        Parameters
        ----------
        lattice : lt.Lattice
            Its sizes and interpolation.
        theta : array
            The values at the vertices.
        rules : constraints or list of constraints, default=None
            What they obey.
        **more : device, dtype
            As for every layer.

        Returns
        -------
        Lattice
            The layer.
        """
        layer = cls(lattice.sizes, rules=rules, interpolation=lattice.interpolation, **more)
        with torch.no_grad():
            layer.theta.copy_(torch.from_numpy(np.asarray(theta, dtype=np.float64).reshape(-1)))
        return layer

    def to_model(
        self, names: Sequence[str] | None = None, calibrator: Calibrator | None = None
    ) -> Any:
        """Turn this layer into a fitted `lt.LatticeRegressor`, whose `save` writes a model file.

        Parameters
        ----------
        names : sequence of str, default=None
            Of the features, so that tables are read by name; None is a table without names.
        calibrator : Calibrator, default=None
            The layer before this one, with a curve for each feature, `lower=0` and
            `upper=size - 1`: it becomes the model's curves.

        Returns
        -------
        lt.LatticeRegressor
            It predicts what the layer does, to rounding. Its rules are the layer's, checked at
            every load; a missing cell counts as the middle of its axis; a lattice of one feature
            has the mean of its values there.

        Examples
        --------
        >>> from lighttouch.torch import Lattice
        >>> model = Lattice([2, 3], increasing=True).to_model(["age", "dose"])
        >>> model.predict(np.array([[1.0, 2.0]])).tolist()
        [1.0]
        """
        from lighttouch.torch import model_files  # imports scikit-learn

        grid, theta = self.to_core()
        maps = model_files.whole_number_maps(grid.sizes)
        if calibrator is not None:
            keypoints, positions = calibrator.keypoints.double(), calibrator.theta.detach().double()
            maps = model_files.calibrated_maps(
                keypoints.cpu().numpy(), positions.cpu().numpy(), grid.sizes
            )
        return model_files.model_of(grid, theta, self.rules, maps, names)

    @classmethod
    def from_model(cls, model: Any, **more: Any) -> tuple[list[Calibrator], Lattice]:
        """The layers of a model of one lattice, for example of a file that `lt.load` has read.

        Parameters
        ----------
        model : lt.LatticeRegressor
            With one lattice and one output.
        **more : device, dtype
            As for every layer; double precision keeps the model's predictions.

        Returns
        -------
        tuple of (list of Calibrator, Lattice)
            One calibrator per feature, and the lattice that takes what they give.

        Examples
        --------
        >>> from lighttouch.torch import Lattice
        >>> curves, layer = Lattice.from_model(Lattice([2, 3], increasing=True).to_model())
        >>> len(curves), layer.certificate().holds
        (2, True)
        """
        from lighttouch.torch import model_files  # imports scikit-learn

        term, theta, rows = model_files.parts_of(model)
        rules = None
        if rows is not None:
            rules = LinearConstraints(rows.A[:, 1 : 1 + theta.size], rows.b)
        curves = []
        for each in term.maps:
            curve = Calibrator(each.keypoints, **more)
            with torch.no_grad():
                curve.theta.copy_(torch.from_numpy(each.positions))
            curves.append(curve)
        return curves, cls.from_core(term.lattice, theta, rules, **more)

    def extra_repr(self) -> str:
        """What is printed between the brackets."""
        rows = 0 if self.rules is None else self.rules.count
        return f"{list(self.grid.sizes)}, interpolation={self.grid.interpolation!r}, rows={rows}"


class Calibrator(Ruled):
    """Piecewise linear functions of single features, under rules.

    Parameters
    ----------
    keypoints : sequence of numbers, or one sequence per feature
        Where the function may bend, ascending, at least 2; the input is clamped to their range.
        With one sequence per feature each column of the input has a function of its own.
    increasing : bool, default=False
        Whether the outputs never fall.
    lower, upper : float, default=None
        Bounds on the outputs.
    rules : constraints or list of constraints, default=None
        More rules about the outputs at the keypoints, the same for each feature.
    device, dtype : default=None
        As for every layer of PyTorch.

    Raises
    ------
    ValueError, ConstraintError
        For keypoints that do not ascend, and rules about another number of parameters.

    Examples
    --------
    >>> import torch
    >>> from lighttouch.torch import Calibrator
    >>> layer = Calibrator([0.0, 10.0, 100.0], increasing=True, lower=0.0, upper=1.0)
    >>> layer(torch.tensor([5.0, 200.0])).tolist()
    [0.25, 1.0]
    """

    keypoints: Tensor

    def __init__(
        self,
        keypoints: Any,
        increasing: bool = False,
        lower: float | None = None,
        upper: float | None = None,
        rules: Any = None,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kind = dtype or torch.get_default_dtype()
        places = torch.as_tensor(keypoints, dtype=kind, device=device)
        if places.ndim not in (1, 2) or places.shape[-1] < 2 or not bool((places.diff() > 0).all()):
            raise ValueError(
                "keypoints must ascend, at least 2 of them, in one sequence or one per feature, "
                f"got {keypoints}"
            )
        count = int(places.shape[-1])
        own = [] if rules is None else list(rules) if isinstance(rules, list | tuple) else [rules]
        if lower is not None or upper is not None:
            own.insert(0, grid.bounds([count], lower, upper))
        if increasing:
            own.insert(0, grid.increasing([count]))
        self.rules = joined(own, count, "calibrator")
        self.register_buffer("keypoints", places)
        self.theta = nn.Parameter(torch.empty_like(places))
        self._range = (
            0.0 if lower is None else lower,
            (1.0 if lower is None else lower + 1.0) if upper is None else upper,
        )
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """From the lower to the upper bound in equal steps; projected onto the rules."""
        steps = torch.linspace(*self._range, int(self.keypoints.shape[-1]))
        self.theta.copy_(steps.expand_as(self.theta))
        self.project_()

    def _ruled(self) -> Tensor:
        return self.theta

    def forward(self, x: Tensor) -> Tensor:
        """Interpolate between the keypoints.

        Parameters
        ----------
        x : Tensor of any shape, or (..., features)
            Values.

        Returns
        -------
        Tensor of the same shape
            Calibrated values.
        """
        alone = self.keypoints.ndim == 1
        if not alone and x.shape[-1] != self.keypoints.shape[0]:
            raise DataError(
                f"the last axis must hold the {self.keypoints.shape[0]} features of the "
                f"calibrator, got shape {tuple(x.shape)}"
            )
        places = self.keypoints[None] if alone else self.keypoints
        theta = self.theta[None] if alone else self.theta
        columns = (x.reshape(1, -1) if alone else x.reshape(-1, x.shape[-1]).T).contiguous()
        inside = torch.minimum(torch.maximum(columns, places[:, :1]), places[:, -1:])
        cell = torch.searchsorted(places, inside.detach(), right=True) - 1
        cell = cell.clamp(0, int(places.shape[1]) - 2)
        left, right = places.gather(1, cell), places.gather(1, cell + 1)
        low, high = theta.gather(1, cell), theta.gather(1, cell + 1)
        found = low + (inside - left) / (right - left) * (high - low)
        return found.reshape(x.shape) if alone else found.T.reshape(x.shape)

    def extra_repr(self) -> str:
        """What is printed between the brackets."""
        rows = 0 if self.rules is None else self.rules.count
        return f"keypoints={list(self.keypoints.shape)}, rows={rows}"


class Linear(Ruled):
    """A linear map whose weights obey rules.

    Parameters
    ----------
    in_features, out_features : int
        As for `torch.nn.Linear`.
    rules : constraints or list of constraints, default=None
        About the `in_features` weights of every output (the same for each), or about all weights
        of all outputs, row by row.
    bias : bool, default=True
        Whether to add a number to each output; no rule speaks of it.
    device, dtype : default=None
        As for every layer of PyTorch.

    Raises
    ------
    ConstraintError
        For rules about another number of parameters.

    Examples
    --------
    >>> import lighttouch as lt
    >>> from lighttouch.torch import Linear
    >>> layer = Linear(3, 2, rules=lt.bounds(3, lower=0.0))
    >>> bool((layer.weight >= 0.0).all())
    True
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        rules: Any = None,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        given = list(rules) if isinstance(rules, list | tuple) else [rules]
        everything = in_features * out_features
        of_all = rules is not None and getattr(given[0], "dimension", 0) == everything
        self.rules = joined(rules, everything if of_all else in_features, "linear map")
        kind = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(out_features, in_features, **kind))
        self.bias = nn.Parameter(torch.empty(out_features, **kind)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As `torch.nn.Linear`, then projected onto the rules."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            most = 1.0 / math.sqrt(max(1, self.in_features))
            nn.init.uniform_(self.bias, -most, most)
        self.project_()

    def _ruled(self) -> Tensor:
        return self.weight

    def forward(self, x: Tensor) -> Tensor:
        """Map the last axis.

        Parameters
        ----------
        x : Tensor of shape (..., in_features)
            Inputs.

        Returns
        -------
        Tensor of shape (..., out_features)
            Outputs.
        """
        return nn.functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """What is printed between the brackets."""
        rows = 0 if self.rules is None else self.rules.count
        return f"{self.in_features}, {self.out_features}, rows={rows}"
