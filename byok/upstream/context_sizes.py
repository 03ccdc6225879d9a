"""How large a window a local server loads each model with.

Ollama loads a model with the window that a request asks for, and loads it again, which
takes seconds to minutes, when the next request asks for another one. So windows are of
few sizes, and a model's grows but never shrinks.

A large window takes memory for the keys and values of its tokens, beside the model. How
much memory the server has cannot be asked. So byok asks for at most 8 GiB of it by
itself: 64k tokens for most models of 8 to 30 billion parameters. If the server says
that this is too much, half of it is asked for.
"""

import logging

from byok.bounded import BoundedMap
from byok.chat import ChatRequest
from byok.dialects.model_facts import ModelFacts
from byok.errors import ContextLengthExceeded, RefusalKind, UpstreamRefused
from byok.window.estimate import weigh, weigh_tools

_log = logging.getLogger(__name__)
_MEMORY = 8 * 2**30  # bytes for the window
_LEAST_MOST = 16_384  # tokens that are used in spite of that
_MOST_UNKNOWN = 65_536  # where nothing is known of a model
_AGENT, _CHAT = 32_768, 8_192  # the first sizes; agents read files
_BYTES_A_TOKEN = 3.0  # fewer than most texts have
_ANSWER = 4_096  # tokens for an answer of unknown length
_NO_LESS = 4_096  # the server's own default
_MAX_MODELS = 1000


class ContextSizes:
    """The sizes in use, by model; `configured` is the user's for all, 0 for none."""

    def __init__(self, configured: int = 0) -> None:
        self._configured = configured
        self._chosen = BoundedMap[str, int](_MAX_MODELS)
        self._most = BoundedMap[str, int](_MAX_MODELS)  # what fitted into memory

    def limit(self, facts: ModelFacts) -> int:
        """Return the largest size for a model in tokens, 0 if its window is unknown."""
        if self._configured:
            return min(self._configured, facts.window or self._configured)
        if not facts.window:
            return 0
        most = facts.window
        if facts.token_memory:
            most = min(most, max(_MEMORY // facts.token_memory, _LEAST_MOST))
        most = max(most, min(facts.loaded_window, facts.window))
        return min(most, self._most.get(facts.id) or most)

    def choose(self, chat: ChatRequest, facts: ModelFacts) -> int:
        """Return the size for a request, 0 for the server's own.

        That is used where the server knows the length of a model but not its memory:
        such models run elsewhere, and with their whole length.
        """
        if self._configured:
            return self.limit(facts)
        model = facts.id
        chosen = now = self._chosen.get(model) or 0
        if facts.window and not facts.token_memory and not now:
            return 0
        most = self.limit(facts) or self._most.get(model) or _MOST_UNKNOWN
        now = max(now, min(facts.loaded_window, most))
        need = max(_estimate(chat), _AGENT if chat.tools else 0)
        if now < need or not now:
            now = min(_round_up(max(need, _CHAT)), most)
        if now > chosen:
            self._keep(model, now)
        return max(now, chosen)

    def follow(self, facts: ModelFacts, sent: int, error: UpstreamRefused) -> bool:
        """Choose another size after a refusal of `sent`; False if there is none.

        An overflow that names no window gets the size that was sent.
        """
        if self._configured and isinstance(error, ContextLengthExceeded):
            error.window = error.window or sent
        if self._configured:
            return False
        if isinstance(error, ContextLengthExceeded):
            return self._grow(facts, sent, error)
        if error.kind is RefusalKind.NO_MEMORY and sent > _NO_LESS:
            size = self._most[facts.id] = max(sent // 2, _NO_LESS)
            self._keep(facts.id, size)
            return True
        return False

    def _grow(self, facts: ModelFacts, sent: int, error: ContextLengthExceeded) -> bool:
        most = self.limit(facts) or self._most.get(facts.id) or _MOST_UNKNOWN
        if sent < most:
            need = max(2 * sent, (error.counted or 0) + _ANSWER, _AGENT)
            self._keep(facts.id, min(_round_up(need), most))
            return True
        if facts.window:
            error.window = error.window or sent
        return False

    def _keep(self, model: str, size: int) -> None:
        self._chosen[model] = size
        _log.info("%.80s is asked for with a window of %d tokens", model, size)


def _estimate(chat: ChatRequest) -> int:
    """Estimate the tokens of a prompt and its answer."""
    weight = weigh_tools(chat.tools) + sum(map(weigh, chat.messages))
    if chat.fim is not None:
        weight = len(chat.fim.prefix.encode()) + len(chat.fim.suffix.encode())
    answer = chat.sampling.max_tokens or _ANSWER
    return int(weight / _BYTES_A_TOKEN) + answer


def _round_up(tokens: int) -> int:
    """Return the next size: a power of two, so that there are few."""
    return 1 << (tokens - 1).bit_length()
