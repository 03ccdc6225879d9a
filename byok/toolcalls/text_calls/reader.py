"""Reads tool calls out of the text of an answer, where its host left them.

Only complete calls of offered tools, with arguments that their schemas allow, become
calls; every other text passes unchanged. Text is held back only while it may be part of
such a block. In a code fence nothing is a call.
"""

from collections.abc import Iterable, Iterator, Mapping

from byok.chat import Json
from byok.events import Finish, StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from byok.stage import Stage, then_raise
from byok.toolcalls.assemble import MAX_ARGUMENT_CHARS
from byok.toolcalls.coerce import coerce, is_valid
from byok.toolcalls.text_calls.fences import CodeFence
from byok.toolcalls.text_calls.parsers import Unfinished, WrittenCall
from byok.toolcalls.text_calls.syntaxes import Markup, Syntax, head_fits
from byok.wire.json_body import write_json

_MOST_TRIES = 100  # blocks that turn out to be text; keeps the work linear
_FIRST_INDEX = 1000  # beyond those that an upstream counts itself


class TextCallReader:
    """Stage[bytes, StreamEvent] behind the reader of a dialect.

    `schemas` are those of the offered tools by their names, `names` the original names
    by those that were sent.
    """

    def __init__(
        self,
        first: Stage[bytes, StreamEvent],
        syntax: Syntax,
        schemas: Mapping[str, Json],
        names: Mapping[str, str],
    ) -> None:
        self._first = first
        self._syntax = syntax
        self._schemas = schemas
        self._names = names
        self._fence = CodeFence()
        self._held = ""  # outside of a block: what may begin one
        self._block: Markup | None = None
        self._pieces: list[str] = []  # what followed its opener
        self._size = 0
        self._tail = ""  # the end of that, in which a closer may begin
        self._tries = _MOST_TRIES
        self._has_text = False
        self._calls = 0
        self._out: list[StreamEvent] = []

    def feed(self, data: bytes, /) -> Iterable[StreamEvent]:
        """Read bytes; text that was held when they fail is given first."""
        try:
            for event in self._first.feed(data):
                self._take(event)
        except Exception as error:
            self._give_up_all()
            return then_raise(self._take_out(), error)
        return self._take_out()

    def flush(self) -> Iterator[StreamEvent]:
        """End the answer."""
        try:
            for event in self._first.flush():
                self._take(event)
        except Exception:
            self._give_up_all()
            yield from self._take_out()
            raise
        self._end_text()
        yield from self._take_out()

    def _take_out(self) -> list[StreamEvent]:
        out, self._out = self._out, []
        return out

    def _take(self, event: StreamEvent) -> None:
        if type(event) is TextDelta:
            text = event.text
            if self._block or self._held or self._syntax.is_suspect(text):
                self._read(text)
            else:
                self._pass_on(text, event)
            return
        if isinstance(event, (Finish, ToolCallDelta, ThinkingDelta)):
            self._end_text()
        self._out.append(event)

    def _read(self, text: str) -> None:
        """Read text, inside and outside of blocks, until all of it is placed."""
        rest = text
        while rest:
            block = self._block
            rest = self._inside(block, rest) if block else self._outside(rest)

    def _outside(self, text: str) -> str:
        """Pass text on up to the next block; return what follows its opener."""
        text, self._held = self._held + text, ""
        found = self._syntax.find(text) if self._tries else None
        if found is None:
            keep = self._syntax.kept_back(text) if self._tries else 0
            cut = len(text) - keep
            self._pass_on(text[:cut])
            self._held = text[cut:]
            return ""
        place, block = found
        self._pass_on(text[:place])
        rest = text[place + len(block.opener) :]
        if self._fence.is_open or (block.at_start and self._has_text):
            self._pass_on(block.opener)
            return rest
        self._block, self._pieces, self._size, self._tail = block, [], 0, ""
        return rest

    def _inside(self, block: Markup, text: str) -> str:
        """Collect a block; return what follows it, or all of it where it is text."""
        before = self._tail
        self._pieces.append(text)
        self._size += len(text)
        begins = self._size - len(text) < len(block.opener) + 16
        if begins and head_fits(block, "".join(self._pieces)) is False:
            return self._give_up(block)
        if self._size > MAX_ARGUMENT_CHARS:
            return self._give_up(block)
        if not block.closer:
            return ""
        seen = before + text
        if (place := seen.find(block.closer)) < 0:
            self._tail = seen[-len(block.closer) + 1 :]
            return ""
        return self._close(block, len(seen) - place)

    def _close(self, block: Markup, behind: int) -> str:
        """Read a block whose closer begins so many characters before the end."""
        whole = "".join(self._pieces)
        inner = whole[: len(whole) - behind]
        rest = whole[len(inner) + len(block.closer) :]
        try:
            calls = self._parse(block, inner)
        except Unfinished:
            self._tries -= 1
            if not self._tries:
                return self._give_up(block)
            # The closer stands in an argument; look for the next one.
            self._pieces, self._tail = [inner + block.closer], ""
            self._size = len(self._pieces[0])
            return rest
        if calls is None:
            return self._give_up(block)
        self._emit(calls)
        return rest

    def _parse(self, block: Markup, inner: str) -> list[ToolCallDelta] | None:
        text = f"{block.opener}{inner}{block.closer}" if block.inside else inner
        written = block.parse(text)
        calls = [self._call(call) for call in written or ()]
        whole = [call for call in calls if call]
        return whole if whole and len(whole) == len(calls) else None

    def _call(self, written: WrittenCall) -> ToolCallDelta | None:
        """Return a call of an offered tool with valid arguments; None for others."""
        name = self._names.get(written.name, written.name)
        schema = self._schemas.get(name)
        if schema is None:
            return None
        arguments = coerce(written.arguments, schema, [])
        if not is_valid(arguments, schema):
            return None
        return ToolCallDelta(None, written.id, name, write_json(arguments).decode())

    def _emit(self, calls: list[ToolCallDelta]) -> None:
        for call in calls:
            self._calls += 1
            call.index = _FIRST_INDEX + self._calls
            call.id = call.id or f"text_call_{self._calls}"
            self._out.append(call)
        self._block = None

    def _give_up(self, block: Markup) -> str:
        """Pass an opener on as text; return what followed it."""
        self._block = None
        self._tries = max(0, self._tries - 1)
        self._pass_on(block.opener)
        return "".join(self._pieces)

    def _end_text(self) -> None:
        """Place everything that is held; a block may end here."""
        while block := self._block:
            try:
                calls = self._parse_open(block, "".join(self._pieces))
            except Unfinished:
                calls = None
            if calls:
                self._emit(calls)
            else:
                self._read(self._give_up(block))
        self._pass_on(self._held)
        self._held = ""

    def _parse_open(self, block: Markup, inner: str) -> list[ToolCallDelta] | None:
        """Parse a block without its closer: many models leave it out at the end."""
        if block.closer and block.inside:
            return None
        return self._parse(block, inner)

    def _give_up_all(self) -> None:
        """Pass everything on as text: the answer broke off."""
        self._tries = 0
        if block := self._block:
            self._read(self._give_up(block))
        self._pass_on(self._held)
        self._held = ""

    def _pass_on(self, text: str, event: TextDelta | None = None) -> None:
        if not text:
            return
        self._fence.note(text)
        self._has_text = self._has_text or not text.isspace()
        self._out.append(event or TextDelta(text))
