"""``/docs``: the API reference, a page without scripts or external resources."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from ...report.html import Markup, element, joined, table

STYLE = """
:root { --ink: #1b1e23; --soft: #5c636e; --line: #d9dce1; --page: #fff; --wash: #f5f6f8;
  --accent: #0b5cad; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --soft: #a0a7b2; --line: #3a3f47;
  --page: #16181c; --wash: #1f2227; --accent: #7ab7ff; } }
body { margin: 0 auto; padding: 2rem 1.2rem 4rem; max-width: 56rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
a { color: var(--accent); } h1 { margin: 0; } h2 { margin: 2.5rem 0 0; }
h3 { margin: 2rem 0 .2rem; font-size: 1.05rem; overflow-wrap: anywhere; }
h3 b { color: var(--accent); font-size: .85em; letter-spacing: .04em; margin-right: .5em; }
h4 { margin: .9rem 0 .2rem; font-size: .9rem; color: var(--soft); }
code, pre { font: .86rem/1.45 ui-monospace, monospace; }
pre { background: var(--wash); padding: .7rem .9rem; overflow-x: auto; border-radius: .4rem; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: break-word; }
th { color: var(--soft); }
@media (max-width: 34rem) { body { padding: 1.2rem .8rem; } table { font-size: .8rem; }
  tr { display: block; border-bottom: 1px solid var(--line); padding: .3rem 0; }
  thead { display: none; } td { display: inline; border: 0; } td:last-child { display: block; } }
"""
_HEADS = ("name", "where", "type", "default", "meaning")
# Maximum depth of a schema example.
_MAX_DEPTH = 4


def reference_page(schema: dict[str, Any], address: str, model: str, nonce: str) -> str:
    """The reference of all endpoints of an OpenAPI schema, with examples for one model."""
    by_group: dict[str, list[Markup]] = {}
    for path, methods in schema["paths"].items():
        for method, facts in methods.items():
            group = by_group.setdefault(facts["tags"][0], [])
            url = address.rstrip("/") + path.replace("{project}", model).replace("{model}", model)
            group.append(joined(_endpoint(schema, path, url, method, facts)))
    intro = element(
        "p",
        "Machine-readable version: ",
        element("a", "openapi.json", href="openapi.json"),
        ". If the service needs a key, send it in the header ",
        element("code", "X-API-Key"),
        ". Errors are JSON objects with the message in title (in the Open Inference Protocol: "
        "error). With 429 and 503, the header Retry-After gives the seconds to wait. The examples "
        "assume a model with the tag fish.",
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "ldsm: API reference"),
        element("style", Markup(STYLE), nonce=nonce),
    )
    back = element("a", "Back to the page", href="./")
    body = [element("h1", "API reference"), element("p", back), intro]
    for name, endpoints in by_group.items():
        body += [element("h2", name), *endpoints]
    content = element("body", element("main", joined(body, "\n")))
    return f"<!DOCTYPE html>\n{element('html', head, content, lang='en')}\n"


def _endpoint(
    schema: dict[str, Any], path: str, url: str, method: str, facts: dict[str, Any]
) -> Iterator[Markup]:
    yield element("h3", element("b", method.upper()), element("code", path))
    for paragraph in facts.get("description", "").replace("`", "").split("\n\n"):
        yield element("p", paragraph)
    body = _content(facts.get("requestBody", {}))
    rows = [_parameter(one) for one in facts.get("parameters", [])]
    kind = next(iter(facts.get("requestBody", {}).get("content", {})), "")
    if kind == "application/x-www-form-urlencoded":
        form = _resolved(schema, body)
        required = form.get("required", [])
        for name, field in form["properties"].items():
            entry = {"name": name, "in": "form", "schema": field, "required": name in required}
            rows.append(_parameter(entry | {"description": field.get("description", "")}))
    if rows:
        yield element("h4", "Parameters")
        yield table(_HEADS, rows, _HEADS)
    if kind == "application/json":
        yield element("h4", "Body")
        yield _json(_example(schema, body))
    yield element("h4", "Example")
    yield _code(_curl(schema, url, facts, kind, body))
    for status, answer in facts["responses"].items():
        if status.startswith("2") and (shape := _content(answer)):
            yield element("h4", f"Answer, {status}")
            yield _json(_example(schema, shape))


def _parameter(facts: dict[str, Any]) -> list[str]:
    schema = facts["schema"]
    default = "required" if facts.get("required") else str(schema.get("default", ""))
    kind = " or ".join(map(str, schema.get("enum", []))) or str(schema.get("type", "string"))
    return [facts["name"], facts["in"], kind, default, facts.get("description", "")]


def _curl(schema: dict[str, Any], url: str, facts: dict[str, Any], kind: str, body: Any) -> str:
    needed = [
        p["name"] for p in facts.get("parameters", []) if p["in"] == "query" and p["required"]
    ]
    url += "?" + "&".join(f"{name}=fish" for name in needed) if needed else ""
    words = ["curl", url]
    if kind == "application/json":
        words += ["--json", json.dumps(_example(schema, body))]
    elif kind:
        fields = {"text": "a quota for cod", "label": "fish"}
        for name in sorted(_resolved(schema, body)["properties"].keys() & fields.keys()):
            words += ["-d", f"{name}={fields[name]}"]
    return shlex.join(words)


def _content(holder: dict[str, Any]) -> dict[str, Any]:
    """The schema of a body or an answer, if any."""
    content: dict[str, Any] = next(iter(holder.get("content", {}).values()), {})
    shape: dict[str, Any] = content.get("schema", {})
    return shape


def _resolved(schema: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in shape:
        name = shape["$ref"].rsplit("/", 1)[1]
        found: dict[str, Any] = schema["components"]["schemas"][name]
        return found
    return shape


def _example(schema: dict[str, Any], shape: dict[str, Any], depth: int = 0) -> Any:
    """An example value of a schema."""
    shape = _resolved(schema, shape)
    if "examples" in shape:
        return shape["examples"][0]
    if "default" in shape and shape["default"] not in ({}, []):
        return shape["default"]
    if "anyOf" in shape:
        return _example(schema, shape["anyOf"][0], depth)
    kind = shape.get("type")
    if kind == "object" and "properties" in shape and depth < _MAX_DEPTH:
        return {k: _example(schema, v, depth + 1) for k, v in shape["properties"].items()}
    if kind == "array":
        return [_example(schema, shape.get("items", {}), depth + 1)]
    plain: dict[Any, Any] = {"integer": 1, "number": 0.5, "boolean": True, "object": {}}
    return plain.get(kind, shape.get("title", "string").lower())


def _json(value: Any) -> Markup:
    return _code(json.dumps(value, indent=2, ensure_ascii=False))


def _code(text: str) -> Markup:
    return element("pre", element("code", text), tabindex="0")  # scrollable with the keyboard
