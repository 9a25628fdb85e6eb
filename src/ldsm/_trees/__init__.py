"""The trees: parameters, growing, the finished forest, checkpoints, statistics."""

from .forest import Forest

__all__ = ["Forest"]
