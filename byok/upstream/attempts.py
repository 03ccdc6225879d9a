"""The attempts at one request: repeated as long as nothing of an answer was shown."""

import random

from byok.chat import ChatRequest
from byok.dialects.base import UpstreamRequest
from byok.errors import UpstreamEmpty, UpstreamError
from byok.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    Usage,
    begins_answer,
    shows_answer,
)
from byok.record import current_record
from byok.stage import Stage
from byok.toolcalls.text_calls.reader import TextCallReader
from byok.toolcalls.text_calls.syntaxes import SYNTAXES
from byok.upstream.http_call import RequestKey
from byok.upstream.prompt_changes import PromptChanges
from byok.upstream.reasons import another_key_notice, waiting_notice
from byok.upstream.remedies import RequestRemedies
from byok.upstream.retry import RetryPolicy, rest_of_key

_FORGOTTEN = ChatRequest(())


class Attempts:
    """One request to a model: what is sent next, and what was held back so far.

    `sent` and `content` are the request and its body, `key` is the one to use. `begun`:
    a part of the answer was handed on, so there is no further attempt. `may_be_empty`
    accepts an answer without a word; after tool results every answer may be one.
    """

    def __init__(
        self,
        name: str,
        chat: ChatRequest,
        remedies: RequestRemedies,
        key: RequestKey,
        retry: RetryPolicy,
        prompts: PromptChanges,
        *,
        may_be_empty: bool = False,
    ) -> None:
        self._name = name
        self._chat = chat
        self._retry = retry
        self._prompts = prompts
        self._may_be_empty = may_be_empty or not chat.is_question
        self._number = 1
        self._held: list[StreamEvent] = []
        self._told: list[Notice] = []  # with the answer
        self.key = key
        self.remedies = remedies
        self.sent: UpstreamRequest
        self.content: bytes
        self._write()
        self.begun = False

    def reader(self) -> Stage[bytes, StreamEvent]:
        """Return a new reader of the answer, also for tool calls in its text."""
        sent, chat = self.sent, self._chat
        first = self.remedies.codec.reader(sent)
        syntax = SYNTAXES.get(self.remedies.facts.tool_syntax)
        if syntax is None or not chat.tools:
            return first
        schemas = {tool.name: tool.parameters for tool in chat.tools}
        return TextCallReader(first, syntax, schemas, sent.tool_names)

    def take(self, batch: list[StreamEvent]) -> list[StreamEvent]:
        """Take the events of a network read; return what is handed on, at first [].

        Raises:
            UpstreamEmpty: the answer ends without a word, and may not.
        """
        self._held += batch
        if not begins_answer(batch):
            return []
        is_blank = not shows_answer(batch) and batch[-1] == Finish(FinishReason.STOP)
        if is_blank and not self._may_be_empty:
            raise UpstreamEmpty("its answer was empty.", retryable=True)
        self.begun = True
        self._note_prompt()
        self._chat, self.content = _FORGOTTEN, b""  # they may be large
        self.remedies.remember()
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
        seconds = self._retry.wait(error, self._number, random.random())  # noqa: S311
        if seconds is not None:
            self._number += 1
            self._may_be_empty = True  # the second empty answer is passed on
            self._keep_usage(waiting_notice(self._name, error, seconds))
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
