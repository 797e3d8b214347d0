"""Draws Figure 2 from its curves."""

from __future__ import annotations

from pathlib import Path

from lighttouch.experiments.pictures import Picture, read_table


def plot(folder: Path) -> None:
    curves = read_table(folder / "curves.csv")
    picture = Picture(2, "How constraints are handled (mean of seeds; band: smallest to largest)")
    left = picture.panel(0, xlabel="iterations", ylabel="violation max(0, g(w))", xscale="log")
    picture.curves(left, curves, "iteration", "violation")
    left.set_ylim(bottom=-0.15)
    right = picture.panel(
        1, xlabel="iterations", ylabel="average checks per iteration", xscale="log", yscale="log"
    )
    picture.curves(right, curves, "iteration", "checks_per_iteration")
    picture.save(folder / "figure2")
