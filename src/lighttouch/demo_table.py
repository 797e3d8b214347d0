"""What `make run` runs: a real table, rules that physicians would state, a model that obeys them,
its report.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lighttouch.cli import main as lighttouch

NAMES = {  # what scikit-learn's description of the table says of its columns
    "bp": "blood_pressure", "s1": "cholesterol", "s2": "ldl", "s3": "hdl", "s4": "cholesterol_per_hdl", "s5": "log_triglycerides",
    "s6": "glucose", "target": "progression",
}  # fmt: skip
ABOUT = """\
442 diabetes patients: age, sex, body mass index, blood pressure and six blood values, and how far the disease had progressed a year
later (Efron, Hastie, Johnstone and Tibshirani, 2004; the table comes with scikit-learn). A model that physicians can accept must never
predict less for a patient who differs only by more body mass, pressure, triglycerides or glucose, nor more for one with more HDL.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    folder = Path(given[0] if given else "results/demo")
    folder.mkdir(parents=True, exist_ok=True)
    table = _write_table(folder / "diabetes.csv")
    model, report = table.with_suffix(".lt"), table.with_suffix(".html")
    print(ABOUT, flush=True)
    rising = "bmi,blood_pressure,log_triglycerides,glucose"
    rules = ["--increasing", rising, "--decreasing", "hdl"]
    places = ["--holdout", "0.25", "-o", str(model), "--report", str(report), "--overwrite"]
    for words in (
        ["train", str(table), "--target", "progression", *rules, *places],
        ["check", str(model), str(table)],
        ["predict", str(model), str(table), "-o", str(folder / "predictions.csv"), "--overwrite"],
    ):
        print(f"$ lighttouch {shlex.join(words)}", flush=True)
        code = lighttouch(words)
        print(flush=True)
        if code:
            return code
    print(f"Open {report.resolve().as_uri()} in a browser. Next: your own table, by the same "
"commands (docs/command_line.md);\n"
          "make demo-ranking trains the paper's kind of model under 24,576 constraints.")  # fmt: skip
    return 0


def _write_table(path: Path) -> Path:
    from sklearn.datasets import load_diabetes

    found = load_diabetes(as_frame=True, scaled=False)
    found.frame.rename(columns=NAMES).to_csv(path, index=False)
    return path


if __name__ == "__main__":
    sys.exit(main())
