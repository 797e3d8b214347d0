"""Draws Figure 1 from its curves."""

from __future__ import annotations

from pathlib import Path

from lighttouch.experiments.pictures import Picture, read_table


def plot(folder: Path) -> None:
    curves = read_table(folder / "curves.csv")
    picture = Picture(
        2, "Objective of the projected iterates (mean of seeds; band: smallest to largest)"
    )
    for place, column, label in (
        (0, "iteration", "iterations"),
        (1, "constraint_checks", "constraint checks"),
    ):
        axes = picture.panel(
            place, xlabel=label, ylabel="average hinge loss" if place == 0 else None, xscale="log"
        )
        picture.curves(axes, curves, column, "objective")
        picture.near_the_bottom(axes, curves, column)
    picture.save(folder / "figure1")
