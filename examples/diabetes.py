"""What `make run` runs: a real table, rules that physicians would state, a model that obeys them.

The commands it shows are the ones it runs: `lighttouch train`, `check` and `predict`.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from sklearn.datasets import load_diabetes

from lighttouch.cli import main as lighttouch

NAMES = {  # as scikit-learn's description of the table explains them
    "bp": "blood_pressure",
    "s1": "cholesterol",
    "s2": "ldl",
    "s3": "hdl",
    "s4": "cholesterol_per_hdl",
    "s5": "log_triglycerides",
    "s6": "glucose",
    "target": "progression",
}
ABOUT = """\
442 diabetes patients: age, sex, body mass index, blood pressure and six blood values, and how far
the disease had progressed a year later (Efron, Hastie, Johnstone and Tibshirani, 2004; the table
comes with scikit-learn). A model that physicians can accept must never predict less for a patient
who differs only by more body mass, pressure, triglycerides or glucose, nor more for one with more
HDL.
"""


def main(folder: Path) -> int:
    """Write the table to `folder`, then run the commands on it until one fails."""
    folder.mkdir(parents=True, exist_ok=True)
    table, model, report = (folder / f"diabetes.{kind}" for kind in ("csv", "lt", "html"))
    load_diabetes(as_frame=True, scaled=False).frame.rename(columns=NAMES).to_csv(
        table, index=False
    )
    print(ABOUT, flush=True)
    for words in commands(folder, table, model, report):
        print(f"$ lighttouch {shlex.join(words)}", flush=True)
        code = lighttouch(words)
        print(flush=True)
        if code:
            return code
    print(
        f"Open {report.resolve().as_uri()} in a browser.\n"
        "Next: your own table, by the same commands (docs/command_line.md); make demo-ranking "
        "trains\nthe paper's kind of model under 24,576 constraints."
    )
    return 0


def commands(folder: Path, table: Path, model: Path, report: Path) -> list[list[str]]:
    """The words of each command."""
    rules = ["--increasing", "bmi,blood_pressure,log_triglycerides,glucose", "--decreasing", "hdl"]
    places = ["-o", str(model), "--report", str(report), "--overwrite"]
    asked = ["--target", "progression", *rules, "--holdout", "0.25", *places]
    predictions = ["-o", str(folder / "predictions.csv"), "--overwrite"]
    return [
        ["train", str(table), *asked],
        ["check", str(model), str(table)],
        ["predict", str(model), str(table), *predictions],
    ]


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:2] or ["results/demo"])))
