"""Model files as MLflow models; see ``docs/mlflow.md``.

MLflow loads a model through a module with a function `_load_pyfunc`, which is this one. MLflow
stores the ``.ldsm`` file itself; nothing is pickled.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ._loading import load
from ._storage.paths import PathLike
from ._trees.params import Number
from ._version import __version__
from .classifier import LdSMClassifier
from .text.fitted import fitted_text
from .text.tagger import TextTagger

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PyfuncModel", "log_model", "save_model"]

# Parameters of a request, with their defaults.
PARAMS: Mapping[str, tuple[Any, Number]] = {
    "k": (5, Number(1, integer=True)),
    "min_score": (0.0, Number(0, 1)),
    "tail": (0.0, Number(0)),
}


# The key of an encoder in MLflow's configuration of a model.
ENCODER = "encoder"


class PyfuncModel:
    """A model for `mlflow.pyfunc`.

    Parameters
    ----------
    model : TextTagger or LdSMClassifier
        A fitted model.

    Examples
    --------
    >>> from ldsm import TextTagger
    >>> from ldsm.mlflow import PyfuncModel
    >>> tagger = TextTagger().fit(["cod quota", "beef import"] * 5, [["fish"], ["meat"]] * 5)
    >>> PyfuncModel(tagger).predict(["a quota for cod"], {"k": 1}).iloc[0].to_dict()
    {'labels': ['fish'], 'scores': [1.0]}
    """

    def __init__(self, model: TextTagger | LdSMClassifier) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """The best labels of each row.

        Parameters
        ----------
        model_input : DataFrame, Series, ndarray, sparse matrix, list or mapping
            For a tagger, texts: a list of str, or a table with one column or with a column "text".
            For a classifier, features. A table is a DataFrame, columns by name, or a list of rows
            that are mappings.
        params : mapping, optional
            ``k``, the maximum number of labels per row (5); ``min_score``, the minimum score of a
            label (0); ``tail``, see `LdSMClassifier.predict_topk` (0).

        Returns
        -------
        DataFrame
            Columns ``labels`` and ``scores``: for each row a list, best first.
        """
        import pandas as pd

        k, min_score, tail = _checked(params or {})
        given = _unpacked(model_input)
        if isinstance(self.model, TextTagger):
            found = self.model.predict(_texts(given), k, tail=tail)
        else:
            found = _best_labels(self.model, given, k, tail)
        rows = [[scored for scored in row if scored[1] >= min_score] for row in found]
        return pd.DataFrame(
            {
                "labels": [[label for label, _ in row] for row in rows],
                "scores": [[float(score) for _, score in row] for row in rows],
            }
        )


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> PyfuncModel:
    """Load a model file; called by MLflow, with a configuration if the model has an encoder."""
    model = load(path, encoder=(model_config or {}).get(ENCODER))
    if isinstance(model, TextTagger):
        fitted_text(model).require_encoder(
            f"Load it with model_config={{{ENCODER!r}: PATH}}, or save it with that."
        )
    return PyfuncModel(model)


def save_model(model: TextTagger | LdSMClassifier | PathLike, path: PathLike, **more: Any) -> None:
    """Write a model as an MLflow model, which `mlflow.pyfunc.load_model` reads.

    Parameters
    ----------
    model : TextTagger, LdSMClassifier or path
        A fitted model, or the path of a model file.
    path : path
        A folder that does not exist yet.
    **more
        Further arguments of `mlflow.pyfunc.save_model`, such as `metadata` or `signature`.
        ``model_config={"encoder": path}`` names the encoder of the model, if it has one, for
        where MLflow will load it.

    Examples
    --------
    >>> import ldsm.mlflow
    >>> from ldsm import TextTagger
    >>> tagger = TextTagger().fit(["cod quota", "beef import"] * 5, [["fish"], ["meat"]] * 5)
    >>> ldsm.mlflow.save_model(tagger, "tags")  # doctest: +SKIP
    >>> mlflow.pyfunc.load_model("tags").predict(["cod"], params={"k": 1})  # doctest: +SKIP
    """
    with _model_file(model) as file:
        _pyfunc().save_model(os.fspath(path), **{**_arguments(file), **more})


def log_model(model: TextTagger | LdSMClassifier | PathLike, name: str, **more: Any) -> Any:
    """Log a model to the active MLflow run, in the form that `save_model` writes.

    Parameters
    ----------
    model : TextTagger, LdSMClassifier or path
        A fitted model, or the path of a model file.
    name : str
        Name of the model in MLflow.
    **more
        Further arguments of `mlflow.pyfunc.log_model`, such as `registered_model_name`.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Examples
    --------
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     info = ldsm.mlflow.log_model("tags.ldsm", "tags", registered_model_name="tags")
    """
    with _model_file(model) as file:
        return _pyfunc().log_model(name=name, **{**_arguments(file), **more})


@contextmanager
def _model_file(model: Any) -> Iterator[str]:
    """The path of a model file; a model object is written to a temporary folder."""
    if isinstance(model, str | os.PathLike):
        yield os.fspath(model)
        return
    if not isinstance(model, TextTagger | LdSMClassifier):
        raise ValueError(
            "model must be a TextTagger, an LdSMClassifier or the path of a model file. "
            f"Got {model!r:.80}."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.ldsm")
        model.save(path)
        yield path


def _arguments(file: str) -> dict[str, Any]:
    """The arguments for MLflow's functions."""
    from mlflow.models import ModelSignature
    from mlflow.types import ParamSchema, ParamSpec

    kinds = {int: "long", float: "double"}
    params = ParamSchema(
        [ParamSpec(name, kinds[type(default)], default) for name, (default, _) in PARAMS.items()]
    )
    model = load(file, verify=False)  # raises errors before anything is written
    extras, more = "mlflow", {}
    if isinstance(model, TextTagger) and fitted_text(model).encoder is not None:
        # MLflow ignores a configuration at loading unless there was one at saving.
        extras, more = "encoder,mlflow", {"model_config": {ENCODER: None}}
    return {
        **more,
        "loader_module": __name__,
        "data_path": file,
        # No input schema: it would allow only one of the input forms, and MLflow would use the
        # first column of a table with other names. The model checks its input itself.
        "signature": ModelSignature(params=params),
        "pip_requirements": [f"ldsm[{extras}]=={__version__}"],
    }


