"""The report: one HTML file that shows where a trained model comes from, how good it is, what its
rules cost and what it does; and the same as numbers.
"""

from lighttouch.estimators.proof import ConstraintReport, RuleReport
from lighttouch.report.accuracy import Accuracy, Data, accuracy
from lighttouch.report.findings import Findings, examine
from lighttouch.report.page import write_report

__all__ = [
    "Accuracy",
    "ConstraintReport",
    "Data",
    "Findings",
    "RuleReport",
    "accuracy",
    "examine",
    "write_report",
]
