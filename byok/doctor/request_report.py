"""The parts of a report about one captured request."""

from collections.abc import Mapping
from typing import Any

import orjson

from byok.chat import Json
from byok.doctor.surroundings import Surroundings
from byok.features.capture.capture import Capture, encode_capture
from byok.features.capture.placeholders import hide_content
from byok.routing import Service

_README = """A report of byok {version} about one request ({id}).

{content}
Keys, tokens, cookies, values of queries and long base64 were removed when the request
was captured. LOOK THROUGH ALL FILES BEFORE YOU SHARE THEM: a secret of no known shape
may stand in any text.

README.txt      this text
capture.jsonl   the request: its facts, then what passed on each hop, one line a piece
model.json      what byok knows of the model, and from where ({{}} without a daemon)
doctor.json     the results of byok doctor
settings.json   the settings, without secrets and prompts
versions.json   versions of byok, Python, the system and packages
log.txt         the end of the log, without what it quotes
"""
_HIDDEN = "Each letter of what you, your code and the model said is an x.\n"
_SHOWN = "IT HOLDS WHAT YOU, YOUR CODE AND THE MODEL SAID (--with-content).\n"


async def write_parts(
    capture: Capture, around: Surroundings, *, with_content: bool
) -> Mapping[str, str | bytes]:
    """Return files for the archive by their names."""
    facts = capture.facts
    shown = capture if with_content else hide_content(capture)
    readme = _README.format(
        version=facts.get("byok", "?"),
        id=capture.id,
        content=_SHOWN if with_content else _HIDDEN,
    )
    catalog = await around.ask_if_running(Service.CATALOG)
    model = _find_model(catalog or {}, str(facts["upstream"]), str(facts["model"]))
    return {
        "README.txt": readme,
        "capture.jsonl": encode_capture(shown),
        "model.json": orjson.dumps(model, option=orjson.OPT_INDENT_2),
    }


def _find_model(catalog: Json, upstream: str, model: str) -> dict[str, Any]:
    """Return the row of a model in the daemon's catalog, {} if it has none."""
    ending = f"{upstream}:{model}"
    for value in catalog.values():
        for row in value if isinstance(value, list) else ():
            if isinstance(row, dict) and str(row.get("id", "")).endswith(ending):
                return row
    return {}
