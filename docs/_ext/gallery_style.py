"""How the gallery's figures look: few colours, readable on a light and on a dark page."""

from __future__ import annotations

from typing import Any

MIDDLE = "#828282"  # a contrast of about 4 to 1 on white and on furo's dark background
COLOURS = ["#3b86c6", "#dd7127", "#4f9a58"]
STYLE = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": MIDDLE,
    "axes.labelcolor": MIDDLE,
    "axes.titlecolor": MIDDLE,
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MIDDLE,
    "ytick.color": MIDDLE,
    "text.color": MIDDLE,
    "legend.frameon": False,
}


def use(gallery_conf: dict[str, Any], name: str) -> None:
    """Set the style before each piece runs; sphinx-gallery calls this after its own reset."""
    import matplotlib as mpl

    mpl.rcParams.update(STYLE)
    mpl.rcParams["axes.prop_cycle"] = mpl.cycler(color=COLOURS)
