"""Remedies that ask in another dialect: what refusals say about other APIs."""

from byok.dialects.presets import OPENAI_CHAT, OPENAI_RESPONSES
from byok.dialects.refusals import class_of_words
from byok.dialects.remedies import RefusedRequest, RemedyRow

# In refusals of models that OpenAI, Azure and Copilot serve by another API only.
CHAT_REFUSED = {
    "v1/responses": OPENAI_RESPONSES,
    "responses api": OPENAI_RESPONSES,
    "responses endpoint": OPENAI_RESPONSES,
    "not accessible via the /chat/completions": OPENAI_RESPONSES,  # Copilot
    "not a chat model": OPENAI_RESPONSES,
    "chatcompletion operation does not work": OPENAI_RESPONSES,  # Azure
    "v1/messages": "anthropic",
}
RESPONSES_REFUSED = {
    "chat/completions": OPENAI_CHAT,
    "chat completions": OPENAI_CHAT,
    "not accessible via the /responses": OPENAI_CHAT,
    "not supported with the responses api": OPENAI_CHAT,
    "not supported in the responses api": OPENAI_CHAT,
    "v1/messages": "anthropic",
}
_NO_SUCH_PATH = frozenset({404, 405, 501})


def missing_path_row(dialect: str) -> RemedyRow:
    """Return the row for servers without the path: they are asked in another dialect.

    An unknown model is refused with the same status, but the message names it.
    """

    def find(refused: RefusedRequest) -> tuple[str, str] | None:
        error = refused.error
        if error.upstream_status not in _NO_SUCH_PATH:
            return None
        says_more = class_of_words(error.message) is not None
        is_switch = dialect in refused.dialects and not says_more
        return (dialect, "") if is_switch else None

    return RemedyRow(find, switches=True)
