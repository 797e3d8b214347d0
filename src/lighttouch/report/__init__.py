"""The report: one HTML file that shows the proof, the accuracy and the shape of a trained model."""

from lighttouch.report.accuracy import Accuracy, Data, accuracy
from lighttouch.report.models import has_several_outputs, scale_note
from lighttouch.report.page import write_report

__all__ = ["Accuracy", "Data", "accuracy", "has_several_outputs", "scale_note", "write_report"]
