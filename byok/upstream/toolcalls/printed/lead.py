"""What may stand before printed calls, so that they are no example.

Models that call a tool often say so first, and models that explain calls may end with
one. So behind other text the rule is strict (its reasons are in docs/DECISIONS.md):

- It must not be in code, quoted or indented, nor behind another call that is text.
- A text that ends in a colon introduces what follows. Calls count only if its last
  sentence says in the first person that the model looks, searches or runs now.
- Behind a complete sentence, forms with a mark that only calls have count, if the
  model says that it acts, or does not speak of calls at all.
- Forms without such a mark (JSON, code) count only behind a short text which says that
  the model looks, searches or runs now.
- A text that is all reasoning between tags, or lacks only the opening one (which some
  servers put into the prompt), is no text before the calls.

Words are known in English and Chinese, in which agents mostly speak. Words of other
languages are missed on the safe side: calls behind them stay text.
"""

import re

_KEPT = 2000  # characters of the text that are looked at
_MOST_PENDING = 4096
_SHORT = 500  # characters of a text before a form without marks
_LINE_SIZE = 16  # characters of a line that say whether it is a fence or a heading
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SENTENCE = re.compile(r"(?:[.!?](?=\s)|[。！？])")
_ENDS = (*".!?…。！？", ".)", '."', "!*", ".*")
_OPENS_THOUGHTS = re.compile(r"<(?:[a-z]+:)?(?:think|thinking|thought)>")
_CLOSES_THOUGHTS = re.compile(r"</(?:[a-z]+:)?(?:think|thinking|thought)>\s*\Z")
_LONGEST_TAG = 32
_STRAY_WORD = re.compile(r"(?:\A|\n)(?:count|court|call|course)\s*\Z")  # Claude's
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
_INTENDS = re.compile(_INTENT, re.IGNORECASE)
_ACTS = re.compile(_INTENT + _ADVERBS + _ACTIONS, re.IGNORECASE)
# The end of a sentence with a colon that names what is shown behind it.
_SHOWS = re.compile(
    r"\b(?:with|for|to|from|in|on|as|by|of|into|against|is|are|was|than|like|that|this"
    r"|these|calls?|texts?|outputs?|inputs?|lines?|forms?|layouts?|answers?|responses?"
    r"|results?|messages?|strings?|JSON|XML|contents?|logs?|transcripts?|cases?"
    r"|snippets?"
    r"|requests?|tags?|prompts?|words?)\s*[:：]\Z|\b(?:this|these|following|below)\b"
    r"(?! by| first| now)[^.!?\n]{0,60}[:：]\Z",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
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
_SPEAKS_OF_TOOLS = re.compile(_ABOUT_TOOLS, re.IGNORECASE)
_SPEAKS_OF_CALLS = re.compile(_ABOUT_TOOLS + _ABOUT_CALLS, re.IGNORECASE)


class Lead:
    """Follows the text of an answer, and tells whether calls may come next.

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
