"""The page of the endpoints, made from their tables."""

from collections.abc import Iterable

import orjson

from byok.augment.constant_replies import CONTAINING, ENDING, ConstantReply
from byok.augment.endpoint_groups import PATHS
from byok.augment.endpoints import ENDPOINTS, Endpoint, Generate, Local, Refused
from byok.chat import Json
from byok.routing import Service
from byok.server.openai_api import ROUTES, Forward, OpenAIRoute

HEAD = """# Endpoints

Made by `scripts/generate_docs.py` from `byok/augment/endpoints.py` and `quiet.py`;
`scripts/check` fails when it is out of date. All are `POST` with a JSON body and the
bearer token. `GET /health` and `/healthz` answer `{"status":"ok"}` without a token, and
`POST /health/challenge` proves to a process of the same user that this is its daemon.

An unknown path is answered with `{}`, or with an empty stream where its name ends in
`stream`, and named once in the log; an unknown one below `/v1/` is 404.

"""
OPENAI = """## For OpenAI clients

Base URL: `http://127.0.0.1:8317/v1`; key: the token of byok. Bytes pass unchanged
but for the model's name: `byok:<upstream>:<model>`, a name that an upstream lists, or
anything else for the default model. Errors have OpenAI's shape.

| path | answer |
|---|---|
"""
GROUPS = """## Groups

What `[routing.official]` can send to the official service or switch off. What is in no
group is always byok's own.

| group | paths |
|---|---|
"""


def page() -> str:
    """Return the whole page."""
    sections = (
        ("Answered by a model", Generate),
        ("Answered by byok itself", Local),
        ("Not served", Refused),
        ("Constant answers", ConstantReply),
    )
    rows = [f"| `{row.path}` | {_openai(row)} |" for row in ROUTES]
    parts = [HEAD, OPENAI, "\n".join(rows) + "\n\n"]
    for title, kind in sections:
        rows = [f"| `{r.path}` | {_answer(r)} |" for r in ENDPOINTS if type(r) is kind]
        parts.append(f"## {title}\n\n| path | answer |\n|---|---|\n")
        parts.append("\n".join(rows) + "\n\n")
    families = [f"| `…{p}…` | {_code(b)} |" for p, b in CONTAINING]
    families += [f"| `…{s}` | {_code(b)} |" for s, b in ENDING]
    parts.append("## Families\n\n| path | answer |\n|---|---|\n")
    parts.append("\n".join(families) + "\n\n" + GROUPS)
    groups = [f"| `{group}` | {_paths(paths)} |" for group, paths in PATHS.items()]
    parts.append("\n".join(groups) + "\n")
    return "".join(parts)


def _answer(row: Endpoint) -> str:
    match row:
        case Generate(stream=stream, what=what):
            return f"NDJSON stream: {what}" if stream else what
        case Local(answer=Service.MODELS):
            return "the models of all configured upstreams, and feature flags"
        case Local(answer=service):
            return f"of its own: {service.value}"
        case Refused(status=status, reason=reason):
            return f"{status}: {reason}"
        case ConstantReply(stream=True, body=None):
            return "empty stream"
        case ConstantReply(stream=stream, body=body):
            return _code(body or {}) + (" as one line of a stream" if stream else "")


def _openai(row: OpenAIRoute) -> str:
    if isinstance(row, Forward):
        return f"the upstream's own `{row.upstream_path}`, where it has it"
    return "`GET`: the models of all configured upstreams"


def _paths(paths: Iterable[str]) -> str:
    return " ".join(f"`{path}`" for path in paths)


def _code(body: Json) -> str:
    return f"`{orjson.dumps(body).decode()}`"
