"""Report on a fitted classifier: one self-contained HTML file for readers who did not train it."""

from dichotomies.report.page import Report
from dichotomies.report.report import make

__all__ = ["Report", "make"]
