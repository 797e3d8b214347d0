"""Projections during training, through the optimizer's own hook."""

from __future__ import annotations

from typing import Any

from torch import nn

from lighttouch.torch.feasible import Ruled
from lighttouch.validation import positive_int


def keep_feasible(optimizer: Any, module: nn.Module, every: int = 100) -> Any:
    """Project every layer with rules after each `every` steps of the optimizer.

    It uses the optimizer's post-step hook, so that plain loops, Lightning and Accelerate work
    unchanged. The optimizer's own state is left alone. Project once more at the end.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        Whose steps are counted.
    module : Module
        All layers with `project_()` in it are projected, itself included.
    every : int, default=100
        Steps between two projections.

    Returns
    -------
    RemovableHandle
        `handle.remove()` ends it.

    Raises
    ------
    ValueError
        Where no layer of the module has rules.

    Examples
    --------
    >>> import torch
    >>> from lighttouch.torch import Lattice, keep_feasible
    >>> layer = Lattice([2], increasing=True)
    >>> optimizer = torch.optim.SGD(layer.parameters(), lr=10.0)
    >>> handle = keep_feasible(optimizer, layer, every=1)
    >>> layer(torch.ones(1, 1)).sum().backward()  # pushes the upper vertex down
    >>> optimizer.step()
    >>> layer.certificate().holds
    True
    >>> handle.remove()
    """
    positive_int(every, "every")
    layers = [each for each in module.modules() if isinstance(each, Ruled) and each.rules]
    if not layers:
        raise ValueError(
            "module must hold a layer with rules (Lattice, Calibrator or Linear of "
            f"lighttouch.torch), got {type(module).__name__} without any"
        )
    done = 0

    def hook(*_: Any) -> None:
        nonlocal done
        done += 1
        if done % every == 0:
            for layer in layers:
                layer.project_()

    return optimizer.register_step_post_hook(hook)
