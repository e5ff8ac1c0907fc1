"""A report on a fitted classifier: one HTML file that opens anywhere, for people who did not train it."""

from dichotomies.report.page import Report
from dichotomies.report.report import make

__all__ = ["Report", "make"]
