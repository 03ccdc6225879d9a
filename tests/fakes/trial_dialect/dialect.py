"""A protocol that no vendor speaks, as different from OpenAI's as the seam allows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from byok.core.errors import UpstreamRefused
from byok.core.wire.json_lines import JsonLines
from byok.dialects.base import Dialect, ErrorResponse, ModelPage, Probe
from byok.dialects.chat_changes import CHAT_ROWS
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.rate_limits import read_retry_after
from byok.dialects.remedies import RemedyTable, drop_row, lower_row
from byok.dialects.safe_names import IdRule

from .answer import TrialAnswer
from .request import encode_request

_REMEDIES: RemedyTable = {
    **CHAT_ROWS,
    "lower": lower_row(["options.most_words"]),
    "drop": drop_row(["options.temperature", "options.window"]),
}


@dataclass(frozen=True)
class TrialDialect(Dialect):
    """Lines of JSON, its own headers and list of models, nested parameters."""

    name: ClassVar[str] = "trial"
    framing = JsonLines
    answer = TrialAnswer
    models_path: ClassVar[str] = "catalog"
    remedies: ClassVar[RemedyTable] = _REMEDIES
    tool_ids: ClassVar[IdRule] = IdRule(16, is_plain=True)
    encode = staticmethod(encode_request)

    def headers(self, key: str) -> Mapping[str, str]:
        """Give the version of the protocol, which is required, and the key."""
        own = {"Accept": "application/x-ndjson", "X-Trial-Version": "2"}
        return own | {"X-Trial-Key": key} if key else own

    def refusal(self, response: ErrorResponse) -> UpstreamRefused:
        """Read `{"problem": text}`; a header has the wait in tenths of a second."""
        body = response.body
        problem = body.get("problem", "") if isinstance(body, dict) else body
        wait = response.headers.get("x-trial-wait", "")
        usual = read_retry_after(response.headers, response.received)
        retry_after = int(wait) / 10 if wait.isdecimal() else usual
        return refusal_of({"message": problem}, response.status, retry_after)

    def read_models(self, body: Any) -> ModelPage:
        """Read a page of the list, which names the next one."""
        body = body if isinstance(body, dict) else {}
        return ModelPage(
            tuple(
                ModelFacts(called, window=window, images=entry.get("sees"))
                for entry in body.get("entries", ())
                if isinstance(called := entry.get("called"), str)
                and isinstance(window := entry.get("window"), int)
            ),
            body.get("next") or "",
        )

    def probes(self, model: str) -> tuple[Probe, ...]:
        """Ask how a model is loaded."""
        return (Probe("loaded", {"called": model}),)

    def read_probe(self, body: Any, model: str) -> ModelFacts:
        """Read the window of a loaded model."""
        window = body.get("window") if isinstance(body, dict) else 0
        return ModelFacts(model, window=window or 0)
