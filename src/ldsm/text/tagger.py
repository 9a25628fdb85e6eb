"""TextTagger: a model that reads documents and predicts tags with scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import TfidfVectorizer

from .._arrays.row_weights import refuse_weights
from .._execution.executor import ProgressCallback
from .._execution.threads import state_of
from .._features.blocks import Blocks
from .._model.fitted import LabelScores, check_tail
from .._model.learn import check_options
from .._storage.container import save
from .._storage.fields import fingerprint
from .._storage.paths import PathLike
from .._trees.checkpoint import prepare_folder
from .._trees.params import AUTO, Number, check_params, given_limit, is_ranked
from .._wording import argument, warn
from ..classifier import LdSMClassifier, changed_meanwhile
from ..datasets.dataset import Dataset
from .corpus import TagCollector, read_pairs
from .encoders.encoder import Encoder, FittedEncoder
from .explanations import TextExplanation
from .features import TextFeatures
from .fitted import FittedText, RareTags, TagGroups, TagTitles, fitted_text, hold_text
from .learning import learned_text
from .saved_form import GROUPS, tagger_to_state, text_from_state
from .training import has_made_features, made_corpus, read_corpus
from .vectorizer import (
    CONSTRAINTS,
    LONGEST_NGRAM,
    MIN_DF,
    WORD_DEFAULTS,
    given_words,
    is_linear,
    unfitted_vectorizer,
    word_vectorizer,
)


class TextTagger(BaseEstimator):  # type: ignore[misc]
    """Learns to tag documents: TF-IDF features and LdSM trees in one object and one file.

    Parameters
    ----------
    classifier : LdSMClassifier, optional
        The classifier, with any parameters; cloned in fit. None: ``LdSMClassifier()``. Its
        parameters are available as ``classifier__n_estimators`` and so on.
    vectorizer : TfidfVectorizer, optional
        The vectorizer, with any parameters; cloned in fit. It replaces the parameters of words
        below. `ldsm.text.default_vectorizer` accepts parameters, too.
    encoder : function, object or path, optional
        Turns texts into dense vectors, which are used beside their words: a function from a list of
        str to a matrix, an object with a method ``encode`` that is one (as in sentence-transformers
        and model2vec), or a folder or ``.onnx`` file (needs ``pip install "ldsm[encoder]"``). It
        is called for each document once, and for each tag or its name in the vocabulary. It is not
        saved with the model: see `ldsm.load`.
    min_tag_count : int, default=1
        Tags with fewer documents are not learned; they are listed in `rare_tags_`.
    min_df : int, default=2
        Minimum number of documents that a word must occur in.
    max_words : int, optional
        Maximum number of words; the most frequent ones are kept.
    ngrams : int or "auto", default="auto"
        Features are all sequences of up to this many words; 1: single words only. "auto": single
        words and, with a linear second stage, the most frequent bigrams (two per word, in 3 or more
        documents and at most 5 % of them) and sub-words (parts of words). Trees and the feature
        index read words, linear classifiers words and bigrams; sub-words find tags by parts of
        words and by their names. The first 30 words of longer documents then count three times.
    stop_words : {"english"}, optional
        Leave out stop words: `english`.

    Attributes
    ----------
    classifier_ : LdSMClassifier
        The fitted trees.
    vectorizer_ : TfidfVectorizer
        The fitted vectorizer of the words.
    features_ : TextFeatures
        How texts become features; ``features_.names`` are the words and bigrams, in column order.
    classes_ : ndarray of str
        The tags, sorted.
    groups_ : dict of str to list of str
        Groups of tags, from the vocabulary: SKOS schemes, collections and types, or the column
        ``group`` of a table.
    rare_tags_ : dict of str to int
        Tags left out because they have too few documents, with their counts.
    fingerprint_ : str
        Hash of everything that determines a prediction; equal models have equal fingerprints.

    Examples
    --------
    >>> from ldsm import LdSMClassifier, TextTagger
    >>> texts = ["cod and herring quota", "import of beef", "herring import"] * 5
    >>> tags = [["fish", "law"], ["meat", "trade"], ["fish", "trade"]] * 5
    >>> tagger = TextTagger(LdSMClassifier(n_estimators=5, random_state=0)).fit(texts, tags)
    >>> tagger.predict(["a quota for cod"], k=2)
    [[('fish', 1.0), ('law', 1.0)]]

    A corpus larger than memory is read from its file, document by document::

        tagger.fit(datasets.iter_jsonl("corpus.jsonl.gz"))
    """

    fitted_: FittedText

    def __init__(
        self,
        classifier: LdSMClassifier | None = None,
        vectorizer: TfidfVectorizer | None = None,
        *,
        encoder: Any = None,
        min_tag_count: int = 1,
        min_df: int = MIN_DF,
        max_words: int | None = None,
        ngrams: int | str = AUTO,
        stop_words: str | None = None,
    ) -> None:
        self.classifier = classifier
        self.vectorizer = vectorizer
        self.encoder = encoder
        self.min_tag_count = min_tag_count
        self.min_df = min_df
        self.max_words = max_words
        self.ngrams = ngrams
        self.stop_words = stop_words

    # -- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        texts: Any,
        tags: Any = None,
        *,
        vocabulary: Any = None,
        callback: ProgressCallback | None = None,
        checkpoint_dir: PathLike | None = None,
        **others: Any,
    ) -> TextTagger:
        """Learn words and trees in one pass over the documents.

        Documents are not stored. Their features take 8 bytes per distinct word, bigram and sub-word
        of a document, and 12 per word of the texts while they are made. With the classifier's
        `memory_limit`, all of this lies in files of the temporary folder (``TMPDIR``); then memory
        grows with the distinct words (about 150 bytes each) and with the tags alone.

        Parameters
        ----------
        texts : iterable of str, iterable of (str, list of str), or Dataset
            Documents; or, without `tags`, tuples of a document and its tags, as from
            ``datasets.iter_jsonl(path)``, or a Dataset of texts, or of features made from texts
            (`Dataset.text_form`). An iterable is read once.
        tags : iterable of lists of str, optional
            The tags of each document; a list may be empty.
        vocabulary : path, iterable of str, or mapping of str to str or list of str, optional
            Names of tags, and tags without documents: a file for `ldsm.datasets.read_vocabulary`
            (two columns, or SKOS), a list of tags, or tags with their names. Names are compared
            with the words of a document, so tags without documents can be predicted, too. Tags with
            fewer documents than `min_tag_count` are still left out.
        callback : callable, optional
            See `LdSMClassifier.fit`. While an encoder works, it is called with (texts encoded, 0).
        checkpoint_dir : path, optional
            See `LdSMClassifier.fit`; the documents are read again each time.
        **others : Any
            Not supported. A `sample_weight` raises an error that says what to use instead.

        Returns
        -------
        TextTagger
            Itself.
        """
        refuse_weights("TextTagger.fit", others)
        _check_parts(self)
        classifier = LdSMClassifier() if self.classifier is None else clone(self.classifier)
        if self.vectorizer is None:
            vectorizer = word_vectorizer(self.get_params(deep=False))
        else:
            vectorizer = clone(self.vectorizer)
        if checkpoint_dir is not None:
            prepare_folder(checkpoint_dir)  # raises errors before the corpus is read
        encoder = None
        if self.encoder is not None:
            encoder = Encoder.of(self.encoder, classifier.n_jobs).fitted()
        if has_made_features(texts) and tags is None:
            _check_made_features(self, texts, vocabulary)
            encoder = _made_encoder(texts, encoder)
            corpus = made_corpus(texts, self.min_tag_count)
        else:
            if isinstance(texts, Dataset) and vocabulary is None:
                vocabulary = texts.label_synonyms
            if vocabulary is not None and not _has_default_parts(self):
                raise ValueError(
                    f"With a vocabulary, vectorizer must be None and {argument('ngrams', AUTO)}: "
                    "names need sub-words."
                )
            params = classifier.get_params(deep=False)
            check_params(params, "LdSMClassifier")
            corpus = read_corpus(
                TagCollector(read_pairs(texts, tags)),
                vectorizer,
                vocabulary,
                min_tag_count=self.min_tag_count,
                n_jobs=classifier.n_jobs,
                memory_limit=given_limit(params),
                checkpoint_dir=checkpoint_dir,
                # Trees alone do not use bigrams and sub-words.
                with_parts=lambda n: _has_default_parts(self) and is_ranked(params, n),
                encoder=encoder,
                callback=callback,
            )
        classifier.fit(corpus.rows, callback=callback, checkpoint_dir=checkpoint_dir)
        _warn_of_unseen_tags(classifier)
        if encoder is not None and not classifier.model_.reads_dense:
            warn(
                "The encoder is not used: it needs a linear second stage, so at least 500 "
                "documents, and a gain on held-out documents. Without one, training is faster."
            )
        titles = TagTitles.of(corpus.rows.label_synonyms)
        rare = RareTags.of(corpus.rare)
        groups = TagGroups.of(corpus.groups)
        return hold_text(
            self, FittedText(classifier, corpus.features, rare, titles, groups, encoder)
        )

    def partial_fit(
        self,
        texts: Any,
        tags: Any = None,
        *,
        absent: str = "auto",
        prior: str = "auto",
        **others: Any,
    ) -> TextTagger:
        """Update the model with new documents; the first call is a `fit`.

        This takes a fraction of the time of a new fit. New tags are added to the model. New words
        that occur in enough of these documents (the vectorizer's `min_df`, by default two) become
        features of the linear classifiers and the index, up to twice the number of words in the
        trees. See `LdSMClassifier.partial_fit`, and ``docs/incremental_learning.md`` for when to
        retrain.

        Parameters
        ----------
        texts : iterable of str, iterable of (str, list of str), or Dataset
            As in `fit`. Features made from texts must have the words of the model, and add no new
            words. The documents of one call are held in memory.
        tags : iterable of lists of str, optional
            The tags of each document.
        absent, prior : str, default="auto"
            How to treat tags that a document does not have, and whether to refit scores to a skewed
            batch; see `LdSMClassifier.partial_fit`.
        **others : Any
            Not supported, as in `fit`.

        Returns
        -------
        TextTagger
            Itself.

        Examples
        --------
        >>> from ldsm import TextTagger
        >>> texts, tags = ["cod quota", "beef import"] * 5, [["fish"], ["meat"]] * 5
        >>> tagger = TextTagger().fit(texts, tags)
        >>> tagger.partial_fit(["leek import"] * 9, [["vegetables"]] * 9).classes_.tolist()
        ['fish', 'meat', 'vegetables']
        """
        refuse_weights("TextTagger.partial_fit", others)
        check_options(absent, prior, type(self).__name__)
        if "fitted_" not in vars(self):
            return self.fit(texts, tags)
        _check_parts(self)
        fitted = fitted_text(self)
        given_words = self.vectorizer is not None and self.vectorizer.vocabulary is not None
        made = has_made_features(texts) and tags is None
        new = learned_text(
            fitted,
            texts if made else read_pairs(texts, tags),
            self.min_tag_count,
            new_words=not given_words,
            absent=absent,
            prior=prior,
        )
        return self._changed(fitted, new)

    def _changed(self, old: FittedText, new: FittedText) -> TextTagger:
        """Replace `old` with `new`, which was made from it."""
        if self.fitted_ is not old:
            raise changed_meanwhile()
        return hold_text(self, new)

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self)

    @property
    def classifier_(self) -> LdSMClassifier:
        """The fitted trees."""
        return fitted_text(self).classifier

    @property
    def features_(self) -> TextFeatures:
        """How texts become features; `names` has their names."""
        return fitted_text(self).features

    @property
    def vectorizer_(self) -> TfidfVectorizer:
        """The fitted vectorizer."""
        return fitted_text(self).features.vectorizer

    @property
    def rare_tags_(self) -> dict[str, int]:
        """Tags left out because they have too few documents, with their counts."""
        return fitted_text(self).rare.as_dict()

    @property
    def groups_(self) -> dict[str, list[str]]:
        """Groups of tags, from the vocabulary."""
        return fitted_text(self).groups.as_dict()

    @property
    def classes_(self) -> NDArray[Any]:
        """The tags in column order."""
        return fitted_text(self).classifier.classes_

    @property
    def fingerprint_(self) -> str:
        """Hash of everything that determines a prediction."""
        classifier, features, *_, encoder = fitted_text(self)
        probes = [] if encoder is None else [encoder.probes]
        return fingerprint(classifier.fingerprint_, *features.hashed(), *probes)

    # -- predicting ---------------------------------------------------------------------------

    def predict(
        self,
        texts: Any,
        k: int = 5,
        *,
        only: Any = None,
        without: Any = None,
        tail: float = 0.0,
    ) -> list[LabelScores]:
        """The best tags of each document.

        Parameters
        ----------
        texts : iterable of str, or Dataset
            Documents.
        k : int, default=5
            Maximum number of tags per document; tags without a score are left out.
        only, without : sequences of str, optional
            Predict only these tags, or all but these; names of groups stand for their tags, see
            `groups_`. Tags are chosen before the shortlist is made, so none is lost to others.
            Scores do not change.
        tail : float >= 0, default=0
            Favour rare tags in the order, see `LdSMClassifier.predict_topk`.

        Returns
        -------
        list of lists of (tag, score)
            One list per document, best first.
        """
        return list(self.iter_predict(texts, k, only=only, without=without, tail=tail))

    def iter_predict(
        self,
        texts: Any,
        k: int = 5,
        *,
        only: Any = None,
        without: Any = None,
        tail: float = 0.0,
    ) -> Iterator[LabelScores]:
        """Like `predict`, but one document at a time, for streams of any length.

        Parameters
        ----------
        texts : iterable of str, or Dataset
            Documents.
        k : int, default=5
            Maximum number of tags per document.
        only, without : sequences of str, optional
            Predict only these tags or groups, or all but these; see `predict`.
        tail : float >= 0, default=0
            Favour rare tags in the order, see `LdSMClassifier.predict_topk`.

        Yields
        ------
        list of (tag, score)
            For each document, best first.
        """
        fitted = fitted_text(self)
        model, n_jobs = fitted.classifier.model_, fitted.classifier.n_jobs
        allowed = fitted.allowed(only, without)
        check_tail(tail)
        Number(1, integer=True).check("k", k)
        most = min(k, model.n_labels if allowed is None else int(allowed.sum()))

        def answers(chunks: Iterable[Blocks]) -> Iterator[LabelScores]:
            for x in chunks:
                yield from model.best_labels(x, most, allowed=allowed, tail=tail, n_jobs=n_jobs)

        return answers(fitted.chunks(texts))  # arguments were checked before the first answer

    def predict_sets(
        self, texts: Any, *, only: Any = None, without: Any = None
    ) -> list[LabelScores]:
        """The tags of each document whose score reaches the threshold, best first.

        The threshold is the classifier's ``threshold_``, which `fit` chooses by default.

        Parameters
        ----------
        texts : iterable of str, or Dataset
            Documents.
        only, without : sequences of str, optional
            Predict only these tags or groups, or all but these; see `predict`.

        Returns
        -------
        list of lists of (tag, score)
            One list per document, possibly empty.
        """
        fitted = fitted_text(self)
        model, n_jobs = fitted.classifier.model_, fitted.classifier.n_jobs
        allowed = fitted.allowed(only, without)
        chunks = fitted.chunks(texts)
        return [
            scored for x in chunks for scored in model.label_sets(x, allowed=allowed, n_jobs=n_jobs)
        ]

    def predict_topk(
        self,
        texts: Any,
        k: int = 5,
        *,
        only: Any = None,
        without: Any = None,
        tail: float = 0.0,
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The k best tags of each document and their scores, as two arrays.

        Documents with fewer than k scored tags are padded with the most frequent tags, at score 0.

        Parameters
        ----------
        texts : iterable of str, or Dataset
            Documents.
        k : int, default=5
            Number of tags per document.
        only, without : sequences of str, optional
            Predict only these tags or groups, or all but these; see `predict`.
        tail : float >= 0, default=0
            Favour rare tags in the order, see `LdSMClassifier.predict_topk`.

        Returns
        -------
        tags : ndarray of shape (n_documents, k)
            Best first.
        scores : float32 ndarray of shape (n_documents, k)
            In [0, 1].
        """
        fitted = fitted_text(self)
        chosen = fitted.chosen(only, without)
        return fitted.classifier.predict_topk(fitted.rows(texts), k, **chosen, tail=tail)

    def predict_proba(self, texts: Any, *, only: Any = None, without: Any = None) -> sp.csr_array:
        """Scores of all tags: a sparse matrix in the columns of `classes_`.

        Columns of tags that are not chosen are empty.

        Parameters
        ----------
        texts : iterable of str, or Dataset
            Documents.
        only, without : sequences of str, optional
            Predict only these tags or groups, or all but these; see `predict`.
        """
        fitted = fitted_text(self)
        chosen = fitted.chosen(only, without)
        return fitted.classifier.predict_proba(fitted.rows(texts), **chosen)

    def vectorize(self, texts: Any) -> sp.csr_array:
        """The features of documents: the X of `classifier_`.

        Parameters
        ----------
        texts : iterable of str, or Dataset
            Documents.
        """
        return fitted_text(self).rows(texts).joined().matrix()

    def tune_threshold(
        self, texts: Any, tags: Any = None, *, average: str = "micro", per_label: bool = False
    ) -> TextTagger:
        """Set the threshold of `predict_sets` to maximise F1 on held-out documents.

        See `LdSMClassifier.tune_threshold` for the number of documents needed.

        Parameters
        ----------
        texts : iterable of str, iterable of (str, list of str), or Dataset
            Documents not used in training, in any form that `fit` accepts.
        tags : iterable of lists of str, optional
            Their tags.
        average : {"micro", "macro", "samples"}, default="micro"
            The F1 to maximise.
        per_label : bool, default=False
            Give every tag its own threshold.

        Returns
        -------
        TextTagger
            Itself.
        """
        fitted = fitted_text(self)
        x, true = fitted.with_tags(texts, tags)
        classifier = copy(fitted.classifier)
        classifier.tune_threshold(x, true, average=average, per_label=per_label)
        return self._changed(fitted, fitted._replace(classifier=classifier))

    def score(self, texts: Any, tags: Any = None) -> float:
        """Precision at 1: the share of documents whose best predicted tag is true.

        Parameters
        ----------
        texts : iterable of str, iterable of (str, list of str), or Dataset
            Documents not used in training, in any form that `fit` accepts.
        tags : iterable of lists of str, optional
            Their tags.
        """
        fitted = fitted_text(self)
        return fitted.classifier.score(*fitted.with_tags(texts, tags))

    # -- explaining ---------------------------------------------------------------------------

    def explain(self, text: str, *, max_words: int = 5, max_tags: int = 5) -> TextExplanation:
        """Explain the tags of a document: contributions of the stages, deciding words, leaves.

        Parameters
        ----------
        text : str
            The document.
        max_words, max_tags : int, default=5
            Maximum number of words and tags to show in each place.

        Returns
        -------
        TextExplanation
            Readable with ``print``.

        Examples
        --------
        >>> from ldsm import LdSMClassifier, TextTagger
        >>> texts, tags = ["cod quota", "beef import"] * 5, [["fish"], ["meat"]] * 5
        >>> clf = LdSMClassifier(n_estimators=1, random_state=0)
        >>> tagger = TextTagger(clf).fit(texts, tags)
        >>> print(tagger.explain("beef for sale", max_words=1))
        tags: meat 1.00
        words: beef +3.62
        tree 0
          node 0 -> 1: beef +3.62
            leaf 2 (5 texts): meat 1.00
        """
        if not isinstance(text, str):
            raise ValueError(f"explain takes one document, a str. Got {text!r}.")
        explainer = fitted_text(self).explainer(text)
        return explainer.explanation(max_tags, max_words=max_words, max_tags=max_tags)

    # -- changing tags ------------------------------------------------------------------------

    def drop_labels(self, tags: Iterable[str]) -> TextTagger:
        """Remove tags; see `LdSMClassifier.drop_labels`.

        Parameters
        ----------
        tags : iterable of str
            At least one tag of the model must remain.
        """
        fitted, tags = fitted_text(self), tags if isinstance(tags, str) else list(tags)
        classifier = copy(fitted.classifier).drop_labels(tags)
        return self._relabelled(fitted, classifier, dict.fromkeys(tags))

    def rename_labels(self, names: Mapping[str, str]) -> TextTagger:
        """Rename tags, ``{old: new}``; see `LdSMClassifier.rename_labels`.

        Texts are still compared with the old name, and a tag of a vocabulary keeps its title.

        Parameters
        ----------
        names : mapping of str to str
            New names by old names; other tags are unchanged.
        """
        fitted = fitted_text(self)
        classifier = copy(fitted.classifier).rename_labels(names)
        return self._relabelled(fitted, classifier, names)

    def _relabelled(
        self, fitted: FittedText, classifier: LdSMClassifier, names: Mapping[str, str | None]
    ) -> TextTagger:
        titles, groups = fitted.titles.relabelled(names), fitted.groups.relabelled(names)
        return self._changed(
            fitted, fitted._replace(classifier=classifier, titles=titles, groups=groups)
        )

    # -- saving -------------------------------------------------------------------------------

    def save(self, path: PathLike) -> None:
        """Write words and trees to one file, which `ldsm.load` reads; see `LdSMClassifier.save`.

        The file holds the words and the tags of the training documents, rare tags included, but
        none of the documents. If the model has centroids, the centroid of a tag with one document
        reveals the words of that document: `min_tag_count` or the classifier's `tail_min_rows`
        prevents this.

        Parameters
        ----------
        path : path
            Usually with the suffix ``.ldsm``.

        Raises
        ------
        ValueError
            If the vectorizer uses a custom function, such as a tokenizer.

        Warns
        -----
        UserWarning
            If the vectorizer's `token_pattern` might take very long on some text: see `ldsm.load`.

        Examples
        --------
        >>> import ldsm
        >>> texts, tags = ["cod quota", "beef import"] * 5, [["fish"], ["meat"]] * 5
        >>> ldsm.TextTagger().fit(texts, tags).save("tags.ldsm")
        >>> ldsm.load("tags.ldsm").predict(["a quota for cod"])
        [[('fish', 1.0)]]
        """
        header, arrays = tagger_to_state(self, fitted_text(self))
        pattern = header["text"]["vectorizer"]["token_pattern"]
        if pattern is not None and not is_linear(pattern):
            warn(
                f"The token pattern {pattern!r} might be very slow on some texts, so the file can "
                "only be loaded with trust_pattern=True.",
            )
        save(path, {"kind": "TextTagger", **header}, arrays)


def tagger_from_state(
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    verify: bool = True,
    trust_pattern: bool = False,
) -> TextTagger:
    """The tagger of a model file; see `text_from_state`."""
    text, classifier, features = text_from_state(
        header, arrays, verify=verify, trust_pattern=trust_pattern
    )
    vectorizer = None
    if not text["default_vectorizer"]:
        vocabulary = features.words if text["given_words"] else None
        vectorizer = unfitted_vectorizer(features.settings, vocabulary)
    own = None if text["default_classifier"] else clone(classifier)
    tagger = TextTagger(own, vectorizer, **{name: text[name] for name in CONSTRAINTS})
    _check_parts(tagger)
    rare = RareTags(text["rare_tags"], text["rare_tag_counts"])
    titles = TagTitles(text["titled_tags"], text["tag_titles"])
    groups = TagGroups(*(text[name] for name in GROUPS))
    encoder = None
    if text["encoder"] is not None:
        encoder = FittedEncoder(text["encoder"], text["encoder.probes"])
    return hold_text(tagger, FittedText(classifier, features, rare, titles, groups, encoder))


def give_encoder(tagger: TextTagger, encoder: Any) -> TextTagger:
    """Let a loaded tagger use its encoder; a ValueError for another one than in training."""
    fitted = fitted_text(tagger)
    if fitted.encoder is None:
        raise ValueError(f"The model was trained without an encoder. Got {encoder!r:.80}.")
    given = fitted.encoder.given(encoder, fitted.classifier.n_jobs)
    tagger.encoder = encoder
    return hold_text(tagger, fitted._replace(encoder=given))


def _has_default_parts(tagger: TextTagger) -> bool:
    """Whether texts have bigrams and sub-words, if the model has a ranker."""
    return tagger.vectorizer is None and tagger.ngrams == AUTO


def _check_made_features(tagger: TextTagger, data: Dataset, vocabulary: Any) -> None:
    if vocabulary is not None:
        raise ValueError(
            "A vocabulary needs texts, because it determines which sub-words are features. "
            f"Got {data!r}, which already has features."
        )
    if tagger.vectorizer is not None:
        raise ValueError("The texts are already vectorized: vectorizer must be None.")
    if tagger.encoder is not None and data.embeddings is None:
        raise ValueError(
            "The texts are already vectorized, without an encoder: encoder must be "
            "None, or vectorize them with it: `ldsm convert --vectorize --encoder PATH`."
        )
    for name in given_words(tagger.get_params(deep=False)):
        raise ValueError(
            f"The texts are already vectorized: {name} must have its default. "
            f"Got {getattr(tagger, name)!r}."
        )


def _made_encoder(data: Dataset, given: FittedEncoder | None) -> FittedEncoder | None:
    """The encoder of embeddings that were made earlier; an error if another one is given."""
    form = None if data.text_form is None else data.text_form.encoder
    if form is None:
        if data.embeddings is not None:
            raise ValueError(f"The embeddings of {data!r} must come with their encoder's form.")
        return None
    if given is None:
        return FittedEncoder.of(form)
    given.check_same(FittedEncoder.of(form))
    return given


def _warn_of_unseen_tags(classifier: LdSMClassifier) -> None:
    """Warn if the names of a vocabulary cannot be used to predict tags without documents."""
    stage, n_unseen = classifier.second_stage_, int(np.sum(classifier.label_counts_ == 0))
    if n_unseen and (stage is None or not stage.blend.unseen):
        warn(
            f"{n_unseen:,} tags without documents cannot be predicted: too few names of other "
            "tags occur in documents to learn from.",
        )


def _check_parts(tagger: TextTagger) -> None:
    """Raise an error unless the parameters are valid."""
    kinds = {"classifier": LdSMClassifier, "vectorizer": TfidfVectorizer}
    for name, kind in kinds.items():
        value = getattr(tagger, name)
        if value is not None and not isinstance(value, kind):
            raise _wrong(name, f"a {kind.__name__} or None", value)
    if tagger.vectorizer is not None and tagger.vectorizer.input != "content":
        # "filename" would open files named by documents.
        raise _wrong("vectorizer", "one with input='content'", tagger.vectorizer)
    if tagger.vectorizer is not None and max(tagger.vectorizer.ngram_range) > LONGEST_NGRAM:
        allowed = f"one with an ngram_range of at most {LONGEST_NGRAM}"
        raise _wrong("vectorizer", allowed, tagger.vectorizer)
    params = tagger.get_params(deep=False)
    check_params(params, "TextTagger", CONSTRAINTS)
    if tagger.vectorizer is not None and (given := given_words(params)):
        raise _wrong(given[0], f"{WORD_DEFAULTS[given[0]]!r} beside a vectorizer", params[given[0]])


def _wrong(name: str, allowed: str, value: Any) -> ValueError:
    return ValueError(
        f"The {name!r} parameter of TextTagger must be {allowed}. Got {value!r} instead."
    )
