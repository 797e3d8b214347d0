"""The report: one HTML file that shows the proof, the accuracy and the shape of a trained model."""

from lighttouch.report.accuracy import Accuracy, Data, accuracy
from lighttouch.report.page import write_report
from lighttouch.report.scales import scale_note

__all__ = ["Accuracy", "Data", "accuracy", "scale_note", "write_report"]
