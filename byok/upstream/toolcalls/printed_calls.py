"""Reads tool calls out of an answer whose model or host printed them as text.

An answer that consists of complete calls of offered tools means these calls, and so
does the end of an answer if `Lead` allows it. Text that can still become calls is
buffered; all other text passes at once and unchanged. Calls are emitted at the end of a
complete answer, and never of one that was cut off. If an answer has neither text nor
calls, the calls at the end of its reasoning are emitted.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from byok.core.chat import Json
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from byok.core.late import compile_late
from byok.core.stage import Stage, then_raise
from byok.core.wire.json_body import write_json
from byok.upstream.toolcalls.assemble import MAX_ARGUMENT_CHARS
from byok.upstream.toolcalls.call_grammar import (
    HOLDER_WORDS,
    NotCalls,
    OfferedTools,
    PrintedCall,
    Unfinished,
    first_mark,
    read_calls,
)
from byok.upstream.toolcalls.repair import ToolNames

# Lengths are in characters.
_MAX_TAIL = 2000  # of the text that is inspected
_MAX_PENDING = 4096  # pieces that were not inspected yet
_MAX_SHORT_TEXT = 500  # that a form without a mark may follow
_LINE_START = 16  # of a line; shows whether it is a fence or a heading
_MAX_TAG = 32
_MAX_BUFFER = MAX_ARGUMENT_CHARS + 4096
_SMALL_BUFFER = 256  # up to which every piece is inspected
# The characters that are read in all, and those that each attempt counts for, so that
# the work stays linear.
_MAX_WORK, _ATTEMPT_WORK = 6 * MAX_ARGUMENT_CHARS, 2000
_MAX_PASSED = 64  # pieces, until they are reported to the lead
_FIRST_INDEX = 1000  # of printed calls; higher than those of an upstream
_WHOLE_REASONS = (FinishReason.STOP, FinishReason.TOOL_CALLS)

_FENCE = compile_late(r" {0,3}(`{3,}|~{3,})")
_SENTENCE = compile_late(r"(?:[.!?](?=\s)|[。！？])")
_ENDS = (*".!?…。！？", ".)", '."', "!*", ".*")
_OPENS_THOUGHTS = compile_late(r"<(?:[a-z]+:)?(?:think|thinking|thought)>")
_CLOSES_THOUGHTS = compile_late(r"</(?:[a-z]+:)?(?:think|thinking|thought)>\s*\Z")
_STRAY_WORD = compile_late(r"(?:\A|\n)(?:count|court|call|course)\s*\Z")  # Claude's
_INTENT = (
    r"(?:\bI(?:['’]ll| will| am going to|['’]m going to| need to| should| must| want to"
    r"| have to|['’]d like to| shall)|\blet(?:['’]s| me| us)|\bwe(?:['’]ll| will"
    r"| need to"
    r"| should)|我(?:来|先|将|会|要|需要|现在|再|去|想|得|们)*|让我(?:们)?|接下来|首先"
    r"|现在)"
)
_ADVERBS = (
    r"(?:,?\s*(?:now|first|just|quickly|also|then|next|again|go ahead and|try to"
    r"|start by"
    r"|begin by|help you|both|先|再|来|去|使用 \S+ 工具|一下|我|需要|将|会))*"
)
_ACTIONS = (
    r"\s*(?:check|look|view|read|open|search|find|list|run|rerun|use|using|call|invoke"
    r"|get"
    r"|fetch|retriev|examin|inspect|explor|see|start|begin|try|retry|query|gather"
    r"|collect"
    r"|verif|investigat|locat|scan|test|execut|review|analy[sz]|determin|comput"
    r"|calculat"
    r"|perform|take|proceed|continu|confirm|edit|updat|fix|chang|modif|delet|remov"
    r"|apply"
    r"|install|launch|help|brows|grep|dig|trac|compar|identif|load|pull|book|ping"
    r"|查|看|检|搜|读|打开|运行|调用|使用|执行|找|获取|了解|浏览|分析|确认|测试|修改"
    r"|编辑)"
)
_INTENDS = compile_late(_INTENT, re.IGNORECASE)
_ACTS = compile_late(_INTENT + _ADVERBS + _ACTIONS, re.IGNORECASE)
# The end of a sentence with a colon that introduces an example or a quotation.
_SHOWS = compile_late(
    r"\b(?:with|for|to|from|in|on|as|by|of|into|against|is|are|was|than|like|that|this"
    r"|these|calls?|texts?|outputs?|inputs?|lines?|forms?|layouts?|answers?|responses?"
    r"|results?|messages?|strings?|JSON|XML|contents?|logs?|transcripts?|cases?"
    r"|snippets?"
    r"|requests?|tags?|prompts?|words?)\s*[:：]\Z|\b(?:this|these|following|below)\b"
    r"(?! by| first| now)[^.!?\n]{0,60}[:：]\Z",
    re.IGNORECASE,
)
_EXAMPLE = compile_late(
    r"\b(?:for example|for instance|e\.g\.|i\.e\.|such as|as follows|like (?:this|so"
    r"|that)"
    r"|(?:an?|this|another|simple|minimal|short|typical|sample|following|concrete"
    r"|correct)"
    r" (?:\w+ )?(?:example|sample)s?|examples?(?:\s*:| of\b| call| output)|samples?\s*:"
    r"|looks? (?:something )?like|would|you(?:['’]d| could| can| might| may| should"
    r"| must"
    r"| need)|(?:show|tell|give|teach) you|explain|illustrat\w+|demonstrat\w+"
    r"|describ\w+"
    r"|fixtures?|placeholder|documentation|hypothetical\w*|pretend|imagine|suppose"
    r"|quote|paste|reproduce|write out)\b"
    r"|例如|示例|例子|示范|比如|譬如|如下|这样|样例|形式|写法|例えば|次のよう|예를",
    re.IGNORECASE,
)
_ABOUT_TOOLS = (
    r"\btools?\b|\bfunction[ -]call|\bJSON\b|\bXML\b|\btags?\b|\bmarkup\b|工具|标签"
    r"|ツール|도구"
    r"|\b(?:werkzeug\w*|outils?|herramientas?|strument\w+|ferramentas?|инструмент\w*)\b"
)
_ABOUT_CALLS = (
    r"|\b(?:call(?:s|ed|er|ing)?|invok\w+|arguments?|parameters?|models?|hosts?"
    r"|layouts?|format|syntax|notation"
    r"|pars(?:e|es|er|ers|ing)|delimiters?|templates?|answers?|transcripts?|escaped"
    r"|quotes"
    r"|control tokens?|below|verbatim|raw|here(?:['’]s| is| it is)|as requested|copy"
    r"|save (?:it|this)|use this|aufruf\w*|appels?|llamadas?|chiamat\w+|chamadas?"
    r"|вызов\w*)\b"
    r"|调用|模型|解析|格式|语法|呼び出|호출"
)
_SPEAKS_OF_TOOLS = compile_late(_ABOUT_TOOLS, re.IGNORECASE)
_SPEAKS_OF_CALLS = compile_late(_ABOUT_TOOLS + _ABOUT_CALLS, re.IGNORECASE)


class Lead:
    """Follows the text of an answer, and tells whether calls may come next.

    Models that call a tool often say so first, and models that explain calls may end
    with one. So after other text the rule is strict (its reasons are in
    docs/reference/decisions.md):

    - Calls must not be in code, quoted or indented, nor after another call in the text.
    - A text that ends in a colon introduces what follows. Calls count only if its last
      sentence says in the first person that the model looks, searches or runs now.
    - After a complete sentence, forms with a mark that only calls have count, if the
      model says that it acts, or does not speak of calls at all.
    - Forms without such a mark (JSON, code) count only after a short text which says
      that the model looks, searches or runs now.
    - Reasoning between tags is no text before the calls, even without the opening tag,
      which some servers put into the prompt.

    Words are known in English and Chinese, in which agents mostly speak. Calls after
    text in other languages stay text, which is the safe side.

    `is_blank`: the text so far is only white space. The caller sets `has_calls` if
    complete calls were found in the text, but must stay text.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []  # that were not inspected yet
        self._pending = 0  # their characters
        self._tail = ""  # the end of the inspected text
        self._size = 0
        self._line = ""  # the beginning of the last line
        self._fence = ""  # the mark that opened the code fence, "" outside of one
        self._has_structure = False
        self._opens_later = False  # reasoning, behind other text
        self.is_blank = True
        self.has_calls = False

    def add(self, text: str) -> None:
        """Follow the next piece of the text."""
        self._pieces.append(text)
        self._pending += len(text)
        if self.is_blank and not text.isspace():
            self.is_blank = False
        if self._pending > _MAX_PENDING:
            self._inspect()

    def allows(self, mark: str, *, needs_mark: bool = False) -> bool:
        """Tell whether calls that come next are real calls.

        They begin with `mark`, "" for plain forms. With `needs_mark`, plain forms count
        only at the beginning.
        """
        if self.is_blank or (needs_mark and not mark):
            return self.is_blank
        self._inspect()
        if not self._opens_later and _CLOSES_THOUGHTS.search(self._tail):
            return True
        tail, line = self._tail, self._tail.rpartition("\n")[2]
        is_code = self._fence or _FENCE.match(self._line) or line.startswith("    ")
        if self.has_calls or is_code or line.count("`") % 2:
            return False
        text = _STRAY_WORD.sub("", tail).rstrip()
        earlier, _, last = text.rpartition("\n\n")
        if (mark and mark in tail) or _SPEAKS_OF_TOOLS.search(earlier):
            return False
        if _EXAMPLE.search(last) or _EXAMPLE.search(earlier):
            return False
        sentence = _last_sentence(last.rpartition("\n")[2])
        acts = _ACTS.search(sentence) is not None
        if not text.endswith(_ENDS) and (not acts or _SHOWS.search(sentence)):
            return False
        if not mark:
            is_short = self._size <= _MAX_SHORT_TEXT and not self._has_structure
            return acts and is_short and not line.strip()
        return bool(acts or _INTENDS.search(last)) or not _SPEAKS_OF_CALLS.search(last)

    def _inspect(self) -> None:
        """Process the pieces that came since the last time."""
        text = "".join(self._pieces)
        self._pieces, self._pending = [], 0
        overlap = self._tail[-_MAX_TAG:]  # may end in half of a tag
        for tag in _OPENS_THOUGHTS.finditer(overlap + text):
            is_first = (
                self._size <= len(overlap) and not tag.string[: tag.start()].strip()
            )
            if tag.end() > len(overlap) and not is_first:
                self._opens_later = True
        self._size += len(text)
        self._tail = (self._tail + text)[-_MAX_TAIL:]
        first, *lines = text.split("\n")
        self._line = (self._line + first)[:_LINE_START]
        for line in lines:
            self._end_line()
            self._line = line[:_LINE_START]

    def _end_line(self) -> None:
        """Record a fence that a complete line opens or closes, or its structure."""
        if mark := _FENCE.match(self._line):
            if not self._fence:
                self._fence = mark[1]
            elif mark[1].startswith(self._fence):
                self._fence = ""
        self._has_structure = self._has_structure or self._line.startswith(
            ("#", "|", "```")
        )


