"""What the runs say: one line per table, mean and standard error over the splits."""

from __future__ import annotations

from typing import Any

import pandas as pd

LARGER_IS_BETTER = ("ndcg@5",)


def markdown(rows: list[dict[str, Any]]) -> str:
    """Two tables: scores under rules, with a star for the best and all within one standard error of
    it, and median processor seconds of fit and prediction beside LightGBM's.
    """
    frame = pd.DataFrame(rows)
    ruled = frame[frame["rules"]]
    who = list(dict.fromkeys(ruled["model"]))
    lines = [f"| | {' | '.join(who)} |", f"|---|{'---|' * len(who)}"]
    for (name, measure), part in ruled.groupby(["set", "measure"], sort=False):
        lines.append(f"| {_title(name, measure, part)} | {' | '.join(_scores(part, who))} |")
    lines += ["", f"| processor seconds | {' | '.join(who)} |", f"|---|{'---|' * len(who)}"]
    for name, part in ruled.groupby("set", sort=False):
        seconds = part.groupby("model")["seconds"].median()
        cells = [f"{seconds[each]:.2g}" if each in seconds else "" for each in who]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _title(name: str, measure: str, part: pd.DataFrame) -> str:
    splits = part["seed"].nunique()
    rows = part["rows"].iloc[0] if "rows" in part and part["rows"].notna().all() else None
    size = "" if rows is None else f"{int(rows):,} rows, "
    return f"{name} ({size}{splits} split{'s' * (splits > 1)}), {measure}"


def _scores(part: pd.DataFrame, who: list[str]) -> list[str]:
    means = part.groupby("model")["score"].mean()
    errors = part.groupby("model")["score"].sem().fillna(0.0)
    sign = -1.0 if part["measure"].iloc[0] in LARGER_IS_BETTER else 1.0
    best = (sign * means).idxmin()
    cells = []
    for each in who:
        if each not in means:
            cells.append("")
            continue
        near = sign * (means[each] - means[best]) <= max(errors[best], errors[each])
        cells.append(f"{means[each]:.4g} ± {errors[each]:.2g}{' *' if near else ''}")
    return cells
