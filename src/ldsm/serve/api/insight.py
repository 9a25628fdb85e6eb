"""Explanations of tags, and the labels of a model."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query
from pydantic import BaseModel, Field

from ...text.marking import marked
from ..http.answers import JSON
from ..http.bodies import route_that_reads_in
from ..labels import LabelDirectory
from ..models import Opened
from ..service import Refused, Service
from .annif import Project

_EVERY_REASON = 2**31 - 1
_STRONGEST = 12  # words per label
MAX_EXPLAINED = 100_000  # characters


class Word(BaseModel):
    """A word or a sequence of words, and its contribution to the margin of a label."""

    word: str
    weight: float


class TypicalWord(BaseModel):
    """A typical word of a label, and whether it occurs in the text."""

    word: str
    here: bool


class MarkedPart(BaseModel):
    """A piece of the text; its weight is 0 if it does not affect the label."""

    text: str
    weight: float


class Explanation(BaseModel):
    """Why a text has a label, or why not."""

    uri: str
    label: str
    score: float
    listed: bool = Field(description="Whether the label is on the text's shortlist.")
    place: int | None = Field(description="Its rank among the tags of the text, from 1.")
    shares: dict[str, float] = Field(
        description="The contribution of each stage to the log-odds of the score, their sum."
    )
    margin: float | None = Field(description="Of the label's linear classifier: bias and words.")
    bias: float | None
    words: list[Word] = Field(
        description="Words for the label (above 0) and against it, strongest first. If the model "
        "has only trees: the words that decided the path through them, for any label."
    )
    typical: list[TypicalWord] = Field(description="The most typical words of the label.")
    matched_name: str | None = Field(description="The name of the label that matches the text.")
    name_share: float | None = Field(description="The share of that name found in the text.")
    certainty: float = Field(
        description="How far the score relies on the stages, from 0 (no known words: the score is "
        "the share of training texts with the label) to 1."
    )
    training_rows: int
    parts: list[MarkedPart] = Field(description="The text in parts, for marking its words.")


class Label(BaseModel):
    """A label of a model."""

    uri: str
    label: str
    training_rows: int
    tested: int | None = Field(
        description="Number of rows with the label that were held out in training."
    )
    found: int | None = Field(description="Number of these rows with the label in the top 5.")


class Labels(BaseModel):
    """Some labels of a model, and the total number."""

    total: int
    labels: list[Label]


class Group(BaseModel):
    """A group of labels, from the vocabulary."""

    group: str = Field(description="Its name in only= and without=.")
    labels: int = Field(description="Number of labels in the group.")


class Groups(BaseModel):
    """The groups of a model."""

    groups: list[Group]


class LabelDetails(Label):
    """A label and its most typical words."""

    words: list[str]


def router(service: Service) -> APIRouter:
    """The endpoints under ``/v1`` that Annif does not have."""
    reading = route_that_reads_in(service.readers, service.settings.max_batch)
    routes = APIRouter(prefix="/v1", tags=["Explanations and labels"], route_class=reading)

    @routes.post("/projects/{project}/explain", response_model=Explanation)
    async def explain_a_tag(
        project: Project,
        text: Annotated[str, Form(description="The text.")],
        label: Annotated[str, Form(description="A label, by its URI or its name.")],
        max_words: Annotated[int, Form(ge=1, le=1000, description="Maximum number of words.")] = 30,
    ) -> JSON:
        """Why a text has a label or not, word by word."""
        if len(text) > MAX_EXPLAINED:
            raise Refused(
                f"A text to explain may have at most {MAX_EXPLAINED:,} characters. "
                f"Got {len(text):,}."
            )
        opened = await service.model(project)
        return await service.run_in_pool(
            lambda: JSON(explained(opened, text, label, max_words).model_dump_json())
        )

    @routes.get("/projects/{project}/labels")
    async def list_labels(
        project: Project,
        search: Annotated[str, Query(max_length=1000, description="Text to search for.")] = "",
        order: Annotated[
            Literal["rows", "name", "found"],
            Query(description="Order of labels that match equally well."),
        ] = "rows",
        offset: Annotated[int, Query(ge=0, le=2**53, description="Number of labels to skip.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of labels.")] = 20,
    ) -> Labels:
        """The labels of a model, or those whose name contains a text."""
        opened = await service.model(project)

        def find() -> Labels:
            directory = opened.labels
            found = directory.search(search, order)
            shown = found[offset : offset + limit]
            return Labels(total=len(found), labels=[_label(directory, i) for i in shown])

        return await service.run_in_pool(find)

    @routes.get("/projects/{project}/groups")
    async def list_groups(project: Project) -> Groups:
        """The groups of labels that a request may choose."""
        opened = await service.model(project)

        def find() -> Groups:
            groups = opened.fitted.groups.as_dict()
            return Groups(groups=[Group(group=g, labels=len(its)) for g, its in groups.items()])

        return await service.run_in_pool(find)

    @routes.get("/projects/{project}/label")
    async def show_label(
        project: Project,
        uri: Annotated[str, Query(description="A label, by its URI or its name.")],
    ) -> LabelDetails:
        """One label and its most typical words."""
        opened = await service.model(project)

        def details() -> LabelDetails:
            directory = opened.labels
            column = _column(directory, uri)
            words = directory.words(column, _STRONGEST)
            return LabelDetails(**_label(directory, column).model_dump(), words=words)

        return await service.run_in_pool(details)

    return routes


def explained(opened: Opened, text: str, label: str, max_words: int) -> Explanation:
    """Why a text has a label, or why not."""
    directory = opened.labels
    fitted, model, column = directory.fitted, directory.model, _column(directory, label)
    explainer = fitted.explainer(text)
    score, place = explainer.tag(column, _EVERY_REASON), explainer.place(column)
    # If there are only trees, their splits are the same for all labels.
    words = score.words if score.bias is not None else explainer.deciding(max_words)
    matched_name, name_share = score.name or (None, None)
    return Explanation(
        uri=directory.tags[column],
        label=directory.names[column],
        score=score.score,
        listed=place is not None,
        place=place,
        # Without a second stage, a share may be infinite, which JSON cannot represent.
        shares={name: min(max(part, -99.0), 99.0) for name, part in score.shares.items()},
        margin=score.margin,
        bias=score.bias,
        words=[Word(word=word, weight=part) for word, part in words[:max_words]],
        typical=[
            TypicalWord(word=word, here=is_here)
            for word, is_here in explainer.typical(column, _STRONGEST)
        ],
        matched_name=matched_name,
        name_share=name_share,
        certainty=score.certainty,
        training_rows=int(model.label_counts[column]),
        parts=[
            MarkedPart(text=part.text, weight=part.weight)
            for part in marked(fitted.features, text, dict(words))
        ],
    )


def _label(directory: LabelDirectory, column: int) -> Label:
    tested, found = directory.tests(column) or (None, None)
    return Label(
        uri=directory.tags[column],
        label=directory.names[column],
        training_rows=int(directory.model.label_counts[column]),
        tested=tested,
        found=found,
    )


def _column(directory: LabelDirectory, label: str) -> int:
    if (known := directory.known(label)) is None:
        raise Refused(f"The model has no label {label[:80]!r}.")
    return directory.column[known]
