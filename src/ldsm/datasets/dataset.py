"""The Dataset: rows of features or texts, with their labels and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.dense_rows import LabelVectors, dense_rows, label_vectors
from .._arrays.features import feature_matrix
from .._arrays.matrices import label_csr, label_matrix, take_rows
from .._storage.strings import Strings
from .._wording import warn
from .alignment import Unseen, align_columns, new_columns
from .documents.document import Document, fit_words

if TYPE_CHECKING:
    from .._storage.paths import PathLike


class StoreLocation(NamedTuple):
    """The path and identity of a store; small, so that it is quick to send to a process."""

    folder: str  # absolute
    identity: str  # hash of its manifest


class BigramForm(NamedTuple):
    """Bigrams (two adjacent words): features after those of the words."""

    first: NDArray[np.int32]  # numbers of words
    second: NDArray[np.int32]
    idf: NDArray[np.float32]


class SubWordForm(NamedTuple):
    """Parts of words: features after those of the bigrams."""

    words: Strings  # runs of characters, blanks at the ends of a word included
    idf: NDArray[np.float32]
    indexed: bool  # whether texts have all of them, or only those of the labels' names


class EncoderForm(NamedTuple):
    """What is known of an encoder without it: a name, and its vectors of fixed texts."""

    name: str
    probes: NDArray[np.int16]


class TextForm(NamedTuple):
    """How features were made from texts, without the words."""

    settings: Mapping[str, Any]
    idf: NDArray[np.float32] | None
    bigrams: BigramForm | None = None
    sub_words: SubWordForm | None = None
    head_words: int = 0  # number of first words of longer texts that count several times
    encoder: EncoderForm | None = None  # of the embeddings

    @property
    def n_bigrams(self) -> int:
        return 0 if self.bigrams is None else len(self.bigrams.first)

    @property
    def n_sub_words(self) -> int:
        return 0 if self.sub_words is None else len(self.sub_words.idf)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows with their labels: features in `X`, or documents in `texts` until they are vectorized.

    Parameters
    ----------
    X : sparse or dense matrix, or None
        Features, kept as ``csr_array`` of float32 with int32 indices. None for documents.
    Y : sparse or dense matrix
        1 where a row has a label, kept as ``csr_array`` of int32.
    texts : sequence of str, optional
        Documents, instead of `X`.
    feature_names, label_names : sequence of str, optional
        Names of the columns of `X` and `Y`.
    source : str, default=""
        Where the data came from.
    text_form : TextForm, optional
        How `X` was made from texts, if it was; `feature_names` are the words. A TextTagger can be
        fitted on such features. Set by ``ldsm convert --vectorize``.
    label_synonyms : mapping of str to sequence of str, optional
        Names of labels, if they differ from the labels.
    reading : mapping of str to JSON values, optional
        The options with which ``ldsm convert`` read the file, such as its text field. A model
        trained on the store by ``ldsm train`` reads other files with the same options.
    embeddings : matrix of shape (n_rows, n_dimensions), optional
        A dense vector for each row, beside `X`; see `LdSMClassifier.fit`. Rounded to whole numbers
        and scaled to one length.
    label_embeddings : mapping of label names to vectors, optional
        Vectors of the labels' names, by the same encoder; of their numbers if they have no names.

    Attributes
    ----------
    store : StoreLocation or None
        The store that holds exactly these rows: set by ``open_store``, None on any derived Dataset.

    Examples
    --------
    >>> from ldsm.datasets import Dataset
    >>> data = Dataset([[1, 0], [0, 2], [3, 4]], [[1, 0], [0, 0], [1, 1]], label_names=["a", "b"])
    >>> data
    <Dataset: 3 rows, 2 features, 2 labels>
    >>> data.labels
    [['a'], [], ['a', 'b']]
    >>> data.select([2, 0]).X.toarray()
    array([[3., 4.],
           [1., 0.]], dtype=float32)
    """

    X: Any
    Y: Any
    texts: Sequence[str] | None = None
    feature_names: Sequence[str] | None = None
    label_names: Sequence[str] | None = None
    source: str = ""
    text_form: TextForm | None = None
    label_synonyms: Mapping[str, Sequence[str]] | None = None
    reading: Mapping[str, Any] | None = None
    embeddings: Any = None
    label_embeddings: Any = None
    # Not an argument of `replace`, so that changed rows never refer to the store of the old ones.
    store: StoreLocation | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if (self.X is None) == (self.texts is None):
            raise ValueError("A Dataset must have either X or texts. Got both or neither.")
        object.__setattr__(self, "Y", label_matrix(self.Y))
        if self.X is not None:
            object.__setattr__(self, "X", feature_matrix(self.X))
        rows = len(self.texts) if self.texts is not None else self.X.shape[0]
        if rows != self.Y.shape[0]:
            raise ValueError(
                f"Features or texts and labels must have the same number of rows. Got {rows} and "
                f"{self.Y.shape[0]}."
            )
        for name, columns in (("feature_names", self.n_features), ("label_names", self.n_labels)):
            names = getattr(self, name)
            if names is None:
                continue
            if len(names) != columns:
                raise ValueError(f"{name} must have {columns} entries. Got {len(names)}.")
            if not isinstance(names, Strings):
                object.__setattr__(self, name, [str(item) for item in names])
        self._check_embeddings()

    def _check_embeddings(self) -> None:
        """Keep embeddings in the form that a fit reads; a ValueError for those of another kind."""
        if self.embeddings is not None:
            if self.X is None:
                raise ValueError("embeddings need X beside them. Got texts.")
            object.__setattr__(self, "embeddings", dense_rows(self.embeddings, len(self)))
        if self.label_embeddings is not None and self.embeddings is None:
            raise ValueError("label_embeddings need embeddings of the rows. Got None.")
        if not isinstance(self.label_embeddings, LabelVectors | None):
            names = range(self.n_labels) if self.label_names is None else list(self.label_names)
            vectors = label_vectors(
                self.label_embeddings, np.array(names, dtype=object), width=self.embeddings.width
            )
            object.__setattr__(self, "label_embeddings", vectors)

    @classmethod
    def from_texts(
        cls, texts: Sequence[str], labels: Iterable[Iterable[str]], source: str = ""
    ) -> Dataset:
        """A Dataset of documents with label names; a name given twice for a row counts once.

        Parameters
        ----------
        texts : sequence of str
            Documents.
        labels : iterable of iterables of str
            The label names of each document.
        source : str, default=""
            Where the data came from.

        Examples
        --------
        >>> data = Dataset.from_texts(["to be", "or not"], [["b", "a"], ["b", "b"]])
        >>> data.label_names, data.labels
        (['a', 'b'], [['a', 'b'], ['b']])
        """
        rows = [list(row) for row in labels]
        names = sorted({name for row in rows for name in row})
        Y = named_labels(rows, {name: i for i, name in enumerate(names)})
        return cls(None, Y, texts=texts, label_names=names, source=source)

    @classmethod
    def from_documents(cls, documents: Iterable[Document], source: str = "") -> Dataset:
        """A Dataset of the documents of a file.

        Parameters
        ----------
        documents : iterable of Document
            As returned by the readers, each with `text` and `labels`.
        source : str, default=""
            Where the data came from.
        """
        everything = list(documents)
        texts = [document.text for document in everything]
        return cls.from_texts(texts, [document.labels for document in everything], source)

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    def __repr__(self) -> str:
        what = "texts" if self.X is None else f"{self.n_features} features"
        origin = f", from {self.source}" if self.source else ""
        return f"<Dataset: {len(self)} rows, {what}, {self.n_labels} labels{origin}>"

    @property
    def n_features(self) -> int:
        """Number of columns of `X`; 0 for documents."""
        return 0 if self.X is None else int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of columns of `Y`."""
        return int(self.Y.shape[1])

    @property
    def labels(self) -> list[list[Any]]:
        """The labels of each row: names, or numbers if there are no names."""
        names = range(self.n_labels) if self.label_names is None else list(self.label_names)
        numbers = self.Y.indices
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < self.n_labels:
            # Possible only in a store opened without verification.
            raise ValueError(
                f"Label numbers must lie in [0, {self.n_labels}): the data is damaged."
            )
        labels = [names[i] for i in numbers.tolist()]
        bounds = self.Y.indptr.tolist()
        return [labels[a:b] for a, b in pairwise(bounds)]

    def select(self, rows: Any) -> Dataset:
        """The given rows in the given order, in memory.

        Parameters
        ----------
        rows : array of int or bool, or slice
            Numbers of rows, or a mask.
        """
        chosen = np.arange(len(self))[rows if isinstance(rows, slice) else _row_index(rows)]
        return replace(
            self,
            X=None if self.X is None else take_rows(self.X, chosen),
            Y=take_rows(self.Y, chosen),
            texts=None if self.texts is None else [self.texts[i] for i in chosen.tolist()],
            embeddings=None if self.embeddings is None else self.embeddings.take(chosen),
        )

    def split(self, validation: float = 0.1, seed: int = 0) -> tuple[Dataset, Dataset]:
        """Split off rows for validation; every label keeps a row in training.

        Parameters
        ----------
        validation : float or int, default=0.1
            Share of the rows in (0, 1), or their number.
        seed : int, default=0
            The same seed gives the same split.

        Returns
        -------
        train, validation : Dataset
            Rows in their original order, in memory. A label that occurs once stays in `train`. A
            warning is issued if this leaves fewer validation rows than requested.

        Examples
        --------
        >>> data = Dataset.from_texts(list("abcdefghij"), [["a"], ["b"]] * 5)
        >>> train, validation = data.split(0.2)
        >>> len(train), len(validation)
        (8, 2)
        """
        n = len(self)
        wanted = round(validation * n) if isinstance(validation, float) else int(validation)
        if not 1 <= wanted < n:
            raise ValueError(
                "validation must be a share in (0, 1) or a number of rows that leaves rows on "
                f"both sides of the split of {n} rows. Got {validation}."
            )
        indptr, indices = self.Y.indptr, self.Y.indices
        left = np.bincount(indices, minlength=self.n_labels)
        held_out = np.zeros(n, dtype=bool)
        n_held_out = 0
        for row in np.random.default_rng(seed).permutation(n).tolist():
            labels = indices[indptr[row] : indptr[row + 1]]
            if (left[labels] > 1).all():
                left[labels] -= 1
                held_out[row] = True
                n_held_out += 1
                if n_held_out == wanted:
                    break
        if n_held_out < wanted:
            warn(
                f"{n_held_out} rows for validation instead of {wanted}: each remaining row is the "
                "last training row of a label.",
            )
        return self.select(~held_out), self.select(held_out)

    def align(self, train: Dataset) -> tuple[Dataset, Unseen]:
        """Align these rows with the columns of a training set.

        Columns are matched by name if both sets have names, else by number. Labels and features
        without a column in `train` are left out and reported.

        Parameters
        ----------
        train : Dataset
            The training set.

        Returns
        -------
        aligned : Dataset
            These rows with the columns of `train`.
        unseen : Unseen
            Labels and features that were left out.

        Examples
        --------
        >>> train = Dataset.from_texts(["x", "y"], [["cat"], ["dog"]])
        >>> test = Dataset.from_texts(["z"], [["dog", "emu"]])
        >>> test, unseen = test.align(train)
        >>> test.labels, unseen.labels
        ([['dog']], {'emu': 1})
        >>> print(unseen)
        1 label without a training row (1 occurrence)
        """
        if (self.X is None) != (train.X is None):
            raise ValueError("Texts cannot be aligned with features: vectorize them first.")
        Y, unseen_labels, dropped = align_columns(
            self.Y, self.label_names, train.Y.shape[1], train.label_names, "label_names"
        )
        # A label without a training row counts as unseen even if it has a column.
        idle = np.bincount(train.Y.indices, minlength=train.n_labels) == 0
        names = range(train.n_labels) if train.label_names is None else train.label_names
        here = np.bincount(Y.indices, minlength=train.n_labels)
        for i in np.flatnonzero(idle & (here > 0)).tolist():
            unseen_labels[names[i]] = int(here[i])
        X, unseen_features = None, dict[Any, int]()
        if self.X is not None:
            X, unseen_features, _ = align_columns(
                self.X, self.feature_names, train.n_features, train.feature_names, "feature_names"
            )
        vectors = self.label_embeddings
        if vectors is not None:
            column = new_columns(
                self.n_labels, self.label_names, train.n_labels, train.label_names, "label_names"
            )
            vectors = vectors.in_columns(column)
        aligned = replace(
            self,
            X=X,
            Y=Y,
            feature_names=train.feature_names,
            label_names=train.label_names,
            label_embeddings=vectors,
        )
        return aligned, Unseen(unseen_labels, unseen_features, dropped)

    def vectorize(self, vectorizer: Any, *, fit: bool = True) -> Dataset:
        """Turn texts into features with a scikit-learn vectorizer.

        Parameters
        ----------
        vectorizer : scikit-learn vectorizer
            Such as a TfidfVectorizer.
        fit : bool, default=True
            Whether to fit it on these texts first.

        Examples
        --------
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> Dataset.from_texts(["to be or", "not to be"], [["a"], []]).vectorize(CountVectorizer())
        <Dataset: 2 rows, 4 features, 1 labels>
        """
        if self.texts is None:
            raise ValueError("This Dataset already has features instead of texts.")
        X = fit_words(vectorizer, self.texts) if fit else vectorizer.transform(self.texts)
        names = getattr(vectorizer, "get_feature_names_out", None)
        return replace(self, X=X, texts=None, feature_names=None if names is None else names())

    def save(self, folder: PathLike, *, overwrite: bool = False) -> None:
        """Write a store that :func:`ldsm.datasets.open_store` opens memory-mapped.

        Parameters
        ----------
        folder : path
            The folder to write; it is left unchanged on failure.
        overwrite : bool, default=False
            Replace an existing store.
        """
        from .formats import check_store_name
        from .store import save_store

        check_store_name(folder)

        save_store(self, folder, overwrite=overwrite)


def named_labels(rows: Iterable[Iterable[str]], number: Mapping[str, int]) -> Any:
    """The label names of each row as a 0/1 matrix, with the columns in `number`."""
    numbers = [sorted({number[name] for name in row}) for row in rows]
    indptr = np.cumsum([0] + [len(row) for row in numbers])
    indices = np.array([label for row in numbers for label in row], dtype=np.int32)
    return label_csr(indptr, indices, len(number))


def _row_index(rows: Any) -> NDArray[Any]:
    index = np.asarray(rows)
    return index.astype(np.int64) if index.size == 0 and index.dtype != bool else index
