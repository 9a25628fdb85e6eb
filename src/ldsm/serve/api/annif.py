"""An API compatible with Annif's REST API, for its clients and its `http` backend."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi import Path as PathParameter
from pydantic import BaseModel, Field

from ..._model.fitted import LabelScores
from ..._model.sets.thresholds import common_threshold
from ..http.answers import JSON, json_of
from ..http.bodies import Items, route_that_reads_in
from ..models import Opened, ServedModel
from ..service import Kind, Refused, Service

Project = Annotated[str, PathParameter(description="The name of a model.")]
MAX_TAIL = 10.0
_ADDRESS = re.compile(r"<[a-z][a-z0-9+.-]*:\S+>", re.IGNORECASE)
_HUGE = 10**9  # the service has its own limit
_LIMIT = "Maximum number of tags."
_THRESHOLD = "Minimum score of a tag."
_ONLY = "Predict only these tags or groups, by URI or name."
_WITHOUT = "Never predict these tags or groups."
_TAIL = "Favours rare tags if above 0; use 1 for propensity-scored metrics."


def _text() -> Any:
    return Field(examples=["a quota for cod"])


class Suggestion(BaseModel):
    """A tag with its score."""

    uri: str = Field(description="The tag itself.", examples=["fish"])
    label: str = Field(description="The name of the tag.", examples=["fish"])
    notation: str | None = Field(default=None, description="Always null: models have no notations.")
    score: float = Field(description="The model's confidence, from 0 to 1.", examples=[0.87])


class Suggestions(BaseModel):
    """The tags of a text, best first."""

    results: list[Suggestion]


class DocumentSuggestions(Suggestions):
    """The tags of one of several texts."""

    document_id: str | None = Field(
        default=None, description="The id from the request.", examples=["7"]
    )


class Document(BaseModel):
    """A text with an optional id."""

    text: str = _text()
    document_id: str | None = Field(default=None, examples=["7"])


class Documents(BaseModel):
    """Several texts, and which tags they may get."""

    documents: Items[Document]
    only: Items[str] | None = Field(default=None, description=_ONLY, examples=[None])
    without: Items[str] | None = Field(default=None, description=_WITHOUT, examples=[None])


class Subject(BaseModel):
    """A tag, by its URI or its name."""

    uri: str = ""
    label: str = ""


class CorrectedDocument(BaseModel):
    """A text with all of its correct tags."""

    text: str = _text()
    subjects: Items[Subject] = Field(examples=[[{"label": "fish"}]])


class Backend(BaseModel):
    """The backend of a project."""

    backend_id: str = "ldsm"


class ProjectFacts(BaseModel):
    """A model, as Annif describes a project."""

    project_id: str = Field(examples=["tags"])
    name: str = Field(examples=["tags"])
    language: str = Field(default="und", description="Always und: models do not record it.")
    backend: Backend = Backend()
    is_trained: bool = True
    modification_time: str = Field(
        description="When the model file was written.", examples=["2026-01-31T12:00:00+00:00"]
    )
    n_labels: int
    n_training_rows: int
    threshold: float | None = Field(
        description="Least score of a set; null if each tag has its own. With sets by expected "
        "F1, the best threshold for all tags."
    )
    learns: bool = Field(description="Whether corrections are learned as they arrive.")
    max_batch: int = Field(description="Maximum number of texts per request.", examples=[256])
    separator: str | None = Field(description="Separator for tags in a table cell.")
    problem: str | None = Field(default=None, description="Why the current file is not in use.")


class Projects(BaseModel):
    """All models."""

    projects: list[ProjectFacts]


async def described(service: Service, name: str) -> ProjectFacts:
    """A model as Annif describes a project."""
    opened = await service.model(name)
    model = opened.fitted.classifier.model_
    return ProjectFacts(
        project_id=name,
        name=name,
        modification_time=opened.modified.isoformat(),
        n_labels=model.n_labels,
        n_training_rows=model.n_training_rows,
        threshold=common_threshold(model.threshold),
        learns=service.learns(name),
        max_batch=service.settings.max_batch,
        separator=opened.labels.separator,
        problem=_without_folder(service.models[name]),
    )


def router(service: Service) -> APIRouter:
    """The endpoints under ``/v1`` that Annif has as well."""
    reading = route_that_reads_in(service.readers, service.settings.max_batch)
    routes = APIRouter(prefix="/v1", tags=["Tags (Annif API)"], route_class=reading)

    @routes.get("/projects")
    async def list_models() -> Projects:
        """All models of the service."""
        return Projects(projects=[await described(service, one.name) for one in service.models])

    @routes.get("/projects/{project}")
    async def show_model(project: Project) -> ProjectFacts:
        """One model."""
        return await described(service, project)

    @routes.post("/projects/{project}/suggest", response_model=Suggestions)
    async def suggest_tags(
        request: Request,
        project: Project,
        text: Annotated[str, Form(description="The text to tag; may be empty.")] = "",
        limit: Annotated[int, Form(ge=1, le=_HUGE, description=_LIMIT)] = 10,
        threshold: Annotated[float, Form(ge=0, le=1, description=_THRESHOLD)] = 0.0,
        tail: Annotated[float, Form(ge=0, le=MAX_TAIL, description=_TAIL)] = 0.0,
        only: Annotated[list[str] | None, Form(description=_ONLY)] = None,
        without: Annotated[list[str] | None, Form(description=_WITHOUT)] = None,
    ) -> JSON:
        """The best tags of a text."""
        # FastAPI treats an empty field as missing.
        if not text and "text" not in await request.form():
            raise Refused("The field 'text' is missing.")
        opened = await service.model(project)
        kind = Kind(opened, limit, tail).restricted(only, without)
        answers = await service.answer(kind, [text], threshold)
        return JSON(json_of(_results(opened, answers[0])))

    @routes.post("/projects/{project}/suggest-batch", response_model=list[DocumentSuggestions])
    async def suggest_tags_of_several(
        project: Project,
        body: Documents,
        limit: Annotated[int, Query(ge=1, le=_HUGE, description=_LIMIT)] = 10,
        threshold: Annotated[float, Query(ge=0, le=1, description=_THRESHOLD)] = 0.0,
        tail: Annotated[float, Query(ge=0, le=MAX_TAIL, description=_TAIL)] = 0.0,
    ) -> JSON:
        """The best tags of several texts, in order."""
        texts = [document.text for document in body.documents]
        opened = await service.model(project)
        kind = Kind(opened, limit, tail).restricted(body.only, body.without)
        answers = await service.answer(kind, texts, threshold)
        return JSON(
            json_of(
                [
                    {"document_id": document.document_id, **_results(opened, answer)}
                    for document, answer in zip(body.documents, answers, strict=True)
                ]
            )
        )

    @routes.post("/projects/{project}/learn", status_code=204, response_model=None)
    async def keep_corrections(project: Project, body: Items[CorrectedDocument]) -> None:
        """Save texts with their correct tags. They are on disk when the request returns.

        The answer is empty. With --learn, corrections are learned as they arrive; otherwise use
        ldsm learn.
        """
        directory = (await service.model(project)).labels
        documents = []
        for document in body:
            named = [subject.uri or subject.label for subject in document.subjects]
            tags = [directory.known(name) or _bare(name) for name in named]
            documents.append((document.text, list(dict.fromkeys(tags))))
        await service.correct(project, documents)

    return routes


def _without_folder(model: ServedModel) -> str | None:
    """Why a model file is not in use, without its folder, which only the log shows."""
    problem, path = model.problem, model.path
    for folder in (path.resolve().parent, path.absolute().parent, path.parent):
        if problem is not None and folder != Path():
            for written in (str(folder), repr(str(folder))[1:-1]):
                problem = problem.replace(f"{written}/", "")
    return problem


def _results(opened: Opened, scored: LabelScores) -> dict[str, Any]:
    directory = opened.labels
    return {
        "results": [
            {"uri": tag, "label": directory.name(tag), "notation": None, "score": score}
            for tag, score in scored
        ]
    }


def _bare(name: str) -> str:
    """A new tag, without the angle brackets of a URI."""
    return name[1:-1] if _ADDRESS.fullmatch(name) else name
