"""The attempts at one request: repeated as long as nothing of an answer was shown."""

from byok.chat import ChatRequest
from byok.dialects.base import UpstreamRequest
from byok.errors import (
    ContextLengthExceeded,
    RefusalKind,
    UpstreamEmpty,
    UpstreamError,
    UpstreamRefused,
)
from byok.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    ThinkingDelta,
    Usage,
    begins_answer,
    is_thinking,
)
from byok.record import current_record
from byok.stage import Stage
from byok.toolcalls.printed.reader import PrintedCallReader
from byok.upstream.http_call import RequestKey
from byok.upstream.prompt_changes import PromptChanges
from byok.upstream.reasons import another_key_notice, restart_notice
from byok.upstream.remedies import RequestRemedies
from byok.upstream.retry import Patience, rest_of_key

_FORGOTTEN = ChatRequest(())


class Attempts:
    """One request to a model: what is sent next, and what was held back so far.

    `sent` and `content` are the request and its body, `key` is the one to use. `begun`:
    more than thoughts of the answer was handed on, so there is no further attempt.
    `may_be_empty` accepts an answer without a word; after tool results every answer may
    be one. Of an answer that must be whole nothing is handed on before its end.
    """

    def __init__(
        self,
        name: str,
        chat: ChatRequest,
        remedies: RequestRemedies,
        key: RequestKey,
        patience: Patience,
        prompts: PromptChanges,
        *,
        may_be_empty: bool = False,
    ) -> None:
        self._name = name
        self._chat = chat
        self._patience = patience
        self._prompts = prompts
        self._may_be_empty = may_be_empty or not chat.is_question
        self._is_whole = chat.whole
        self._held: list[StreamEvent] = []
        self._told: list[Notice] = []  # with the answer
        self.key = key
        self.remedies = remedies
        self.sent: UpstreamRequest
        self.content: bytes
        self._write()
        self._is_accepted = False  # events of this attempt were handed on
        self._ends_thought = False  # one that is held back
        self.has_thought = False  # thoughts were handed on
        self.begun = False

    def reader(self) -> Stage[bytes, StreamEvent]:
        """Return a new reader of the answer, also for tool calls in its text."""
        sent, chat = self.sent, self._chat
        first = self.remedies.codec.reader(sent)
        if self.remedies.facts.printed_calls is False or not chat.tools:
            return first
        schemas = {tool.name: tool.parameters for tool in chat.tools}
        return PrintedCallReader(first, schemas, sent.tool_names)

    def take(self, batch: list[StreamEvent]) -> list[StreamEvent]:
        """Take the events of a network read; return what is handed on, at first [].

        Raises:
            UpstreamEmpty: the answer ends without a word, and may not.
            ContextLengthExceeded: it does because the context window is full.
            UpstreamRefused: the model refuses to answer, and others can be asked.
        """
        if self.has_thought and len(batch) == 1 and not self._held:
            event = batch[0]
            if type(event) is ThinkingDelta and event.provider_data is None:
                return batch
        self._held += batch
        if not begins_answer(batch):
            return []
        if self._is_whole:
            current_record().note_first_byte()
            if not isinstance(batch[-1], Finish):
                return []
            batch = self._held
        if is_thinking(batch):
            self._ends_thought = self._ends_thought or any(map(_has_data, batch))
            if self._ends_thought:
                return []
            self.has_thought = True
            return self._accept()
        if isinstance(end := batch[-1], Finish) and is_thinking(batch[:-1]):
            self._check_blank(end)
        self.begun = True
        self._note_prompt()
        self._chat, self.content = _FORGOTTEN, b""  # they may be large
        self.remedies.remember()
        return self._accept()

    def _check_blank(self, end: Finish) -> None:
        """Check whether an answer may end without a word; say why, if it refuses.

        Raises:
            UpstreamError: see `take`.
        """
        if end.fills_window:
            self._keep_usage()
            raise ContextLengthExceeded(
                "the conversation leaves it no room for an answer."
            )
        match end.reason:
            case FinishReason.STOP if not self._may_be_empty:
                raise UpstreamEmpty("its answer was empty.", retryable=True)
            case FinishReason.CONTENT_FILTER:
                refused = UpstreamRefused(
                    "it refused to answer.",
                    kind=RefusalKind.CONTENT_FILTER,
                    hint="Say it differently, or choose another model.",
                    upstream=self._name,
                )
                if self._chat.has_others:
                    self._keep_usage()
                    raise refused
                self._held.insert(0, Notice(refused.sentence))
            case _:
                pass

    def _accept(self) -> list[StreamEvent]:
        """Return what was held back, with the notices of this attempt before it."""
        if self._is_accepted:
            return self.take_held()
        self._is_accepted = True
        notices = map(Notice, self.sent.notices)
        return [*self._told, *notices, *self.take_held()]

    def take_held(self) -> list[StreamEvent]:
        """Return what was held back, once."""
        held, self._held = self._held, []
        return held

    def recover(self, error: UpstreamError) -> float | None:
        """Prepare the next attempt; return the seconds to wait, None to give up.

        Of an answer that is repeated, only its tokens count.
        """
        if self.begun:
            return None
        seconds = self._plan(error)
        if seconds is not None:
            if self.has_thought:
                self._held.append(restart_notice(self._name, error))
            self._is_accepted = self._ends_thought = self.has_thought = False
        elif self._is_whole:
            self._keep_usage()
        return seconds

    def explain(self, error: UpstreamError) -> UpstreamError:
        """Return the error with which the last attempt failed, for the user."""
        return error if self.begun else self._patience.explain(error)

    def _plan(self, error: UpstreamError) -> float | None:
        if found := self.remedies.find(error, self._chat, self.sent):
            self.remedies = found
            self._keep_usage()
            self._write()
            return 0.0
        rest = rest_of_key(error)
        if rest is not None and self.key.replace(rest):
            self._told = [another_key_notice(self._name, error)]
            self._keep_usage()
            return 0.0
        seconds = self._patience.plan_wait(error)
        if seconds is not None:
            self._may_be_empty = True  # the second empty answer is passed on
            notice = self._patience.write_notice(self._name, error, seconds)
            self._keep_usage(notice)
        return seconds

    def _note_prompt(self) -> None:
        """Note where the prompt differs from the last one of its conversation."""
        if conversation := self._chat.conversation:
            key = (conversation, self.sent.origin)
            current_record().prompt_change = self._prompts.note(key, self.content)

    def _write(self) -> None:
        written = self.remedies.write(self._chat)
        self.sent, self.content = written.head, written.content

    def _keep_usage(self, notice: Notice | None = None) -> None:
        usage = [event for event in self._held if isinstance(event, Usage)]
        self._held = [*usage, notice] if notice else [*usage]


def _has_data(event: StreamEvent) -> bool:
    return isinstance(event, ThinkingDelta) and event.provider_data is not None
