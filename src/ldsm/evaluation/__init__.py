"""A model beside labelled rows: metrics, its trees one by one, how far scores can be trusted."""

from .held_out import HeldOut, MetricCurve, SingleTrees

__all__ = ["HeldOut", "MetricCurve", "SingleTrees"]
