"""Let a fitted model learn from new rows: new labels get columns, and every part is updated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._arrays.dense_rows import label_vectors
from .._arrays.labels import LabelArrays, faithful_array, object_array
from .._execution.chosen import stage_executor
from .._features.blocks import MAIN, Blocks
from .._features.copies import NO_ROWS, Fresh, RowKeys, fresh_rows, row_keys
from .._features.new_rows import ABSENT, PRIOR, NewRows
from .._matching.names import name_index
from .._ranking.updating import learned_stage
from .._trees.columns import NewColumns
from .._trees.learning import with_labels, with_rows
from .._trees.params import Choice
from .._wording import parameter
from ..datasets.dataset import SubWordForm
from .fitted import MOST_ROWS, FittedModel
from .history import total, with_entry
from .relabel import ascend, in_columns, without_remainder

NEW_LABELS_DUE = 0.25  # of all labels: from then on the model should be retrained


def check_options(absent: Any, prior: Any, owner: str) -> None:
    """Raise an error unless the options of `partial_fit` are valid."""
    for name, value, allowed in (("absent", absent, ABSENT), ("prior", prior, PRIOR)):
        if not (choice := Choice(allowed)).allows(value):
            raise ValueError(f"{parameter(name, owner)} must be {choice}. Got {value!r} instead.")


def check_can_learn(model: FittedModel) -> None:
    """Raise an error for a model that new rows cannot be added to."""
    if not model.verified:
        raise ValueError(
            "A model that was loaded with verify=False cannot learn: its content was not "
            "checked. Load it with verify=True."
        )
    if model.n_training_rows > MOST_ROWS // 2:
        raise ValueError(
            f"The model cannot learn: its file claims {model.n_training_rows:,} training rows."
        )
    check_keeps_masses(model)


def check_keeps_masses(model: FittedModel) -> None:
    """Raise an error for a model that was saved without what an update needs."""
    if model.second_stage is not None and model.second_stage.masses is None:
        raise ValueError(
            "The model cannot learn: it was saved by an older ldsm and cannot be updated. "
            "Retrain it."
        )


def training_due(model: FittedModel) -> str | None:
    """Why the model should be retrained, if it should."""
    training = model.training
    n_learned = total(training, "learned")
    n_new = total(training, "new_labels") - total(training, "dropped")
    n_fitted = model.n_training_rows - n_learned
    if n_learned >= n_fitted > 0:
        return (
            f"retrain the model: {n_learned:,} rows were learned since the training on "
            f"{n_fitted:,}; the trees do not know them"
        )
    if n_new >= NEW_LABELS_DUE * model.n_labels:
        return (
            f"retrain the model: {n_new:,} of {model.n_labels:,} labels are new since the "
            "training; no tree was grown for them"
        )
    return None


def learned(
    model: FittedModel,
    x: Blocks,
    y: LabelArrays,
    *,
    min_rows: int,
    n_jobs: int | None,
    absent: str,
    prior: str,
    sub_words: SubWordForm | None = None,
    fresh: Fresh | None = None,
    label_embeddings: Any = None,
) -> FittedModel:
    """The model with new rows learned. `y` may have labels that the model does not know.

    `min_rows` is the estimator's `tail_min_rows`; `absent` and `prior` are those of its
    `partial_fit`. `sub_words` are the last features of a model that knows labels by their names,
    `label_embeddings` those of its `partial_fit`. `fresh` says which rows are no copies; by
    default, those whose features and labels are new. The result does not depend on `n_jobs`.
    """
    if fresh is None:
        fresh = fresh_rows(row_keys(x, y), learned_rows(model))
    wider, y = _with_new_labels(without_remainder(model), y, sub_words)
    if label_embeddings is not None:
        wider = _with_label_vectors(wider, label_embeddings)
    counts, n_rows = wider.label_counts, wider.n_training_rows
    counts_after, n_learned = counts + y.counts, x.n_rows
    stage, forest = wider.second_stage, wider.forest
    n_different = n_rows
    if stage is not None and stage.ranker is not None:
        counts, n_different = stage.label_counts, max(1, n_rows - stage.n_copies)
        x, y = x.take(fresh.rows), y.take(fresh.rows)
        n_copies = stage.n_copies + n_learned - x.n_rows
        stage = replace(stage, n_copies=n_copies, learned_rows=fresh.learned)
    new = NewRows(x, y, counts, n_different, absent, prior)
    if x.n_rows == 0:  # all are copies
        pass
    elif stage is None or stage.ranker is None:
        forest = with_rows(forest, x.read_by("trees"), y)
    else:
        # The rows that the splits were made for separate labels better than later rows do. But
        # labels that no leaf knows would hardly be found.
        forest = with_labels(forest, x.read_by("trees"), y, counts == 0)
    if stage is not None and x.n_rows:
        stage = learned_stage(
            stage,
            wider.forest,
            forest,
            new,
            min_rows=min_rows,
            seed=(wider.seed + n_rows) % 2**63,
            executor=stage_executor(n_jobs),
        )
    n_new = wider.n_labels - model.n_labels
    skewed = n_learned if x.n_rows and new.is_skewed else 0
    entry = {"learned": n_learned, "times": 1, "new_labels": n_new, "skewed": skewed}
    training = {
        **wider.training,
        "rows": n_rows + n_learned,
        "features": x.n_features,
        "labels": wider.n_labels,
        "history": with_entry(wider.training, entry),
    }
    return replace(
        wider,
        forest=forest,
        second_stage=stage,
        label_counts=counts_after,
        training=training,
    )


def learned_rows(model: FittedModel) -> RowKeys:
    """The hashes of the rows that need not be learned again."""
    stage = model.second_stage
    if stage is None or stage.ranker is None or stage.learned_rows is None:
        return NO_ROWS
    return stage.learned_rows


def with_words(model: FittedModel, more: int) -> FittedModel:
    """The model with room for this number of new words, which are not learned yet.

    The trees do not see them; index and linear classifiers can learn them.
    """
    stage, before = model.second_stage, model.layout
    layout = before.widened(MAIN, more)
    if stage is not None:
        masses = stage.masses
        assert masses is not None
        stage = replace(
            stage,
            parts={name: part.widened(name, before, layout) for name, part in stage.parts.items()},
            masses={**masses, MAIN: np.append(masses[MAIN], np.zeros(more, np.float32))},
        )
    return replace(model, second_stage=stage, layout=layout)


def _with_new_labels(
    model: FittedModel, y: LabelArrays, sub_words: SubWordForm | None
) -> tuple[FittedModel, LabelArrays]:
    """The model with columns for all labels of `y`, and these labels in its columns."""
    old, new = model.classes.tolist(), y.classes.tolist()
    number = {label: i for i, label in enumerate(old)}
    unknown = [label for label in new if label not in number]
    if unknown:
        labels: list[Any] = [*old, *unknown]
        order = list(range(len(labels)))
        if ascend(old) and {type(label) for label in unknown} == {type(old[0])}:
            order.sort(key=labels.__getitem__)
        place = np.empty(len(labels), dtype=np.int64)
        place[order] = np.arange(len(labels))
        in_order: list[Any] = [labels[i] for i in order]
        classes = (object_array if model.classes.dtype == object else faithful_array)(in_order)
        model = in_columns(model, NewColumns(place[: len(old)], len(labels)), classes)
        number = {label: int(place[i]) for i, label in enumerate(labels)}
        model = _with_all_names(model, sub_words)
    return model, y.in_columns(number, model.classes)


def _with_label_vectors(model: FittedModel, label_embeddings: Any) -> FittedModel:
    """With vectors for labels of which nothing is known."""
    stage, width = model.second_stage, model.layout.dense
    if not width:
        raise ValueError("label_embeddings must be None: the model was trained without embeddings.")
    vectors = label_vectors(label_embeddings, model.classes, width=width)
    if stage is None or stage.meaning is None:
        return model
    meaning = stage.meaning.with_names(vectors)
    return replace(model, second_stage=stage.with_parts(meaning=meaning))


def _with_all_names(model: FittedModel, sub_words: SubWordForm | None) -> FittedModel:
    """With the names of new labels in the index of names, if there is one."""
    stage = model.second_stage
    if stage is None or stage.names is None:
        return model
    if sub_words is None:
        raise ValueError(
            "The model knows labels by their names, so new labels need the texts: use the "
            "partial_fit of the TextTagger, not that of its classifier."
        )
    labels = model.classes.tolist()
    names = name_index(labels, sub_words, stage.names.synonyms(labels))
    names = replace(names, matched=stage.names.matched, right=stage.names.right)
    return replace(model, second_stage=stage.with_parts(names=names))
