"""A self-contained HTML page about a model on held-out rows; figures need ``ldsm[plot]``."""

from .page import Report, make_report

__all__ = ["Report", "make_report"]
