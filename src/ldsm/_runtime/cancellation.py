"""Leaving work in threads: calls inside the core are told to stop, and waited for.

A thread that is still in compiled code when the interpreter ends takes the process down with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The core looks at the flag many times a second; longer than this nobody waits.
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class Recall:
    """A flag that calls into the core look at, and who is inside. Plain arrays: it can be pickled,
    but only threads share them."""

    flag: NDArray[np.int32]
    inside: NDArray[np.int8]

    @classmethod
    def for_tasks(cls, n_tasks: int) -> Recall:
        return cls(np.zeros(1, dtype=np.int32), np.zeros(n_tasks, dtype=np.int8))

    @contextmanager
    def entered(self, task: int) -> Iterator[NDArray[np.int32]]:
        """Around one call into the core, which is given the flag."""
        self.inside[task] = 1
        try:
            yield self.flag
        finally:
            self.inside[task] = 0

    @contextmanager
    def on_failure(self) -> Iterator[None]:
        """Around all tasks: whatever ends them early calls the others back."""
        try:
            yield
        except BaseException:
            self.flag[0] = 1
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while self.inside.any() and time.monotonic() < deadline:
                time.sleep(0.005)
            raise
