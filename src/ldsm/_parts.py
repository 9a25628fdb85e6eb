"""A fit as plans of parts, for engines that ldsm knows nothing of."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from ._execution.chosen import running_on
from ._execution.executor import Control, Executor, Part, Result, Run, Task
from ._execution.threads import starting_threads, worker_count
from ._storage.paths import PathLike
from ._storage.tasks.sharing import Sent, sent
from ._trees.checkpoint import prepare_folder
from .classifier import LdSMClassifier
from .text import TextTagger

Model = LdSMClassifier | TextTagger
_IN_PLAN = 64  # parts that hold texts; they are in memory at once


class Plan:
    """The parts of one stage of a fit, which can run anywhere and in any order; see `parts`.

    Attributes
    ----------
    name : str
        The kind of parts, such as "tree".
    model : LdSMClassifier, TextTagger or None
        The fitted model, once there are no more parts.
    """

    def __init__(self, name: str, work: Any, n_parts: int, fit: _Fit | None) -> None:
        self.name = name
        self.model: Model | None = None
        self._work, self._n_parts, self._fit = work, n_parts, fit
        if fit is not None:
            self._abandon = weakref.finalize(self, fit.abandon)

    def __len__(self) -> int:
        return self._n_parts

    def __getstate__(self) -> dict[str, Any]:
        state = {name: vars(self)[name] for name in ("name", "model", "_work", "_n_parts")}
        return {**state, "_fit": None}

    def run(self, number: int) -> None:
        """Run a part, in any process that sees the folder; its result is a file there.

        Parameters
        ----------
        number : int
            From 0 to ``len(plan) - 1``.
        """
        task, parts = self._work.opened()
        task(parts[number], Control.unshared())

    def merge(self) -> Plan:
        """Put the results together; returns the next plan. Parts that have not run are run here.

        The last plan has no parts, but a `model`.
        """
        if self._fit is None:
            raise RuntimeError("A plan can be merged only once, in the process that made it.")
        fit, self._fit = self._fit, None
        self._abandon.detach()
        return fit.resumed()


def parts(model: Model, X: Any, y: Any = None, *, folder: PathLike, **options: Any) -> Plan:
    """Start a fit whose parts your own program runs, on any engine.

    A fit is a sequence of plans: trees, then the stages of the ranker. The parts of a plan can run
    at the same time, in any order, in any process on any machine that sees the `folder`. Each
    leaves its result there. The model is bit for bit the one that `fit` gives. If the program is
    stopped, the same call resumes the fit.

    Parameters
    ----------
    model : LdSMClassifier or TextTagger
        An estimator, which is not changed.
    X, y : Any
        As in the `fit` of the model.
    folder : path
        A checkpoint: a new or empty folder, or that of the same fit.
    **options : Any
        More arguments of the model's `fit`, such as `vocabulary`.

    Returns
    -------
    Plan
        The first plan. ``plan.run(i)`` runs one of its ``len(plan)`` parts; plans can be pickled.
        ``plan.merge()`` gives the next plan. The last one has no parts; its `model` is fitted.

    Examples
    --------
    >>> import ldsm
    >>> data = ldsm.datasets.make_xmc(300, 60, 20, seed=0)
    >>> plan = ldsm.parts(ldsm.LdSMClassifier(4, random_state=0), data, folder="work")
    >>> while len(plan):
    ...     for i in range(len(plan)):
    ...         plan.run(i)
    ...     plan = plan.merge()
    >>> plan.model.forest_.n_trees
    4
    """
    if not isinstance(model, (LdSMClassifier, TextTagger)):
        raise ValueError(
            f"The 'model' argument must be an LdSMClassifier or a TextTagger. Got {model!r}."
        )
    place = prepare_folder(folder)
    return _Fit(clone(model), (X, y), {**options, "checkpoint_dir": place}, place).resumed()


class _Abandoned(Exception):
    """Ends the thread of a fit that nobody will resume."""


class _Fit:
    """A fit in a thread that waits for others to run its parts."""

    def __init__(self, model: Model, data: Any, options: Any, folder: str) -> None:
        self.folder = folder
        self._said: queue.Queue[Any] = queue.Queue()  # by the fit: a plan, a model or an error
        self._heard: queue.Queue[bool] = queue.Queue()  # whether to continue
        classifier = model if isinstance(model, LdSMClassifier) else model.classifier
        n_jobs = None if classifier is None else classifier.n_jobs

        def work() -> None:
            try:
                with running_on(_Handing(self, worker_count(n_jobs))):
                    self._said.put(model.fit(*data, **options))
            except _Abandoned:
                pass
            except BaseException as error:
                self._said.put(error)

        self._thread = threading.Thread(target=work, name="ldsm-parts", daemon=True)

    def resumed(self) -> Plan:
        """The next plan, or one without parts that has the model."""
        if self._thread.ident is None:
            with starting_threads(1):
                self._thread.start()
        else:
            self._heard.put(True)
        said = self._said.get()
        if isinstance(said, BaseException):
            raise said
        if isinstance(said, Plan):
            return said
        plan = Plan("", None, 0, None)
        plan.model = said
        return plan

    def abandon(self) -> None:
        self._heard.put(False)

    def hand_over(self, name: str, work: Sent[Any], n_parts: int) -> None:
        """Wait until others have run the parts of a plan."""
        self._said.put(Plan(name, work, n_parts, self))
        if not self._heard.get():
            raise _Abandoned


@dataclass(frozen=True)
class _Handing(Executor):
    """Hands parts over; then collects what they left in the folder, or runs them itself."""

    fit: _Fit
    at_once_here: int

    @property
    def at_once(self) -> int:
        return self.at_once_here

    @property
    def in_memory(self) -> int:
        return _IN_PLAN

    def _map(
        self, task: Task[Part, Result], some: Sequence[Part], run: Run, name: str
    ) -> list[Result]:
        with sent((task, some), self.fit.folder) as travelling:
            self.fit.hand_over(name, travelling, len(some))
        return [run.call(task, number, part) for number, part in enumerate(some)]
