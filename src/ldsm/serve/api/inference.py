"""The Open Inference Protocol, version 2, as used by KServe, Triton and others."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..._version import __version__
from ..http.answers import JSON, json_of, wrong_value
from ..http.bodies import Items, route_that_reads_in
from ..service import Kind, Refused, Service
from .annif import MAX_TAIL

Model = Annotated[str, Path(description="The name of a model.")]
TEXT, LABELS, SCORES = "text", "labels", "scores"


class Server(BaseModel):
    """The service."""

    name: str = "ldsm"
    version: str = __version__
    extensions: list[str] = []


class Live(BaseModel):
    """Whether the service is running."""

    live: bool = True


class Ready(BaseModel):
    """Whether the service or a model is ready."""

    ready: bool = True


class ModelReady(Ready):
    """Whether a model is ready."""

    name: str


class TensorFacts(BaseModel):
    """An input or an output of a model."""

    name: str
    datatype: str
    shape: list[int]


class ModelFacts(BaseModel):
    """The inputs and outputs of a model."""

    name: str
    versions: list[str]
    platform: str = "ldsm_text_tagger"
    inputs: list[TensorFacts] = [TensorFacts(name=TEXT, datatype="BYTES", shape=[-1])]
    outputs: list[TensorFacts] = [
        TensorFacts(name=LABELS, datatype="BYTES", shape=[-1, -1]),
        TensorFacts(name=SCORES, datatype="FP32", shape=[-1, -1]),
    ]


class Parameters(BaseModel):
    """Parameters of a request; unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore")

    k: int = Field(5, ge=1, description="Number of tags per text.")
    min_score: float = Field(0.0, ge=0, le=1, description="Minimum score of a tag.")
    tail: float = Field(0.0, ge=0, le=MAX_TAIL, description="Favours rare tags if above 0.")
    only: Items[str] | None = Field(None, description="Predict only these tags or groups.")
    without: Items[str] | None = Field(None, description="Never predict these tags or groups.")


class Tensor(BaseModel):
    """Values of one type, in row-major order."""

    name: str = Field(examples=[TEXT])
    datatype: str = Field(examples=["BYTES"])
    shape: Items[int] = Field(examples=[[1]])
    data: list[Any] = Field(description="May be nested.", examples=[["a quota for cod"]])


class WantedOutput(BaseModel):
    """A requested output."""

    name: str


class InferenceRequest(BaseModel):
    """Texts to tag."""

    id: str | None = Field(default=None, examples=["7"])
    parameters: dict[str, Any] = Field(default={}, examples=[{"k": 3}])
    inputs: Items[Tensor]
    outputs: Items[WantedOutput] | None = Field(default=None, examples=[None])


class InferenceAnswer(BaseModel):
    """The labels and scores of each text, padded with "" and 0."""

    model_config = ConfigDict(protected_namespaces=())

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[Tensor]


def router(service: Service) -> APIRouter:
    """The endpoints under ``/v2``."""
    reading = route_that_reads_in(service.readers, service.settings.max_batch)
    routes = APIRouter(prefix="/v2", tags=["Open Inference Protocol"], route_class=reading)

    @routes.get("")
    async def show_server() -> Server:
        """The service."""
        return Server()

    @routes.get("/health/live")
    async def is_live() -> Live:
        """Whether the service is running."""
        return Live()

    @routes.get("/health/ready")
    async def is_ready() -> Ready:
        """Whether the service is ready; models are loaded before it accepts requests."""
        return Ready()

    @routes.get("/models/{model}")
    async def show_inference_model(model: Model) -> ModelFacts:
        """The inputs and outputs of a model."""
        return ModelFacts(name=model, versions=[(await service.model(model)).version])

    @routes.get("/models/{model}/ready")
    async def is_model_ready(model: Model) -> ModelReady:
        """Whether a model is ready."""
        return ModelReady(name=service.models[model].name)

    @routes.post("/models/{model}/infer", response_model=InferenceAnswer)
    async def infer(model: Model, body: InferenceRequest) -> JSON:
        """The best tags of texts."""
        texts, asked = _texts(body), _parameters(body)
        opened = await service.model(model)
        kind = Kind(opened, asked.k, asked.tail).restricted(asked.only, asked.without)
        answers = await service.answer(kind, texts, asked.min_score)
        width = max(map(len, answers), default=0)
        shape = [len(texts), width]
        rows = [row + [("", 0.0)] * (width - len(row)) for row in answers]
        outputs = {
            LABELS: ("BYTES", [tag for row in rows for tag, _ in row]),
            SCORES: ("FP32", [score for row in rows for _, score in row]),
        }
        wanted = [one.name for one in body.outputs or ()] or [*outputs]
        for name in wanted:
            if name not in outputs or wanted.count(name) > 1:
                raise Refused(
                    f"The outputs must be {LABELS} and {SCORES}, each at most once. "
                    f"Got {name[:40]!r}."
                )
        answer = {
            "model_name": model,
            "model_version": opened.version,
            "outputs": [
                {
                    "name": name,
                    "datatype": outputs[name][0],
                    "shape": shape,
                    "data": outputs[name][1],
                }
                for name in wanted
            ],
        }
        return JSON(json_of(answer if body.id is None else {"id": body.id, **answer}))

    return routes


def _texts(body: InferenceRequest) -> list[str]:
    if [tensor.name for tensor in body.inputs] != [TEXT]:
        names = ", ".join(repr(tensor.name[:40]) for tensor in body.inputs) or "none"
        raise Refused(f"There must be one input, {TEXT!r}. Got {names}.")
    tensor = body.inputs[0]
    data = _flat(tensor.data)
    other = next((i for i, text in enumerate(data) if not isinstance(text, str)), None)
    if tensor.datatype != "BYTES" or other is not None:
        where = "" if other is None else f" data[{other}] is not a string."
        raise Refused(f"The input {TEXT!r} must hold strings, of the datatype BYTES.{where}")
    if tensor.shape not in ([len(data)], [len(data), 1]):
        raise Refused(
            f"The shape of {TEXT!r} must be [{len(data)}], the number of texts. "
            f"Got {str(tensor.shape)[:80]}."
        )
    return data


def _flat(data: list[Any]) -> list[Any]:
    """Values that may be nested, such as texts in one column."""
    return [one for item in data for one in (item if isinstance(item, list) else [item])]


def _parameters(body: InferenceRequest) -> Parameters:
    try:
        return Parameters(**body.parameters)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Refused(f"The parameter {place!r} is invalid: {wrong_value(first)}") from None
