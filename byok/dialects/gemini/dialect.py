"""The dialect of Gemini's generateContent API, as Google AI and Vertex AI serve it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from byok.core.chat import Json
from byok.core.wire.json_fields import read_objects, read_text
from byok.dialects.base import Dialect, ModelPage, make_headers
from byok.dialects.gemini.answer import GeminiAnswer
from byok.dialects.gemini.remedies import REMEDIES
from byok.dialects.gemini.request import encode_request, spell_tool
from byok.dialects.model_facts import ModelFacts, read_positive
from byok.dialects.presets import GEMINI
from byok.dialects.remedies import RemedyTable
from byok.dialects.safe_names import IdRule

MODELS_PATH = "models?pageSize=1000"
_FOLDER = "models/"
_GENERATES = "generateContent"
_OAUTH_PREFIX = "ya29."  # of access tokens of Google Cloud


def read_models(body: Any) -> ModelPage:
    """Decode a page of `GET models`; models that generate no text are left out."""
    rows = [
        (read_text(row, "name").removeprefix(_FOLDER), row)
        for row in read_objects(body, "models")
        if not isinstance(methods := row.get("supportedGenerationMethods"), list)
        or _GENERATES in methods
    ]
    models = tuple(_facts(name, row) for name, row in rows if name)
    token = read_text(body, "nextPageToken")
    path = f"{MODELS_PATH}&pageToken={quote(token, safe='')}" if token else ""
    return ModelPage(models, path)


def _facts(name: str, row: Json) -> ModelFacts:
    """Return the facts in a row; a missing field means unknown."""
    return ModelFacts(
        name,
        window=read_positive(row.get("inputTokenLimit")),
        max_output=read_positive(row.get("outputTokenLimit")),
        thinking=True if row.get("thinking") is True else None,
    )


@dataclass(frozen=True)
class Gemini(Dialect):
    """Dialect: models/MODEL:streamGenerateContent."""

    name: ClassVar[str] = GEMINI
    answer = GeminiAnswer
    models_path: ClassVar[str] = MODELS_PATH
    tool_ids: ClassVar[IdRule] = IdRule(is_unique=True)
    remedies: ClassVar[RemedyTable] = REMEDIES
    settings: ClassVar[Collection[str]] = ("generationConfig", "toolConfig")
    # Source: Gemini API, Image understanding.
    needs: ClassVar[tuple[str, ...]] = (
        "most tools:512",
        "kinds of pictures:image/png image/jpeg image/webp image/heic image/heif",
    )
    encode = staticmethod(encode_request)
    spell_tool = staticmethod(spell_tool)
    read_models = staticmethod(read_models)

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; an access token of Google Cloud is a bearer token."""
        is_token = key.startswith(_OAUTH_PREFIX)
        return make_headers(key, "Authorization" if is_token else "x-goog-api-key")
