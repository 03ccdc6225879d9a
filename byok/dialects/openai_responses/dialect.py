"""The dialect of OpenAI Responses and of compatible APIs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from byok.dialects.base import Dialect, make_headers
from byok.dialects.openai_chat.dialect import read_models
from byok.dialects.openai_responses.answer import ResponsesAnswer
from byok.dialects.openai_responses.remedies import REMEDIES
from byok.dialects.openai_responses.request import encode_request
from byok.dialects.presets import OPENAI_RESPONSES, quirks_of
from byok.dialects.remedies import RemedyTable
from byok.dialects.safe_names import IdRule


@dataclass(frozen=True)
class OpenAIResponses(Dialect):
    """Dialect: Responses as one vendor implements it.

    `auth_header` is the header for the key.
    """

    auth_header: str = "Authorization"
    needs: tuple[str, ...] = ()

    name: ClassVar[str] = OPENAI_RESPONSES
    answer = ResponsesAnswer
    tool_ids: ClassVar[IdRule] = IdRule(64, is_unique=True)
    serves: ClassVar[frozenset[str]] = frozenset({"responses"})
    remedies: ClassVar[RemedyTable] = REMEDIES
    encode = staticmethod(encode_request)
    sends_thoughts: ClassVar[bool] = True
    read_models = staticmethod(read_models)  # the list of all of OpenAI's APIs

    @classmethod
    def of(cls, vendor: str) -> "OpenAIResponses":
        """Return the dialect of a vendor, with its header and its limit of tools."""
        quirks = quirks_of(vendor)
        # The other remedies are for the vendor's Chat Completions.
        limits = (need for need in quirks.needs if need.startswith("most tools:"))
        return cls(quirks.auth_header, (*limits,))

    @property
    def second_best(self) -> frozenset[str]:
        """All paths: if another API is used, the server may not have this one."""
        return self.serves

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; the key is a bearer token or in the vendor's header."""
        return make_headers(key, self.auth_header)
