"""Annif's ``ldsm`` backend: a TextTagger that uses the names of the subjects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annif.backend.backend import AnnifLearningBackend
from annif.backend.hyperopt import AnnifHyperoptBackend
from annif.exception import (
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)
from annif.suggestion import SubjectSuggestion, SuggestionBatch

from .._loading import load
from .._storage.locks import locked
from .._trees.params import CONSTRAINTS, Number, Rule, is_ranked
from ..classifier import LdSMClassifier
from ..datasets.dataset import Dataset
from ..datasets.store import open_store, save_store
from ..text.encoders.onnx import OnnxEncoder
from ..text.fitted import fitted_text
from ..text.tagger import TextTagger
from .documents import chunks_of, documents_of, names_of, source_of, words_of

# The parameters of LdSMClassifier that a project may set.
TREES = ("effort", "n_estimators", "arity", "min_split_labels", "integrity_weight", "random_state")
_SEED = (Number(0, 2**32 - 1, integer=True),)


class LdSMBackend(AnnifLearningBackend, AnnifHyperoptBackend):  # type: ignore[misc]
    """Suggests subjects from the words of a text and the names of the subjects.

    Texts are used unchanged, unless the project sets an analyzer.

    Parameters of a project
    -----------------------
    limit : int, default=100
        Maximum number of subjects to suggest.
    effort, n_estimators, arity, min_split_labels, integrity_weight, random_state
        As in `LdSMClassifier`, with the same defaults.
    encoder : path, optional
        A folder or ``.onnx`` file with a sentence encoder, see `TextTagger`.

    Examples
    --------
    A project in ``projects.cfg``::

        [archaeology-ldsm-fi]
        name=Archaeology
        language=fi
        backend=ldsm
        vocab=archaeology
    """

    name = "ldsm"

    MODEL_FILE = "ldsm-model.ldsm"
    TRAIN_FOLDER = "ldsm-train"  # Annif skips names like this when it uploads a project

    DEFAULT_PARAMETERS = {  # noqa: RUF012 - as in all backends
        "limit": 100,
        **{name: LdSMClassifier().get_params()[name] for name in TREES},
    }

    _tagger: TextTagger | None = None

    @property
    def _model_path(self) -> str:
        return os.path.join(self.datadir, self.MODEL_FILE)

    @property
    def _model_file_paths(self) -> list[str]:
        """Files by which Annif tells whether and when the project was trained."""
        return [self._model_path] if os.path.exists(self._model_path) else []

    # -- suggesting ---------------------------------------------------------------------------

    def initialize(self, parallel: bool = False) -> None:
        if self._tagger is None:
            self._tagger = self._loaded()

    def _loaded(self) -> TextTagger:
        path = self._model_path
        self.debug(f"loading model from {path}")
        try:
            tagger = load(path, encoder=self.params.get("encoder") or None)
        except FileNotFoundError:
            raise NotInitializedException(
                f"model {path} not found", backend_id=self.backend_id
            ) from None
        except ValueError as error:
            raise OperationFailedException(str(error), backend_id=self.backend_id) from error
        if not isinstance(tagger, TextTagger):
            raise OperationFailedException(
                f"The model file {path!r} must hold a TextTagger. Got a {type(tagger).__name__}.",
                backend_id=self.backend_id,
            )
        try:
            fitted_text(tagger).require_encoder("Set the project's parameter encoder.")
        except ValueError as error:
            raise OperationFailedException(str(error), backend_id=self.backend_id) from error
        before, now = tagger.classifier_.training_.get("annif"), source_of(self.project)
        if before not in (None, now):
            self.warning(f"the model was trained on {before}; the project now has {now}")
        return tagger

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> SuggestionBatch:
        assert self._tagger is not None
        texts = [words_of(self.project, document.text) for document in documents]
        return suggested(self._tagger, texts, self.limit(params), self.project.subjects)

    def limit(self, params: Mapping[str, Any]) -> int:
        """Maximum number of subjects to suggest."""
        return int(self._parsed("limit", params["limit"], (Number(1, integer=True),)))

    # -- training -----------------------------------------------------------------------------

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        settings, encoder = self.settings(params), self.encoder(params, jobs or -1)
        if corpus == "cached":
            self.info("reusing cached training data from previous run")
        else:
            self.info("reading the documents")
            folder = os.path.join(self.datadir, self.TRAIN_FOLDER)
            save_store(chunks_of(self.project, corpus), folder, overwrite=True)
        data = self.training_data()
        self.info(f"training on {len(data):,} documents")
        self._tagger = fitted(data, names_of(self.project), settings, jobs or -1, encoder)
        classifier = self._tagger.classifier_
        classifier.training_ = {**classifier.training_, "annif": source_of(self.project)}
        self._save()

    def training_data(self) -> Dataset:
        """The documents of the last training."""
        folder = os.path.join(self.datadir, self.TRAIN_FOLDER)
        try:
            data = open_store(folder)
        except FileNotFoundError:
            raise NotInitializedException(
                f"train data {folder} not found", backend_id=self.backend_id
            ) from None
        except ValueError as error:
            raise OperationFailedException(str(error), backend_id=self.backend_id) from error
        if data.source != source_of(self.project):
            raise NotSupportedException(
                f"The cached training data holds {data.source}, but the project now has "
                f"{source_of(self.project)}: train without --cached.",
                project_id=self.project.project_id,
            )
        return data

    def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
        documents = list(documents_of(self.project, corpus))
        if not documents:
            raise NotSupportedException(
                "Cannot learn: no document has a text and subjects of the vocabulary",
                project_id=self.project.project_id,
            )
        with locked(self._model_path, changes=True):
            # Reload: another process may have changed it.
            tagger = self._loaded()
            try:
                self._tagger = tagger.partial_fit(documents)
            except ValueError as error:
                raise OperationFailedException(str(error), backend_id=self.backend_id) from error
            self._save()

    def _save(self) -> None:
        assert self._tagger is not None
        self.info("saving the model")
        self._tagger.save(self._model_path)  # completely or not at all

    def settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of the classifier, parsed from the configuration file."""
        rules = {**CONSTRAINTS, "random_state": _SEED}
        return {name: self._parsed(name, params[name], rules[name]) for name in TREES}

    def encoder(self, params: Mapping[str, Any], n_jobs: int) -> OnnxEncoder | None:
        """The encoder of the project, if it has one; errors are raised now."""
        path = params.get("encoder")
        if not path:
            return None
        try:
            return OnnxEncoder(Path(path), n_jobs)
        except ValueError as error:
            raise ConfigurationException(
                f"the parameter encoder: {error}", project_id=self.project.project_id
            ) from error

    def _parsed(self, name: str, given: Any, rules: tuple[Rule, ...]) -> Any:
        for value in _readings(given):
            if any(rule.allows(value) for rule in rules):
                return value
        allowed = " or ".join(str(rule) for rule in rules)
        raise ConfigurationException(
            f"the parameter {name} must be {allowed}, got {given!r}",
            project_id=self.project.project_id,
        )

    def get_hp_optimizer(self, corpus: Any, metric: str) -> Any:
        from .hyperopt import LdSMOptimizer

        return LdSMOptimizer(self, corpus, metric)


