"""``ldsm train``: train a model on a data file."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from .._model.sets.thresholds import plain_threshold, threshold_words
from .._trees.params import AUTO
from .._wording import duration, size
from ..datasets import Dataset, read_vocabulary
from ..evaluation import Evaluation, Scores
from ..evaluation.alignment import in_columns, model_rows
from ..text import TextTagger
from .command import wrong_use
from .convert import write_as_read
from .evaluate import show_scores
from .model import Model, hold_lock, open_model
from .options.cluster import DaskOption, on_cluster
from .options.estimator import EstimatorOptions, SeedOption
from .options.output import OverwriteOption, check_output, check_place
from .options.reader import Reader
from .options.tagger import TaggerOptions, split_off
from .screen import Screen, plain
from .tally import Tally

_VALIDATION = 0.1  # default share of the rows that --tune-threshold holds out


def train(
    screen: Screen,
    reader: Reader,
    words: TaggerOptions,
    params: EstimatorOptions,
    data: Annotated[Path, typer.Argument(metavar="DATA", exists=True, help="Training data.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file (usually .ldsm).")
    ],
    overwrite: OverwriteOption = False,
    validation: Annotated[
        float | None, typer.Option(help="Share of the rows to hold out for metrics.")
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the held-out rows to this file."),
    ] = None,
    tune_threshold: Annotated[
        bool,
        typer.Option(
            "--tune-threshold",
            help="Tune the threshold for sets on held-out rows "
            f"({_VALIDATION:.0%} by default), not on training rows.",
        ),
    ] = False,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Label names, and labels without training rows: two columns (.tsv, .csv) or SKOS "
            "(.ttl, .rdf, .nt). For texts only.",
        ),
    ] = None,
    encoder: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            help="Also use dense vectors of the texts and labels by this encoder, a folder or an "
            ".onnx file (pip install 'ldsm\\[encoder]'). For texts only.",
        ),
    ] = None,
    seed: SeedOption = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Save finished trees in this folder, so that an interrupted run can be resumed.",
        ),
    ] = None,
    dask: DaskOption = None,
) -> None:
    """Train a model and save it to one file.

    Texts (JSON Lines, CSV, TSV, Parquet, Feather, or a store of texts) produce a model that reads
    texts; features (xmlrepo, svmlight, or a store of features) produce a model that reads features.

    The file is written completely or not at all; an existing model is replaced. --warm-start keeps
    the trees of the existing model and grows more from the same data.

    --checkpoint saves every finished tree in a folder. If the run is interrupted, the same command
    resumes it and produces the same model. The folder is not deleted automatically.

    --vocabulary reads the names of labels, one per line: label, tab, name. Names are compared with
    the texts, so labels without training rows can be predicted, too.

    --dask trains on the workers of a cluster; the model is the same. Workers exchange data through
    the folder of --checkpoint, which all of them must see; local:N needs none. A store (see `ldsm
    convert`) that all workers see is best for large data.
    """
    check_place(output)
    inputs = reader.inputs(data, *filter(None, [params.file, vocabulary]))
    check_output(output, "a model", inputs, overwrite)
    for name, value in {"--vocabulary": vocabulary, "--encoder": encoder}.items():
        if value is not None and params.get("warm_start"):
            raise wrong_use("cannot be combined with --warm-start.", name)
    if vocabulary is not None and words.words.get("ngrams", AUTO) != AUTO:
        raise wrong_use("cannot be combined with --vocabulary, which needs sub-words.", "--ngrams")
    if tune_threshold and "threshold" in params:
        raise wrong_use("cannot be combined with --threshold.", "--tune-threshold")
    if validation is None and tune_threshold:
        validation = _VALIDATION
    seed = params.seeded(seed)
    started = time.perf_counter()
    if vocabulary is not None:
        concepts = read_vocabulary(vocabulary, **reader.of_lines)
    reader = reader.for_training(data)
    if held_out is not None:
        if validation is None:
            raise wrong_use("needs --validation.", "--held-out")
        if held_out.resolve() == output.resolve():
            raise wrong_use(f"{held_out} is the file of --output.", "--held-out")
        check_output(held_out, "data", inputs, overwrite, "--held-out")
    rows, kept, everything = _rows(reader, data, validation, seed)

    def report_tally(tally: Tally) -> None:
        if tally.n_rows == 0:
            raise ValueError(f"{data} has no rows to train on.")
        if not tally.labels:
            raise ValueError(
                f"{data} must hold at least one label. Got none: no row has a label; use "
                "--label-field to name the field or column of the labels."
            )
        screen.note(tally.summary(0 if kept is None else len(kept)))
        for oddity in tally.oddities():
            screen.note(f"note: {oddity}", style="yellow")

    if everything is not None:
        report_tally(Tally.of(everything))
    if kept is not None and tune_threshold and kept.Y.nnz == 0:
        raise wrong_use(
            f"none of the {len(kept):,} held-out rows has a label; use --validation to hold out "
            "more.",
            "--tune-threshold",
        )
    if kept is not None and held_out is not None:
        write_as_read(kept, held_out, reader)
    if params.get("warm_start") and output.exists():
        hold_lock(screen, output)
    store = None if rows is None else rows.store
    with (
        screen.progress(f"training on {data.name}", stages=True) as report,
        on_cluster(dask, checkpoint, store) as folder,
    ):
        options: dict[str, Any] = {"callback": report, "checkpoint_dir": folder}
        if params.get("warm_start") and output.exists():
            model = _with_more_trees(output, params, rows or reader.load(data), options)
        else:
            estimator = words.estimator(params, rows, data, encoder)
            documents = None if rows is not None else reader.documents(data)
            corpus = rows if documents is None else Tally().counted(documents, report_tally)
            if vocabulary is not None:
                if rows is not None and rows.texts is None:
                    raise wrong_use(f"{data} holds features, not texts.", "--vocabulary")
                options["vocabulary"] = concepts
            model = Model(output, estimator.fit(corpus, **options))
    seconds = time.perf_counter() - started
    scores = None
    if kept is not None:
        if tune_threshold:
            model.estimator.tune_threshold(kept)
        propensities = model.fitted.propensities()
        scores = Evaluation(model.estimator, kept).scores(propensities=propensities)
        model.note(validation=plain(scores.as_dict()))
    model.note(reading=reader.remembered(rows), **reader.named_by())
    model.estimator.save(output)
    taken = model.fitted.training.get("trees_from_checkpoint", 0)
    if taken:
        screen.note(f"{taken:,} of {model.fitted.forest.n_trees:,} trees loaded from {checkpoint}")
    _show(screen, model, scores, seconds, tune_threshold)


def _rows(
    reader: Reader, data: Path, validation: float | None, seed: int
) -> tuple[Dataset | None, Dataset | None, Dataset | None]:
    """Rows to train on, rows held out, and all rows; None if documents are read one by one."""
    if validation is not None:
        everything = reader.load(data)
        return *split_off(everything, validation, seed), everything
    if reader.documents(data) is not None:
        return None, None, None
    rows = reader.load(data)
    return rows, None, rows


def _with_more_trees(
    output: Path, params: EstimatorOptions, rows: Dataset, options: dict[str, Any]
) -> Model:
    """The existing model with more trees; the options are those of `fit`."""
    model = open_model(output)
    if model.fitted.reads_dense:
        raise wrong_use(f"{output} was trained with an encoder: train it again.", "--warm-start")
    aligned, _ = in_columns(model.estimator, rows, output)
    X = model_rows(model.estimator, aligned, output).joined().matrix()
    model.classifier.set_params(**params)
    form = model.estimator.features_.form if isinstance(model.estimator, TextTagger) else None
    stage = model.fitted.second_stage
    names = (
        None
        if stage is None or stage.names is None
        else stage.names.synonyms(model.fitted.classes.tolist())
    )
    rows = replace(aligned, X=X, texts=None, text_form=form, label_synonyms=names)
    model.classifier.fit(rows, **options)
    return model


def _show(screen: Screen, model: Model, scores: Scores | None, seconds: float, tuned: bool) -> None:
    forest, stage = model.fitted.forest, model.fitted.second_stage
    threshold = plain_threshold(model.fitted.threshold)
    facts: dict[str, Any] = {
        "model": str(model.path),
        "kind": model.kind,
        "rows": model.fitted.n_training_rows,
        "features": model.fitted.n_features,
        "labels": model.fitted.n_labels,
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "second_stage": None if stage is None else stage.blend.kind,
        "threshold": threshold,
        "seconds": round(seconds, 3),
        "bytes": model.path.stat().st_size,
        "fingerprint": model.estimator.fingerprint_,
    }
    if screen.json:
        screen.data({**facts, "validation": None if scores is None else scores.as_dict()})
        return
    screen.note(
        f"{facts['rows']:,} rows, {model.counted_features()}, {facts['labels']:,} labels: "
        f"{facts['trees']:,} trees, {facts['nodes']:,} nodes, second stage: "
        f"{facts['second_stage'] or 'none'}, in {duration(seconds)}"
    )
    if isinstance(model.estimator, TextTagger) and model.estimator.rare_tags_:
        screen.note(f"{len(model.estimator.rare_tags_):,} rare tags were left out")
    if scores is not None:
        show_scores(screen, scores, f"{scores.n_rows:,} held-out rows")
        if tuned:
            screen.note("The threshold was tuned on these rows, so this F1 is optimistic.")
        screen.note(
            "The model has not seen the held-out rows; train without --validation to use all rows."
        )
    if model.fitted.label_form != "single":
        screen.note(f"threshold of predicted sets: {threshold_words(threshold)}")
    screen.note(f"{model.path}: {size(facts['bytes'])}")