def _last_sentence(text: str) -> str:
    ends = [end.end() for end in _SENTENCE.finditer(text, 0, max(0, len(text) - 1))]
    return text[ends[-1] :] if ends else text


def _with_prefixes(words: Iterable[str]) -> str:
    """Return a pattern for the words, and for prefixes of them at the end of a text."""
    prefixes = {word[:n] for word in words for n in range(1, len(word))}
    ends = "|".join(map(re.escape, sorted(prefixes)))
    return "|".join(map(re.escape, words)) + rf"|(?:{ends})\Z"


# Where calls may begin: some marks anywhere, other forms at the beginning of a line.
_may_start = re.compile(r"[<\[\n\]]").search
_LINE = r"[{\[`~✿]|" + _with_prefixes(
    ("to=", "assistant to=", "commentary to=", "functools[", "Action:", "call:", ">>>")
)
_START = compile_late(
    rf"<(?=[|｜]|/?[\w:.-]{{0,40}}?(?i:{HOLDER_WORDS})|/?[\w:.-]{{0,40}}\Z)"
    r"|\[(?=/?(?:[A-Z]{3}|tool)|/?[A-Z]{0,2}\Z|/?to{0,2}\Z)|\](?=<\]|<?\Z)"
    rf"|\n(?P<line> {{0,3}}(?={_LINE}))"
)
_LINE_START_OF_CALLS = compile_late(rf" {{0,3}}(?={_LINE})")


