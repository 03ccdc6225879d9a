"""Reads tool calls out of an answer whose model or host printed them as text.

An answer that is nothing but complete calls of offered tools is these calls, and so is
the end of one where `Lead` allows it. What can still become calls is held back; all
other text passes at once and unchanged. Calls are made at the end of an answer that
ended well, and never of one that was cut off. If an answer has neither text nor calls,
those at the end of its reasoning are made.
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

_KEPT = 2000  # characters of the text that are looked at
_MOST_PENDING = 4096
_SHORT = 500  # characters of a text before a form without marks
_LINE_SIZE = 16  # characters of a line that say whether it is a fence or a heading
_FENCE = compile_late(r" {0,3}(`{3,}|~{3,})")
_SENTENCE = compile_late(r"(?:[.!?](?=\s)|[。！？])")
_ENDS = (*".!?…。！？", ".)", '."', "!*", ".*")
_OPENS_THOUGHTS = compile_late(r"<(?:[a-z]+:)?(?:think|thinking|thought)>")
_CLOSES_THOUGHTS = compile_late(r"</(?:[a-z]+:)?(?:think|thinking|thought)>\s*\Z")
_LONGEST_TAG = 32
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
# The end of a sentence with a colon that names what is shown behind it.
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
    with one. So behind other text the rule is strict (its reasons are in
    docs/reference/decisions.md):

    - It must not be in code, quoted or indented, nor behind another call that is text.
    - A text that ends in a colon introduces what follows. Calls count only if its last
      sentence says in the first person that the model looks, searches or runs now.
    - Behind a complete sentence, forms with a mark that only calls have count, if the
      model says that it acts, or does not speak of calls at all.
    - Forms without such a mark (JSON, code) count only behind a short text which says
      that the model looks, searches or runs now.
    - A text that is all reasoning between tags, or lacks only the opening one (which
      some servers put into the prompt), is no text before the calls.

    Words are known in English and Chinese, in which agents mostly speak. Words of other
    languages are missed on the safe side: calls behind them stay text.

    `is_blank`: there was nothing but white space so far. `has_calls` is set by who
    finds that complete calls stood in it, as text.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []  # that were not looked at
        self._pending = 0  # their characters
        self._tail = ""  # the end of what was looked at
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
        if self._pending > _MOST_PENDING:
            self._look()

    def allows(self, mark: str, *, needs_mark: bool = False) -> bool:
        """Tell whether calls that come next are meant.

        `mark` is what they begin with, "" for plain forms; with `needs_mark`, these
        count only at the beginning.
        """
        if self.is_blank or (needs_mark and not mark):
            return self.is_blank
        self._look()
        if not self._opens_later and _CLOSES_THOUGHTS.search(self._tail):
            return True
        tail, line = self._tail, self._tail.rpartition("\n")[2]
        is_code = self._fence or _FENCE.match(self._line) or line.startswith("    ")
        if self.has_calls or is_code or line.count("`") % 2:
            return False
        said = _STRAY_WORD.sub("", tail).rstrip()
        earlier, _, last = said.rpartition("\n\n")
        if (mark and mark in tail) or _SPEAKS_OF_TOOLS.search(earlier):
            return False
        if _EXAMPLE.search(last) or _EXAMPLE.search(earlier):
            return False
        sentence = _last_sentence(last.rpartition("\n")[2])
        acts = _ACTS.search(sentence) is not None
        if not said.endswith(_ENDS) and (not acts or _SHOWS.search(sentence)):
            return False
        if not mark:
            is_short = self._size <= _SHORT and not self._has_structure
            return acts and is_short and not line.strip()
        return bool(acts or _INTENDS.search(last)) or not _SPEAKS_OF_CALLS.search(last)

    def _look(self) -> None:
        """Take in the pieces that came since the last time."""
        text = "".join(self._pieces)
        self._pieces, self._pending = [], 0
        before = self._tail[-_LONGEST_TAG:]  # it may hold half of a tag
        for tag in _OPENS_THOUGHTS.finditer(before + text):
            is_first = (
                self._size <= len(before) and not tag.string[: tag.start()].strip()
            )
            if tag.end() > len(before) and not is_first:
                self._opens_later = True
        self._size += len(text)
        self._tail = (self._tail + text)[-_KEPT:]
        first, *lines = text.split("\n")
        self._line = (self._line + first)[:_LINE_SIZE]
        for line in lines:
            self._end_line()
            self._line = line[:_LINE_SIZE]

    def _end_line(self) -> None:
        """Note what a complete line opens or closes."""
        if mark := _FENCE.match(self._line):
            if not self._fence:
                self._fence = mark[1]
            elif mark[1].startswith(self._fence):
                self._fence = ""
        self._has_structure = self._has_structure or self._line.startswith(
            ("#", "|", "```")
        )


def _last_sentence(text: str) -> str:
    """Return the last sentence of a text, with its full stop."""
    ends = [end.end() for end in _SENTENCE.finditer(text, 0, max(0, len(text) - 1))]
    return text[ends[-1] :] if ends else text


_LONGEST = MAX_ARGUMENT_CHARS + 4096  # characters that are held back
_FIRST_INDEX = 1000  # beyond those that an upstream counts itself
_OFTEN = 256  # characters up to which every piece is looked at
# Characters that are read in all, and that each attempt counts for: keeps it linear.
_MOST_WORK, _LEAST_WORK = 6 * MAX_ARGUMENT_CHARS, 2000
_WHOLE = (FinishReason.STOP, FinishReason.TOOL_CALLS)


def _beginning_of(words: Iterable[str]) -> str:
    """Return a pattern for the words, and for their beginnings at the end of a text."""
    halves = {word[:n] for word in words for n in range(1, len(word))}
    ends = "|".join(map(re.escape, sorted(halves)))
    return "|".join(map(re.escape, words)) + rf"|(?:{ends})\Z"


# Where calls may begin: a mark anywhere, the rest at the beginning of a line.
_may_have_place = re.compile(r"[<\[\n\]]").search
_MANY = 64  # pieces of text that passed, until the lead learns of them
_LINE = r"[{\[`~✿]|" + _beginning_of(
    ("to=", "assistant to=", "commentary to=", "functools[", "Action:", "call:", ">>>")
)
_PLACE = compile_late(
    rf"<(?=[|｜]|/?[\w:.-]{{0,40}}?(?i:{HOLDER_WORDS})|/?[\w:.-]{{0,40}}\Z)"
    r"|\[(?=/?(?:[A-Z]{3}|tool)|/?[A-Z]{0,2}\Z|/?to{0,2}\Z)|\](?=<\]|<?\Z)"
    rf"|\n(?P<line> {{0,3}}(?={_LINE}))"
)
_LINE_PLACE = compile_late(rf" {{0,3}}(?={_LINE})")


class PrintedCallReader:
    """Stage[bytes, StreamEvent] behind the reader of a dialect.

    `schemas` are those of the offered tools by their names, `names` the original names
    by those that were sent.
    """

    def __init__(
        self,
        first: Stage[bytes, StreamEvent],
        schemas: Mapping[str, Json],
        names: Mapping[str, str],
    ) -> None:
        self._first = first
        sent = {name: name for name in schemas}
        sent |= {sent: name for sent, name in names.items() if name in schemas}
        tools = OfferedTools(ToolNames(sent), schemas)
        self._text = PrintedText(tools)
        self._tools = tools
        self._thoughts: list[str] = []
        self._has_calls = False
        self._calls = 0
        self._out: list[StreamEvent] = []

    def feed(self, data: bytes, /) -> Iterable[StreamEvent]:
        """Read bytes; text that was held back when they fail is given first."""
        try:
            events = self._first.feed(data)
            if type(events) is list and len(events) == 1:  # a stream has one at a time
                event, quiet = events[0], self._text.quiet
                if type(event) is TextDelta:
                    text = event.text
                    if quiet is None or len(quiet) >= _MANY or _may_have_place(text):
                        return self._text.feed(text)
                    quiet.append(text)
                    return events
                if type(event) is ToolCallDelta and not self._text.holds:
                    self._has_calls = True
                    return events
            self._take_all(events)
        except Exception as error:
            self._out += self._text.release()
            return then_raise(self._take_out(), error)
        return self._take_out()

    def flush(self) -> Iterator[StreamEvent]:
        """End the answer."""
        try:
            self._take_all(self._first.flush())
        except Exception:
            self._out += self._text.release()
            yield from self._take_out()
            raise
        self._out += self._text.release()
        yield from self._take_out()

    def _take_out(self) -> list[StreamEvent]:
        out, self._out = self._out, []
        return out

    def _take_all(self, events: Iterable[StreamEvent]) -> None:
        """Take the events of a network read, with the texts in a row as one."""
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
                    self._text.put_behind(event, self._out)
                else:
                    self._take(event)
        finally:
            if texts:
                self._out += self._text.feed("".join(texts))

    def _take(self, event: StreamEvent) -> None:
        match event:
            case Finish():
                self._finish(event)
                return
            case ThinkingDelta() if event.text:
                self._out += self._text.release()
                self._thoughts.append(event.text)
            case _:
                pass
        self._text.put_behind(event, self._out)

    def _finish(self, finish: Finish) -> None:
        """End the answer: make the calls that were held back, or give their text."""
        calls: list[PrintedCall] = []
        if finish.reason in _WHOLE:
            rest, calls = self._text.end()
            self._out += rest
            if not (calls or self._has_calls) and self._text.is_blank:
                calls = self._calls_in_thoughts()
        self._out += self._text.release()
        self._out += map(self._delta, calls)
        self._out.append(finish)

    def _calls_in_thoughts(self) -> list[PrintedCall]:
        """Return the calls at the end of the reasoning, of an answer without a word."""
        thoughts = PrintedText(self._tools, needs_mark=True)
        thoughts.feed("".join(self._thoughts)[-MAX_ARGUMENT_CHARS:])
        return thoughts.end()[1]

    def _delta(self, call: PrintedCall) -> ToolCallDelta:
        self._calls += 1
        return ToolCallDelta(
            _FIRST_INDEX + self._calls,
            call.id or f"text_call_{self._calls}",
            call.name,
            write_json(call.arguments).decode(),
            is_printed=True,
        )


class PrintedText:
    """The text of an answer; what may be calls at its end is held back.

    `needs_mark`: behind other text only forms with a mark count.
    """

    def __init__(self, tools: OfferedTools, *, needs_mark: bool = False) -> None:
        self._tools = tools
        self._needs_mark = needs_mark
        self._held: deque[StreamEvent] = deque()  # texts, and the events between them
        self._pieces: list[str] = []  # the same texts
        self._size = 0
        self._next_look = 0
        self._calls: list[PrintedCall] = []  # in what is held, if it is complete
        self._work = _MOST_WORK
        self._lead = Lead()
        self._passed: list[str] = []  # pieces that the lead does not know yet
        # The same, while a piece that has no `_may_have_place` in it only has to be
        # appended to pass; else None.
        self.quiet: list[str] | None = None
        self._begins_line = True  # the text so far ends where a line begins

    @property
    def is_blank(self) -> bool:
        """Whether nothing but white space was passed on, and nothing is held back."""
        self._follow()
        return self._lead.is_blank and not self._held

    def feed(self, text: str) -> list[StreamEvent]:
        """Follow a piece of the text; return what can no longer belong to calls."""
        if len(self._passed) >= _MANY:
            self._follow()
        may_begin = self._work > 0 and self._next_place(text, 0) is not None
        if not self._held and not may_begin:
            self._pass_on(text)
            out: list[StreamEvent] = [TextDelta(text)]
        else:
            self._held.append(TextDelta(text))
            self._pieces.append(text)
            self._size += len(text)
            is_due = self._calls and not text.isspace()
            out = self._look() if is_due or self._size >= self._next_look else []
        self.quiet = None if self._held or self._begins_line else self._passed
        return out

    @property
    def holds(self) -> bool:
        """Whether text is held back."""
        return bool(self._held)

    def put_behind(self, event: StreamEvent, out: list[StreamEvent]) -> None:
        """Put an event that is no text into `out`, or behind the text that is held."""
        (self._held if self._held else out).append(event)

    def release(self) -> list[StreamEvent]:
        """Return everything that is held back, as text."""
        self._pass_on("".join(self._pieces))
        return self._give(self._size)

    def end(self) -> tuple[list[StreamEvent], list[PrintedCall]]:
        """End the text: return what is left of it, and the calls that it ends with."""
        out = self._look(is_end=True)
        calls = self._calls
        if calls:
            out += (e for e in self._held if not isinstance(e, TextDelta))
            self._held, self._pieces, self._size = deque(), [], 0
        return out, calls

    def _look(self, *, is_end: bool = False) -> list[StreamEvent]:
        """Look at what is held; return what can no longer belong to calls."""
        text, passed = "".join(self._pieces), 0
        place = self._next_place(text, 0)
        while place is not None:
            self._pass_on(text[:place])
            text, passed = text[place:], passed + place
            if self._may_be_calls(text) and (self._calls or not is_end):
                break
            place = self._next_place(text, 1) if self._work > 0 else None
        else:
            self._pass_on(text)
            text, passed = "", passed + len(text)
        out = self._give(passed)
        self._pieces = [text]
        self._next_look = self._size * (1 if self._size < _OFTEN else 2)
        return out

    def _may_be_calls(self, text: str) -> bool:
        """Tell whether a text may be calls; note them if they are complete."""
        self._calls = []
        if self._work <= 0 or len(text) > _LONGEST:
            return False
        calls: list[PrintedCall] = []
        failure: NotCalls | None = None
        try:
            calls = read_calls(text, self._tools)
        except Unfinished:
            if first_mark(text) is None:
                return True  # it is too short to tell even the mark
        except NotCalls as error:
            failure = error
            self._work -= _LEAST_WORK + error.at
            if not error.has_calls:
                return False
        self._work -= len(text)
        mark = first_mark(text) or ""
        self._follow()
        if not self._lead.allows(mark, needs_mark=self._needs_mark):
            self._work -= _LEAST_WORK
            return False
        if failure is not None:
            self._lead.has_calls = True
            return False
        self._calls = calls
        return True

    def _next_place(self, text: str, start: int) -> int | None:
        """Return the first place at or behind `start` where calls may begin."""
        if not start and self._begins_line:
            if self._lead.is_blank:
                self._follow()
            if self._lead.is_blank or _LINE_PLACE.match(text):
                return 0
        found = _PLACE.search(text, max(0, start - 1))
        while found:
            place = found.start(found.lastgroup or 0)
            if place >= start:
                return place
            found = _PLACE.search(text, found.start() + 1)
        return None

    def _pass_on(self, text: str) -> None:
        """Note a text that is no call."""
        if text:
            self._passed.append(text)
            at = text.rfind("\n")
            if at >= 0 or self._begins_line:
                self._begins_line = not text[at + 1 :].strip(" ")

    def _follow(self) -> None:
        """Tell the lead what passed."""
        if self._passed:
            self._lead.add("".join(self._passed))
            self._passed.clear()

    def _give(self, size: int) -> list[StreamEvent]:
        """Return so many characters of what is held, with the events between them."""
        out: list[StreamEvent] = []
        self._size -= size
        self._pieces, self._calls = [], self._calls if self._size else []
        while self._held and (size or not self._size):
            event = self._held.popleft()
            if isinstance(event, TextDelta) and len(event.text) > size:
                out.append(TextDelta(event.text[:size]))
                self._held.appendleft(TextDelta(event.text[size:]))
                break
            size -= len(event.text) if isinstance(event, TextDelta) else 0
            out.append(event)
        return out
