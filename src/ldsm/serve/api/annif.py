"""The shape of Annif's REST interface, so that its clients and its `http` backend can ask us."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi import Path as PathParameter
from pydantic import BaseModel, Field

from ..._model.fitted import LabelScores
from ..http.answers import JSON, json_of
from ..http.bodies import Items, route_that_reads_in
from ..models import Opened, ServedModel
from ..service import Kind, Refused, Service

Project = Annotated[str, PathParameter(description="The name of a model.")]
MOST_TAIL = 10.0
_ADDRESS = re.compile(r"<[a-z][a-z0-9+.-]*:\S+>", re.IGNORECASE)
_HUGE = 10**9  # the service has a limit of its own
_LIMIT = "The most tags to give."
_THRESHOLD = "The lowest score that a tag may have."
_TAIL = "Above 0, rare tags come earlier: 1 is right for metrics with propensities."


def _text() -> Any:
    return Field(examples=["a quota for cod"])


class Suggestion(BaseModel):
    """A tag with its score."""

    uri: str = Field(description="The tag as the model knows it.", examples=["fish"])
    label: str = Field(description="What a person would call it.", examples=["fish"])
    notation: str | None = Field(default=None, description="Always null: models have no notations.")
    score: float = Field(description="How sure the model is, from 0 to 1.", examples=[0.87])


class Suggestions(BaseModel):
    """The tags of a text, best first."""

    results: list[Suggestion]


class DocumentSuggestions(Suggestions):
    """The tags of one of several texts."""

    document_id: str | None = Field(default=None, description="As it was given.", examples=["7"])


class Document(BaseModel):
    """A text, and what to call it."""

    text: str = _text()
    document_id: str | None = Field(default=None, examples=["7"])


class Documents(BaseModel):
    """Several texts."""

    documents: Items[Document]


class Subject(BaseModel):
    """A tag, by its address or by its name."""

    uri: str = ""
    label: str = ""


class CorrectedDocument(BaseModel):
    """A text with its right tags: all of them."""

    text: str = _text()
    subjects: Items[Subject] = Field(examples=[[{"label": "fish"}]])


class Backend(BaseModel):
    """What answers for a project."""

    backend_id: str = "ldsm"


class ProjectFacts(BaseModel):
    """A model, as Annif describes a project."""

    project_id: str = Field(examples=["tags"])
    name: str = Field(examples=["tags"])
    language: str = Field(default="und", description="Always und: models do not know theirs.")
    backend: Backend = Backend()
    is_trained: bool = True
    modification_time: str = Field(
        description="When the model's file was written.", examples=["2026-01-31T12:00:00+00:00"]
    )
    n_labels: int
    n_training_rows: int
    threshold: float | None = Field(description="Of a set of tags; null if each tag has its own.")
    learns: bool = Field(description="Whether corrections are learned at once.")
    max_batch: int = Field(description="The most texts of a request.", examples=[256])
    separator: str | None = Field(description="What can stand between tags in a cell of a table.")
    problem: str | None = Field(default=None, description="Why the file as it is now is not used.")


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
        threshold=model.threshold if isinstance(model.threshold, float) else None,
        learns=service.learns(name),
        max_batch=service.settings.max_batch,
        separator=opened.labels.separator,
        problem=_without_folder(service.models[name]),
    )


def router(service: Service) -> APIRouter:
    """The endpoints below ``/v1`` that Annif has, too."""
    reading = route_that_reads_in(service.readers, service.settings.max_batch)
    routes = APIRouter(prefix="/v1", tags=["Tags, as Annif gives them"], route_class=reading)

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
        tail: Annotated[float, Form(ge=0, le=MOST_TAIL, description=_TAIL)] = 0.0,
    ) -> JSON:
        """The best tags of a text."""
        # An empty field counts as missing to FastAPI.
        if not text and "text" not in await request.form():
            raise Refused("The field 'text' is missing.")
        opened = await service.model(project)
        answers = await service.answer(Kind(opened, limit, tail), [text], threshold)
        return JSON(json_of(_results(opened, answers[0])))

    @routes.post("/projects/{project}/suggest-batch", response_model=list[DocumentSuggestions])
    async def suggest_tags_of_several(
        project: Project,
        body: Documents,
        limit: Annotated[int, Query(ge=1, le=_HUGE, description=_LIMIT)] = 10,
        threshold: Annotated[float, Query(ge=0, le=1, description=_THRESHOLD)] = 0.0,
        tail: Annotated[float, Query(ge=0, le=MOST_TAIL, description=_TAIL)] = 0.0,
    ) -> JSON:
        """The best tags of several texts, in their order."""
        texts = [document.text for document in body.documents]
        opened = await service.model(project)
        answers = await service.answer(Kind(opened, limit, tail), texts, threshold)
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
        """Texts with their right tags. They are on the disk before this answers.

        The answer is empty. With --learn they are learned at once, otherwise by ldsm learn.
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
    """Why a model's file is not used, without the place of the file: the log has that."""
    problem, path = model.problem, model.path
    for folder in (path.resolve().parent, path.absolute().parent, path.parent):
        if problem is not None and folder != Path():
            for written in (str(folder), repr(str(folder))[1:-1]):
                problem = problem.replace(f"{written}/", "")
    return problem


def _results(opened: Opened, pairs: LabelScores) -> dict[str, Any]:
    directory = opened.labels
    return {
        "results": [
            {"uri": tag, "label": directory.name(tag), "notation": None, "score": score}
            for tag, score in pairs
        ]
    }


def _bare(name: str) -> str:
    """A new tag; addresses may come in brackets."""
    return name[1:-1] if _ADDRESS.fullmatch(name) else name