class PrintedCallReader:
    """A Stage[bytes, StreamEvent] around the reader of a dialect.

    `schemas` are those of the offered tools by their names, `names` maps the names that
    were sent to the original names.
    """

    def __init__(
        self,
        reader: Stage[bytes, StreamEvent],
        schemas: Mapping[str, Json],
        names: Mapping[str, str],
    ) -> None:
        self._reader = reader
        sent = {name: name for name in schemas}
        sent |= {sent: name for sent, name in names.items() if name in schemas}
        tools = OfferedTools(ToolNames(sent), schemas)
        self._text = PrintedText(tools)
        self._tools = tools
        self._thoughts: list[str] = []
        self._has_calls = False
        self._out: list[StreamEvent] = []

    def feed(self, data: bytes, /) -> Iterable[StreamEvent]:
        """Read bytes; if that fails, buffered text is returned before the error."""
        try:
            events = self._reader.feed(data)
            if type(events) is list and len(events) == 1:  # the usual case of a stream
                event, quiet = events[0], self._text.quiet
                if type(event) is TextDelta:
                    text = event.text
                    if quiet is None or len(quiet) >= _MAX_PASSED or _may_start(text):
                        return self._text.feed(text)
                    quiet.append(text)
                    return events
                if type(event) is ToolCallDelta and not self._text.has_buffer:
                    self._has_calls = True
                    return events
            self._process_all(events)
        except Exception as error:
            self._out += self._text.release()
            return then_raise(self._pop_out(), error)
        return self._pop_out()

    def flush(self) -> Iterator[StreamEvent]:
        """End the answer."""
        try:
            self._process_all(self._reader.flush())
        except Exception:
            self._out += self._text.release()
            yield from self._pop_out()
            raise
        self._out += self._text.release()
        yield from self._pop_out()

    def _pop_out(self) -> list[StreamEvent]:
        out, self._out = self._out, []
        return out

    def _process_all(self, events: Iterable[StreamEvent]) -> None:
        """Process the events of a network read, with adjacent texts joined."""
        texts: list[str] = []
        try:
            for event in events:
                if type(event) is TextDelta:
                    texts.append(event.text)
                    continue
                if texts:
                    self._out += self._text.feed("".join(texts))
                    texts = []
                if type(event) is ToolCallDelta:
                    self._has_calls = True
                    self._text.append_event(event, self._out)
                else:
                    self._process(event)
        finally:
            if texts:
                self._out += self._text.feed("".join(texts))

    def _process(self, event: StreamEvent) -> None:
        match event:
            case Finish():
                self._finish(event)
                return
            case ThinkingDelta() if event.text:
                self._out += self._text.release()
                self._thoughts.append(event.text)
            case _:
                pass
        self._text.append_event(event, self._out)

    def _finish(self, finish: Finish) -> None:
        """End the answer: emit the buffered calls, or else the buffered text."""
        calls: list[PrintedCall] = []
        if finish.reason in _WHOLE_REASONS:
            events, calls = self._text.end()
            self._out += events
            if not (calls or self._has_calls) and self._text.is_blank:
                thoughts = PrintedText(self._tools, needs_mark=True)
                thoughts.feed("".join(self._thoughts)[-MAX_ARGUMENT_CHARS:])
                calls = thoughts.end()[1]
        self._out += self._text.release()
        for number, call in enumerate(calls, 1):
            arguments = write_json(call.arguments).decode()
            call_id = call.id or f"text_call_{number}"
            index = _FIRST_INDEX + number
            self._out.append(
                ToolCallDelta(index, call_id, call.name, arguments, is_printed=True)
            )
        self._out.append(finish)


