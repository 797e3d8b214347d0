"""Draws Figure 3 from its curves."""

from __future__ import annotations

from pathlib import Path

from lighttouch.experiments.pictures import Picture, read_table


def plot(folder: Path) -> None:
    curves = read_table(folder / "curves.csv")
    picture = Picture(
        1, "Objective against runtime, each at its best\n(mean of seeds; band: smallest to largest)"
    )
    axes = picture.panel(0, xlabel="seconds", ylabel="average hinge loss", xscale="log")
    picture.curves(axes, curves, "seconds", "objective")
    picture.near_the_bottom(axes, curves, "seconds")
    picture.save(folder / "figure3")
