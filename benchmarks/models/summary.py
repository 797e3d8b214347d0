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
    rows = part["rows"].iloc[0] if "rows" in part and part["rows"].notna().all() else None
    size = "" if rows is None else f"{int(rows):,} rows, "
    return f"{name} ({size}{_splits(part['seed'].nunique())}), {measure}"


def _splits(count: int) -> str:
    return f"{count} split{'s' if count > 1 else ''}"


def _scores(part: pd.DataFrame, who: list[str]) -> list[str]:
    """Means of models that ran on fewer splits than the others say so, and have no star."""
    by_model = part.groupby("model")["score"]
    means, errors, splits = by_model.mean(), by_model.sem().fillna(0.0), by_model.count()
    sign = -1.0 if part["measure"].iloc[0] in LARGER_IS_BETTER else 1.0
    best = (sign * means[splits == splits.max()]).idxmin()
    cells = []
    for each in who:
        if each not in means:
            cells.append("")
        elif splits[each] < splits.max():
            cells.append(f"{means[each]:.4g} ({_splits(splits[each])})")
        else:
            near = sign * (means[each] - means[best]) <= max(errors[best], errors[each])
            cells.append(f"{means[each]:.4g} ± {errors[each]:.2g}{' *' if near else ''}")
    return cells