class PrintedText:
    """The text of an answer; a tail that may become calls is buffered.

    `needs_mark`: after other text only forms with a mark count.
    """

    def __init__(self, tools: OfferedTools, *, needs_mark: bool = False) -> None:
        self._tools = tools
        self._needs_mark = needs_mark
        self._buffer: deque[StreamEvent] = deque()  # texts, and the events between
        self._pieces: list[str] = []  # the texts of the buffer
        self._size = 0  # of the texts of the buffer
        self._next_parse = 0  # the size of the buffer at which it is parsed again
        self._calls: list[PrintedCall] = []  # in the buffer, if they are complete
        self._work = _MAX_WORK
        self._lead = Lead()
        self._passed: list[str] = []  # pieces that the lead does not know yet
        # The same list, as long as a piece without a match of `_may_start` only has to
        # be appended to it; else None.
        self.quiet: list[str] | None = None
        self._begins_line = True  # the text so far ends where a line begins

    @property
    def is_blank(self) -> bool:
        """Whether only white space was passed on, and nothing is buffered."""
        self._update_lead()
        return self._lead.is_blank and not self._buffer

    def feed(self, text: str) -> list[StreamEvent]:
        """Add a piece of the text; return the events that cannot belong to calls."""
        if len(self._passed) >= _MAX_PASSED:
            self._update_lead()
        may_begin = self._work > 0 and self._find_start(text, 0) is not None
        if not self._buffer and not may_begin:
            self._pass_on(text)
            out: list[StreamEvent] = [TextDelta(text)]
        else:
            self._buffer.append(TextDelta(text))
            self._pieces.append(text)
            self._size += len(text)
            is_due = self._calls and not text.isspace()
            out = self._parse() if is_due or self._size >= self._next_parse else []
        self.quiet = None if self._buffer or self._begins_line else self._passed
        return out

    @property
    def has_buffer(self) -> bool:
        """Whether text is buffered."""
        return bool(self._buffer)

    def append_event(self, event: StreamEvent, out: list[StreamEvent]) -> None:
        """Append an event that is no text to `out`, or to the buffer if it has text."""
        (self._buffer if self._buffer else out).append(event)

    def release(self) -> list[StreamEvent]:
        """Return the whole buffer, as text."""
        self._pass_on("".join(self._pieces))
        return self._pop(self._size)

    def end(self) -> tuple[list[StreamEvent], list[PrintedCall]]:
        """End the text: return events that are no calls, and the calls at its end."""
        out = self._parse(is_end=True)
        calls = self._calls
        if calls:
            out += (e for e in self._buffer if not isinstance(e, TextDelta))
            self._buffer, self._pieces, self._size = deque(), [], 0
        return out, calls

    def _parse(self, *, is_end: bool = False) -> list[StreamEvent]:
        """Parse the buffer; return the events that cannot belong to calls."""
        text, passed = "".join(self._pieces), 0
        start = self._find_start(text, 0)
        while start is not None:
            self._pass_on(text[:start])
            text, passed = text[start:], passed + start
            if self._may_be_calls(text) and (self._calls or not is_end):
                break
            start = self._find_start(text, 1) if self._work > 0 else None
        else:
            self._pass_on(text)
            text, passed = "", passed + len(text)
        out = self._pop(passed)
        self._pieces = [text]
        self._next_parse = self._size * (1 if self._size < _SMALL_BUFFER else 2)
        return out

    def _may_be_calls(self, text: str) -> bool:
        """Tell whether a text may be calls; store them if they are complete."""
        self._calls = []
        if self._work <= 0 or len(text) > _MAX_BUFFER:
            return False
        calls: list[PrintedCall] = []
        failure: NotCalls | None = None
        try:
            calls = read_calls(text, self._tools)
        except Unfinished:
            if first_mark(text) is None:
                return True  # even the mark is not complete yet
        except NotCalls as error:
            failure = error
            self._work -= _ATTEMPT_WORK + error.offset
            if not error.has_calls:
                return False
        self._work -= len(text)
        mark = first_mark(text) or ""
        self._update_lead()
        if not self._lead.allows(mark, needs_mark=self._needs_mark):
            self._work -= _ATTEMPT_WORK
            return False
        if failure is not None:
            self._lead.has_calls = True
            return False
        self._calls = calls
        return True

    def _find_start(self, text: str, minimum: int) -> int | None:
        """Return the first index from `minimum` on where calls may begin, or None."""
        if not minimum and self._begins_line:
            if self._lead.is_blank:
                self._update_lead()
            if self._lead.is_blank or _LINE_START_OF_CALLS.match(text):
                return 0
        match = _START.search(text, max(0, minimum - 1))
        while match:
            start = match.start(match.lastgroup or 0)
            if start >= minimum:
                return start
            match = _START.search(text, match.start() + 1)
        return None

    def _pass_on(self, text: str) -> None:
        """Record a text that is no call."""
        if text:
            self._passed.append(text)
            line_end = text.rfind("\n")
            if line_end >= 0 or self._begins_line:
                self._begins_line = not text[line_end + 1 :].strip(" ")

    def _update_lead(self) -> None:
        """Add the text that passed to the lead."""
        if self._passed:
            self._lead.add("".join(self._passed))
            self._passed.clear()

    def _pop(self, size: int) -> list[StreamEvent]:
        """Remove `size` characters from the buffer, with the events between them."""
        out: list[StreamEvent] = []
        self._size -= size
        self._pieces, self._calls = [], self._calls if self._size else []
        while self._buffer and (size or not self._size):
            event = self._buffer.popleft()
            if isinstance(event, TextDelta) and len(event.text) > size:
                out.append(TextDelta(event.text[:size]))
                self._buffer.appendleft(TextDelta(event.text[size:]))
                break
            size -= len(event.text) if isinstance(event, TextDelta) else 0
            out.append(event)
        return out
