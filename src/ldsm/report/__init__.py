"""A self-contained HTML report on a model and held-out rows; needs ``ldsm[plot]``."""

from .page import Report, make_report

__all__ = ["Report", "make_report"]
