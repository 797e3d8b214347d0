"""What `train` shall predict: losses, quantiles, ordered classes and limits, as an estimator's
parameters.
"""

from __future__ import annotations

import argparse
from typing import Any

from lighttouch.errors import DataError
from lighttouch.estimators.parameters import CLASSIFICATION, LINEAR_REGRESSION, LOG_LINK, REGRESSION


def asked_task(options: argparse.Namespace) -> str:
    """The task, where --loss says it."""
    task: str = options.task
    if task == "auto" and (options.loss in REGRESSION or options.quantile is not None):
        return "regression"
    return task


def predicted(
    options: argparse.Namespace, task: str, y: Any, linear: bool = False
) -> dict[str, Any]:
    """The parameters that the options ask for; only those that were given."""
    found = _losses(options, task, linear)
    if options.ordinal is not None:
        found["ordinal"] = _classes(options.ordinal, y) if options.ordinal else True
    for name in ("output_min", "output_max"):
        if getattr(options, name) is not None:
            found[name] = getattr(options, name)
    only = {"ordinal": "classification", "output_min": "regression", "output_max": "regression"}
    for name, needed in only.items():
        if name in found and (task != needed or linear):
            option = f"--{name.replace('_', '-')}"
            raise DataError(f"{option} is for {needed} with curves and lattices; leave it out")
    return found


def _losses(options: argparse.Namespace, task: str, linear: bool) -> dict[str, Any]:
    """The loss and its levels."""
    loss = options.loss or ("quantile" if options.quantile else None)
    found = {} if loss is None else {"loss": _loss(loss, task, linear)}
    if options.exposure is not None and loss not in LOG_LINK:
        raise DataError(f"--exposure needs --loss {' or '.join(LOG_LINK)}, got {loss or 'none'}")
    if not options.quantile:
        return found
    if loss != "quantile":
        raise DataError(f"--quantile needs --loss quantile, got --loss {loss}")
    levels = options.quantile
    if linear and len(levels) > 1:
        raise DataError("a linear model has one quantile; leave --linear out, or name one level")
    return found | {"quantile": levels[0] if len(levels) == 1 else levels}


def _loss(loss: str, task: str, linear: bool) -> str:
    allowed = {
        "regression": LINEAR_REGRESSION if linear else REGRESSION,
        "classification": CLASSIFICATION,
        "ranking": CLASSIFICATION,
    }[task]
    if loss not in allowed:
        raise DataError(f"--loss must be one of {', '.join(allowed)} for {task}, got {loss}")
    return loss


def _classes(listed: list[str], y: Any) -> list[Any]:
    """The listed classes as the target holds them: as numbers where it does."""
    known = {str(each): each for each in y.unique().tolist()}
    for name in listed:
        if name not in known:
            raise DataError(
                f"--ordinal must list the target's classes, got {name!r}; they are "
                f"{', '.join(sorted(known))}"
            )
    return [known[name] for name in listed]