def fitted(
    data: Dataset,
    names: Mapping[str, list[str]],
    settings: Mapping[str, Any],
    n_jobs: int,
    encoder: OnnxEncoder | None,
) -> TextTagger:
    """A tagger trained on the documents of a store."""
    classifier = LdSMClassifier(**settings, n_jobs=n_jobs)
    # Names need sub-words, which are left out for few documents.
    ranked = is_ranked(classifier.get_params(), len(data))
    return TextTagger(classifier, encoder=encoder).fit(data, vocabulary=names if ranked else None)


def suggested(tagger: TextTagger, texts: list[str], limit: int, subjects: Any) -> SuggestionBatch:
    """The best subjects of each text that are in the vocabulary; none for an empty text."""
    # The vocabulary of a project may leave out subjects that the model knows.
    active = {uri: subjects.by_uri(uri, warnings=False) for uri in tagger.classes_.tolist()}
    known = [uri for uri, number in active.items() if number is not None]
    if known:
        only = None if len(known) == len(active) else known
        answers = tagger.predict(texts, limit, only=only)
    else:
        answers = [[] for _ in texts]
    return SuggestionBatch.from_sequence(
        [
            [
                SubjectSuggestion(subject_id=active[uri], score=score)
                for uri, score in found
                if text.strip()
            ]
            for found, text in zip(answers, texts, strict=True)
        ],
        subjects,
    )


def _readings(given: Any) -> list[Any]:
    """The possible values of a text."""
    values = []
    for kind in (int, float):
        try:
            values.append(kind(given) if isinstance(given, str) else given)
        except ValueError:
            continue
    return [*values, given]
