"""The dialect of Anthropic's Messages API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from byok.core.wire.json_fields import read_object, read_objects, read_text
from byok.dialects.anthropic.answer import AnthropicAnswer
from byok.dialects.anthropic.remedies import REMEDIES
from byok.dialects.anthropic.request import encode_request
from byok.dialects.base import Dialect, ModelPage, make_headers
from byok.dialects.model_facts import EFFORTS, ModelFacts, read_flag
from byok.dialects.presets import ANTHROPIC
from byok.dialects.remedies import RemedyTable
from byok.dialects.safe_names import IdRule

FIRST_PAGE = "models?limit=1000"
_PLAUSIBLE_TOKENS = range(512, 2**31)
_VERSION = "2023-06-01"


def read_models(body: Any) -> ModelPage:
    """Decode `{"data": [{"id", ...}], "has_more", "last_id"}`; see "List Models"."""
    rows = read_objects(body, "data")
    models = tuple(_facts(row) for row in rows if read_text(row, "id"))
    last = read_text(body, "last_id")
    if last and body.get("has_more") is True:
        return ModelPage(models, f"{FIRST_PAGE}&after_id={quote(last, safe='')}")
    return ModelPage(models)


def _facts(row: dict[str, Any]) -> ModelFacts:
    capabilities = read_object(row, "capabilities")
    thinking = read_object(capabilities, "thinking")
    effort = read_object(capabilities, "effort")
    return ModelFacts(
        row["id"],
        window=_tokens(row.get("max_input_tokens")),
        max_output=_tokens(row.get("max_tokens")),
        images=_supports(capabilities, "image_input"),
        thinking=_supports(capabilities, "thinking"),
        efforts=tuple(name for name in EFFORTS if _supports(effort, name)),
        adaptive_thinking=_supports(read_object(thinking, "types"), "adaptive"),
    )


def _supports(node: dict[str, Any], name: str) -> bool | None:
    """Read `{"supported": true}`; None if the API does not tell."""
    return read_flag(read_object(node, name).get("supported"))


def _tokens(value: Any) -> int:
    return value if type(value) is int and value in _PLAUSIBLE_TOKENS else 0


@dataclass(frozen=True)
class AnthropicMessages(Dialect):
    """Dialect: the Messages API, which is the same for all vendors."""

    name: ClassVar[str] = ANTHROPIC
    answer = AnthropicAnswer
    sends_thoughts: ClassVar[bool] = True  # all of it, with its signatures
    serves: ClassVar[frozenset[str]] = frozenset({"messages", "messages/count_tokens"})
    models_path: ClassVar[str] = FIRST_PAGE
    tool_ids: ClassVar[IdRule] = IdRule(64, is_plain=True, is_unique=True)
    remedies: ClassVar[RemedyTable] = REMEDIES
    needs: ClassVar[tuple[str, ...]] = (
        "kinds of pictures:image/jpeg image/png image/gif image/webp",
    )
    encode = staticmethod(encode_request)
    read_models = staticmethod(read_models)

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; the version is needed with and without a key."""
        return {"anthropic-version": _VERSION, **make_headers(key, "x-api-key")}