def _pyfunc() -> Any:
    try:
        import mlflow.pyfunc
    except ImportError as error:
        raise ImportError(
            f'ldsm.mlflow needs {error.name}, which is not installed: pip install "ldsm[mlflow]".'
        ) from error
    return mlflow.pyfunc


def _checked(params: Mapping[str, Any]) -> list[Any]:
    unknown = sorted(params.keys() - PARAMS.keys())
    if unknown:
        raise ValueError(f"params must be among {', '.join(PARAMS)}. Got {unknown[0]!r}.")
    chosen = {name: default for name, (default, _) in PARAMS.items()} | dict(params)
    for name, (_, rule) in PARAMS.items():
        rule.check(name, chosen[name])
    return [chosen[name] for name in PARAMS]


def _unpacked(given: Any) -> Any:
    """Tables of MLflow requests as DataFrames; other input unchanged.

    ``{"inputs": {"text": [...]}}`` arrives as columns by name, and rows as mappings of single
    values. A single column with several numbers per row is a matrix.
    """
    import pandas as pd

    if isinstance(given, list) and any(isinstance(row, Mapping) for row in given):
        if not all(isinstance(row, Mapping) for row in given):
            raise ValueError("Either all rows or none must be mappings of columns to values.")
        rows = [{name: _single(value) for name, value in row.items()} for row in given]
        return pd.DataFrame(rows)
    if not isinstance(given, Mapping):
        return given
    columns = {name: np.atleast_1d(np.asarray(value)) for name, value in given.items()}
    shapes = {name: column.shape for name, column in columns.items()}
    if not columns or len({shape[0] for shape in shapes.values()}) > 1:
        raise ValueError(f"Columns must have the same number of rows. Got the shapes {shapes}.")
    if len(columns) == 1:
        return next(iter(columns.values()))
    for name, column in columns.items():
        if column.ndim == 2 and column.shape[1] == 1:
            columns[name] = column[:, 0]
        elif column.ndim != 1:
            raise ValueError(
                f"Each of several columns must have one value per row. Got {name!r} with shape "
                f"{column.shape}."
            )
    return pd.DataFrame(columns)


def _single(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def _texts(given: Any) -> list[Any]:
    """The texts of a list, a column or a table."""
    if hasattr(given, "columns"):
        columns = list(given.columns)
        if len(columns) > 1 and "text" not in columns:
            raise ValueError(
                "Texts must be in one column, or in a column 'text'. "
                f"Got the columns {', '.join(map(repr, columns[:5]))}."
            )
        given = given["text"] if len(columns) > 1 else given[columns[0]]
    if isinstance(given, np.ndarray):
        given = (given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given).tolist()
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        return given  # type: ignore[no-any-return]  # the tagger raises the error
    return list(given)


def _best_labels(model: LdSMClassifier, X: Any, k: int, tail: float) -> list[list[tuple[Any, Any]]]:
    if not sp.issparse(X) and not hasattr(X, "columns"):
        X = np.asarray(X)
    labels, scores = model.predict_topk(X, min(k, len(model.classes_)), tail=tail)
    return [
        [scored for scored in zip(*row, strict=True) if scored[1] > 0]
        for row in zip(labels.tolist(), scores.tolist(), strict=True)
    ]
