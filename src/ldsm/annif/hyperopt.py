"""Parameter search with Annif's ``hyperopt``.

Each trial trains on the cached documents of the last training, and is scored on the documents of
the command.
"""

from __future__ import annotations

from typing import Any

import annif.eval
from annif.backend.hyperopt import HPObjective, HPRecommendation, HyperparameterOptimizer
from annif.corpus import SubjectSet
from annif.exception import NotSupportedException

from .backend import fitted, suggested
from .documents import names_of, words_of


class LdSMObjective(HPObjective):  # type: ignore[misc]
    """The score of one choice of parameters."""

    @classmethod
    def objective(cls, trial: Any, args: dict[str, Any]) -> float:
        settings = {
            **args["settings"],
            "n_estimators": trial.suggest_int("n_estimators", 5, 40, step=5),
            "arity": trial.suggest_int("arity", 2, 4),
            "min_split_labels": trial.suggest_int("min_split_labels", 32, 2048, log=True),
            "integrity_weight": trial.suggest_float("integrity_weight", 0.5, 4.0, step=0.25),
        }
        tagger = fitted(args["data"], args["names"], settings, args["n_jobs"], args["encoder"])
        subjects = args["subjects"]
        batch = suggested(tagger, args["texts"], args["limit"], subjects)
        evaluation = annif.eval.EvaluationBatch(subjects)
        evaluation.evaluate_many(batch, args["gold"])
        return float(evaluation.results(metrics=[args["metric"]])[args["metric"]])


class LdSMOptimizer(HyperparameterOptimizer):  # type: ignore[misc]
    """Searches the parameters of the trees."""

    def __init__(self, backend: Any, corpus: Any, metric: str) -> None:
        super().__init__(backend, corpus, metric, LdSMObjective)

    def _prepare(self, n_jobs: int = 1) -> dict[str, Any]:
        backend = self._backend
        documents = list(self._corpus.documents)
        if not documents:
            raise NotSupportedException(
                "Cannot score trials without documents", project_id=backend.project.project_id
            )
        self._check_metric()
        # Parallel trials share the processors; a single trial uses all.
        n_jobs = -1 if n_jobs == 1 else 1
        return {
            "data": backend.training_data(),
            "names": names_of(backend.project),
            "settings": backend.settings(backend.params),
            "texts": [words_of(backend.project, document.text) for document in documents],
            "gold": [document.subject_set for document in documents],
            "subjects": backend.project.subjects,
            "limit": backend.limit(backend.params),
            "metric": self._metric,
            "n_jobs": n_jobs,
            "encoder": backend.encoder(backend.params, n_jobs),
        }

    def _check_metric(self) -> None:
        """Raise an error for an unknown metric now, because Annif hides it later."""
        evaluation = annif.eval.EvaluationBatch(self._backend.project.subjects)
        evaluation.evaluate_many([[]], [SubjectSet([0])])
        known = evaluation.results()
        if self._metric not in known:
            raise NotSupportedException(
                f"The metric must be one of {', '.join(known)}. Got {self._metric!r}.",
                project_id=self._backend.project.project_id,
            )

    def _postprocess(self, study: Any) -> HPRecommendation:
        lines = [f"{name}={value}" for name, value in study.best_params.items()]
        return HPRecommendation(lines=lines, score=study.best_value)
