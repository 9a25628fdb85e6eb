"""Which executor runs the parts of a fit, an update or a prediction: threads, unless one is set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .executor import Executor, JoblibExecutor, ThreadExecutor

_set: ContextVar[Executor | None] = ContextVar("ldsm-executor", default=None)


@contextmanager
def running_on(executor: Executor) -> Iterator[None]:
    """Run the parts of all work in this block, and in this thread, by an executor."""
    token = _set.set(executor)
    try:
        yield
    finally:
        _set.reset(token)


def tree_executor(n_jobs: int | None) -> Executor:
    """The executor that is set, or joblib's."""
    return _set.get() or JoblibExecutor(n_jobs)


def stage_executor(n_jobs: int | None) -> Executor:
    """The executor that is set, or threads."""
    return _set.get() or ThreadExecutor(n_jobs)
