"""The trees: parameters, growing, the frozen forest, checkpoints, statistics."""

from .forest import Forest

__all__ = ["Forest"]
