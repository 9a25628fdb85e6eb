"""The version of the library: a constant, so that no stale metadata can change what it says."""

__version__ = "0.2.0"
