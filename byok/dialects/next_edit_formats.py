"""Next edits as data: the prompt and the answer of each model that is made for them.

A model is shown a part of a file, the region, and writes it as it will be after the
next edit. A row says how the region is chosen, how the prompt is written and how the
answer is read. An answer with text outside of the region, or without an end, is no
suggestion.

The sources are what the makers published. Zeta 2: the documented `seed_coder` prompt
and the budgets of Zed's crate `zeta_prompt`. Zeta 2.1: its model card, and that crate's
rules for markers. Sweep: the article "Open sourcing a 1.5B parameter Next-Edit
Autocomplete Model", and the model card of sweep-next-edit-v2-7B. Mercury: "Next Edit"
in Inception's documentation. Codestral: Mistral's FIM endpoint, by which it predicts
edits in Zed.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial

from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import NextEditRequest, RecentEdit
from byok.core.late import compile_late
from byok.dialects.fim_templates import FimMode

_MAX_EDITS, _MAX_EDIT_LINES, _MAX_EDIT_LINE_CHARS = 8, 40, 400
# The size of a region may change by this factor, and by so many characters.
_MAX_FACTOR, _MAX_ADDED_CHARS, _MAX_REMOVED_CHARS = 3, 1500, 400
_FEW_LINES = 4  # an edit may change all of so few lines
_MIN_BLOCK_LINES, _MAX_BLOCK_LINES = 6, 16  # between two markers of Zeta 2.1
_BYTES_PER_TOKEN = 3  # Zed's estimate
# Zeta 2 and 2.1, fine-tuned from Seed-Coder: suffix, prefix, and then the answer.
_SUFFIX, _PREFIX, _MIDDLE = "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"
_FILE, _SEED_END = "<filename>", "<[end▁of▁sentence]>"
_USER_CURSOR = "<|user_cursor|>"
_CURRENT, _UPDATED = "<<<<<<< CURRENT", ">>>>>>> UPDATED"
_SEED_MARKS = (_SUFFIX, _PREFIX, _MIDDLE, _FILE, _USER_CURSOR)
_MARKER = compile_late(r"<\|marker_(\d{1,4})\|>")
# Sweep, fine-tuned from Qwen2.5-Coder: the old and the current region, then the answer.
_SEP, _CURSOR = "<|file_sep|>", "<|cursor|>"
_QWEN_MARKS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|im_start|>")
_QWEN_STOP = (_SEP, "<|endoftext|>", "<|im_end|>")
_MAX_SWEEP_EDITS = 3
# Mercury: one message of a user, answered by a region in a code fence.
_MERCURY_TAGS = (
    "recently_viewed_code_snippets",
    "current_file_content",
    "code_to_edit",
    "edit_diff_history",
)


class Excerpt(Struct, frozen=True):
    """The part of a file that a model sees: the region, with code before and after it.

    `cursor` is the offset of the cursor in the region, `line` the number of the first
    line of the region, from 1.
    """

    before: str
    region: str
    after: str
    cursor: int
    line: int

    def marked(self, cursor: str) -> str:
        """Return the region with a mark at the cursor."""
        return f"{self.region[: self.cursor]}{cursor}{self.region[self.cursor :]}"


@dataclass(frozen=True)
class NextEditFormat:
    """The format of one family of models.

    `mode` is the interface for the prompt. The region is the cursor's line and `lines`
    lines on either side, as far as they fit into `size` characters; up to `context`
    characters before and after it are shown. `marks` are the special tokens that code
    in the prompt must not contain, `stop` those that end an answer.
    """

    name: str
    names: str  # a regular expression, for the model's name in lower case
    mode: FimMode
    write: Callable[[NextEditRequest, Excerpt], str]
    read: Callable[[str, Excerpt], str | None]
    lines: int = 10
    size: int = 4000
    context: int = 6000
    marks: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()

    def excerpt(self, request: NextEditRequest) -> Excerpt:
        """Return the part of the file to show."""
        above, below = _lines(request.prefix), _lines(request.suffix)
        # The parts of the cursor's line before and after the cursor.
        head = above.pop() if above and not above[-1].endswith("\n") else ""
        tail = below.pop(0) if below else ""
        upper, lower = above[-self.lines :] if self.lines else [], below[: self.lines]
        while (upper or lower) and _size(upper, head, tail, lower) > self.size:
            if len(upper) > len(lower):
                upper.pop(0)
            else:
                lower.pop()
        top, bottom = "".join(upper) + head, tail + "".join(lower)
        before = request.prefix[: len(request.prefix) - len(top)]
        if len(before) > self.context:  # the first line may be cut
            before = before[len(before) - self.context :].partition("\n")[2]
        after = request.suffix[len(bottom) :]
        if len(after) > self.context:
            after = after[: after.rfind("\n", 0, self.context) + 1]
        return Excerpt(
            before,
            top + bottom,
            after,
            len(top),
            request.line - len(upper),
        )

    def prompt(self, request: NextEditRequest) -> str:
        """Return the prompt; special tokens in the code are broken by a space."""
        excerpt, inert = self.excerpt(request), self._inert
        edits = tuple(
            RecentEdit(
                " ".join(inert(edit.path).splitlines()),
                _cut(inert(edit.before)),
                _cut(inert(edit.after)),
                edit.line,
            )
            for edit in request.edits[-_MAX_EDITS:]
        )
        path = " ".join(inert(request.path).splitlines())
        inert_request = replace(request, path=path, edits=edits)
        inert_excerpt = replace(
            excerpt,
            before=self._inert(excerpt.before),
            region=self._inert(excerpt.region),
            after=self._inert(excerpt.after),
            cursor=len(self._inert(excerpt.region[: excerpt.cursor])),
        )
        return self.write(inert_request, inert_excerpt)

    def most_tokens(self, request: NextEditRequest) -> int:
        """Return the maximum tokens of an answer; few models stop by themselves."""
        return len(self.excerpt(request).region) // 2 + 256

    def suggest(self, request: NextEditRequest, answer: str) -> str | None:
        """Return the new region in an answer, None if there is no suggestion."""
        excerpt = self.excerpt(request)
        if self._marks_pattern.search(excerpt.region):
            return None  # the model saw a changed region
        ends = (answer.find(mark) for mark in self.stop)
        answer = answer[: min((end for end in ends if end >= 0), default=None)]
        if not answer.strip():
            return None
        new = self.read(answer.replace("\r\n", "\n"), excerpt)
        if (
            new is None
            or self._marks_pattern.search(new)
            or _is_implausible(excerpt.region, new)
        ):
            return None
        return None if new == excerpt.region else new

    def _inert(self, code: str) -> str:
        return self._marks_pattern.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", code)

    @cached_property
    def _marks_pattern(self) -> re.Pattern[str]:
        marks = (*self.marks, *self.stop)
        return re.compile("|".join(map(re.escape, marks)) or r"(?!)")


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _size(upper: Iterable[str], head: str, tail: str, lower: Iterable[str]) -> int:
    return sum(map(len, (*upper, head, tail, *lower)))


def _cut(text: str) -> str:
    """Return an edit's text with at most as many lines as models are shown."""
    lines = _lines(text)[:_MAX_EDIT_LINES]
    return "".join(line[:_MAX_EDIT_LINE_CHARS] for line in lines)


def _closed(text: str) -> str:
    """Return the text with a line break at its end."""
    return text if not text or text.endswith("\n") else f"{text}\n"


def _is_implausible(old: str, new: str) -> bool:
    """Tell whether an answer is empty, of an implausible size, or of another file."""
    if old.strip() and not new.strip():
        return True
    if len(new) > _MAX_FACTOR * len(old) + _MAX_ADDED_CHARS:
        return True
    if len(old) > _MAX_FACTOR * len(new) + _MAX_REMOVED_CHARS:
        return True
    before, after = old.rstrip().split("\n"), new.rstrip().split("\n")
    if before[-1] != after[-1] and len(after) + _FEW_LINES <= len(before):
        return True  # several last lines are missing, as if the model had stopped
    return _is_other(old, new)


def _is_other(old: str, new: str) -> bool:
    """Tell whether a text has hardly any line of the old one, as from another file."""
    known = {line.strip() for line in old.splitlines()} - {""}
    common = known & {line.strip() for line in new.splitlines()}
    return len(known) > _FEW_LINES and len(common) * _FEW_LINES < len(known)


def end_like(old: str, new: str) -> str:
    """Return the new text with the line breaks at the end of the old one.

    Models write one too many, or none, which is no suggestion.
    """
    return new.rstrip("\n") + old[len(old.rstrip("\n")) :]


def _unfenced(text: str) -> str | None:
    """Return a text without a code fence around it, None if the fence does not end."""
    if not text.lstrip().startswith("```"):
        return text
    fenced = re.fullmatch(r"\s*```[^\n`]*\n(.*?)\n?```\s*", text, re.DOTALL)
    return fenced[1] if fenced else None


def _read_region(cursor: str, text: str, excerpt: Excerpt) -> str | None:
    """Return the region in an answer, without the cursor's mark and a fence."""
    if "```" not in excerpt.region:
        unfenced = _unfenced(text)
        if unfenced is None or "```" in unfenced:
            return None
        text = unfenced
    return end_like(excerpt.region, text.replace(cursor, ""))


def _diff(edit: RecentEdit, old: str, new: str, *, numbered: bool) -> str:
    """Render an edit as a unified diff between two names of its file."""
    before, after = edit.before.splitlines(), edit.after.splitlines()
    start = edit.line + 1
    while before and after and before[0] == after[0]:
        before, after, start = before[1:], after[1:], start + 1
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    lines = [f"--- {old}", f"+++ {new}"]
    if numbered:
        ranges = (f"{start - (not part)},{len(part)}" for part in (before, after))
        lines.append("@@ -{} +{} @@".format(*ranges))
    lines += [f"-{line}" for line in before] + [f"+{line}" for line in after]
    return "\n".join((*lines, ""))


# --- Zeta ---


def _write_seed(request: NextEditRequest, excerpt: Excerpt, region: str) -> str:
    history = "".join(
        _diff(edit, f"a/{edit.path}", f"b/{edit.path}", numbered=False)
        for edit in request.edits
    )
    edits = f"{_FILE}edit_history\n{history}\n" if history else ""
    return (
        f"{_SUFFIX}{_closed(excerpt.after) or chr(10)}{_PREFIX}{edits}"
        f"{_FILE}{request.path}\n{excerpt.before}{region}{_MIDDLE}"
    )


def _read_zeta(answer: str, excerpt: Excerpt) -> str | None:
    if answer.strip() == "NO_EDITS":
        return None
    return _read_region(_USER_CURSOR, answer, excerpt)


def _blocks(region: str) -> list[str]:
    """Split a region at empty lines, or where a block is too long."""
    lines, begin, blocks = _lines(region), 0, list[str]()
    for index in range(1, len(lines)):
        is_gap = bool(lines[index].strip()) and not lines[index - 1].strip()
        length, remaining = index - begin, len(lines) - index
        if length >= _MAX_BLOCK_LINES or (
            is_gap and min(length, remaining) >= _MIN_BLOCK_LINES
        ):
            blocks.append("".join(lines[begin:index]))
            begin = index
    return [*blocks, "".join(lines[begin:])]


def _write_zeta_markers(request: NextEditRequest, excerpt: Excerpt) -> str:
    parts, offset = list[str](), 0
    for number, block in enumerate(_blocks(excerpt.region), 1):
        cursor = excerpt.cursor - offset
        offset += len(block)
        if cursor in range(len(block) + (offset == len(excerpt.region))):
            block = f"{block[:cursor]}{_USER_CURSOR}{block[cursor:]}"
        parts.append(f"<|marker_{number}|>{block}")
    parts.append(f"<|marker_{len(parts) + 1}|>\n")
    return _write_seed(request, excerpt, "".join(parts))


def _read_zeta_markers(answer: str, excerpt: Excerpt) -> str | None:
    """Replace the blocks between the answer's markers by the texts between them.

    The same marker twice means that nothing changes.
    """
    tags = [*_MARKER.finditer(answer.replace(_USER_CURSOR, ""))]
    numbers = [int(tag[1]) for tag in tags]
    blocks = _blocks(excerpt.region)
    if len(tags) < 2 or numbers != [*range(numbers[0], numbers[-1] + 1)]:
        return None
    if not 1 <= numbers[0] < numbers[-1] <= len(blocks) + 1:
        return None
    text = tags[0].string
    if text[: tags[0].start()].strip() or text[tags[-1].end() :].strip():
        return None
    parts = _MARKER.split(text)[2:-1:2]
    old = "".join(blocks[numbers[0] - 1 : numbers[-1] - 1])
    new = "".join(parts)
    if len(new) - len(new.lstrip("\n")) == len(old) - len(old.lstrip("\n")) + 1:
        new = new[1:]  # in the card's examples a line break follows a marker
    if old.endswith("\n") and new:
        new = _closed(new)
    top = "".join(blocks[: numbers[0] - 1])
    whole = f"{top}{new}{''.join(blocks[numbers[-1] - 1 :])}"
    return end_like(excerpt.region, whole)


# --- Sweep ---


def _region_before(request: NextEditRequest, region: str) -> str:
    """Return the region before the newest edit of its file, if that can be found."""
    edits = (edit for edit in reversed(request.edits) if edit.path == request.path)
    edit = next(edits, None)
    if edit is None or not edit.after.strip() or region.count(edit.after) != 1:
        return region
    return region.replace(edit.after, edit.before)


def _write_sweep(request: NextEditRequest, excerpt: Excerpt) -> str:
    changes = (
        f"{_SEP}{edit.path}.diff\noriginal:\n{_closed(edit.before)}"
        f"updated:\n{_closed(edit.after)}"
        for edit in request.edits[-_MAX_SWEEP_EDITS:]
    )
    return (
        f"{''.join(changes)}"
        f"{_SEP}original/{request.path}\n"
        f"{_closed(_region_before(request, excerpt.region))}"
        f"{_SEP}current/{request.path}\n{_closed(excerpt.region)}"
        f"{_SEP}updated/{request.path}\n"
    )


def _prefill(excerpt: Excerpt) -> str:
    """Return the lines above the cursor's, with which Sweep's second model begins."""
    return excerpt.region[: excerpt.region.rfind("\n", 0, excerpt.cursor) + 1]


def _write_sweep_2(request: NextEditRequest, excerpt: Excerpt) -> str:
    region = excerpt.region
    lines = f"{excerpt.line}:{excerpt.line + len(_lines(region)) - 1}"
    changes = (
        f"{_SEP}{edit.path}:{edit.line + 1}:{edit.line + len(_lines(edit.after))}\n"
        f"original:\n{edit.before}\nupdated:\n{edit.after}\n"
        for edit in request.edits
    )
    return (
        f"{_SEP}{request.path}\n{excerpt.before}{region}{excerpt.after}\n"
        f"{''.join(changes)}"
        f"{_SEP}original/{request.path}:{lines}\n{_region_before(request, region)}\n"
        f"{_SEP}current/{request.path}:{lines}\n{excerpt.marked(_CURSOR)}\n"
        f"{_SEP}updated/{request.path}:{lines}\n{_prefill(excerpt)}"
    )


def _read_sweep_2(answer: str, excerpt: Excerpt) -> str | None:
    prefill = _prefill(excerpt)
    if _is_other(excerpt.region[len(prefill) :], answer):
        return None
    return _read_region(_CURSOR, prefill + answer, excerpt)


# --- Mercury ---


def _tagged(name: str, *parts: str) -> str:
    return f"<|{name}|>\n{_closed(''.join(parts)) or chr(10)}<|/{name}|>\n"


def _write_mercury(request: NextEditRequest, excerpt: Excerpt) -> str:
    viewed, file, region, history = _MERCURY_TAGS
    changes = (
        _diff(edit, edit.path, edit.path, numbered=True) for edit in request.edits
    )
    marked = _tagged(region, excerpt.marked(_CURSOR))
    return "\n".join(
        (
            _tagged(viewed),
            _tagged(
                file,
                f"current_file_path: {request.path}\n",
                f"{excerpt.before}{marked}{excerpt.after}",
            ),
            _tagged(history, "\n".join(changes)),
        )
    )


def _read_mercury(answer: str, excerpt: Excerpt) -> str | None:
    text = _unfenced(answer) if answer.lstrip().startswith("```") else None
    if text is None or ("```" in text and "```" not in excerpt.region):
        return None
    return end_like(excerpt.region, text.replace(_CURSOR, ""))


# --- Codestral ---


def _read_gap(answer: str, excerpt: Excerpt) -> str | None:
    """Return the region with the answer inserted at the cursor."""
    text = answer if "```" in excerpt.region else _unfenced(answer)
    if text is None:
        return None
    is_at_end = excerpt.region[excerpt.cursor :] in ("", "\n")
    return excerpt.marked(text.rstrip("\n") if is_at_end else text)


FORMATS: tuple[NextEditFormat, ...] = (
    NextEditFormat(
        "zeta-2.1",
        r"zeta-?2[._-]1(?!\d)",
        FimMode.TEMPLATE,
        _write_zeta_markers,
        _read_zeta_markers,
        lines=20,
        size=350 * _BYTES_PER_TOKEN,
        context=75 * _BYTES_PER_TOKEN,
        marks=(*_SEED_MARKS, "<|marker_"),
        stop=(_SEED_END,),
    ),
    NextEditFormat(
        "zeta-2",
        r"zeta-?2(?!\.?\d)",
        FimMode.TEMPLATE,
        lambda request, excerpt: _write_seed(
            request,
            excerpt,
            f"{_CURRENT}\n{_closed(excerpt.marked(_USER_CURSOR))}=======\n",
        ),
        _read_zeta,
        lines=20,
        size=350 * _BYTES_PER_TOKEN,
        context=75 * _BYTES_PER_TOKEN,
        marks=(*_SEED_MARKS, _CURRENT),
        stop=(_UPDATED, _SEED_END),
    ),
    NextEditFormat(
        "sweep-2",
        r"sweep-next-edit-v2",
        FimMode.TEMPLATE,
        _write_sweep_2,
        _read_sweep_2,
        marks=(*_QWEN_MARKS, _CURSOR),
        stop=_QWEN_STOP,
    ),
    NextEditFormat(
        "sweep",
        r"sweep-next-edit",
        FimMode.TEMPLATE,
        _write_sweep,
        partial(_read_region, _CURSOR),
        context=0,
        marks=_QWEN_MARKS,
        stop=_QWEN_STOP,
    ),
    NextEditFormat(
        "mercury",
        r"mercury-?(?:edit|coder)",
        FimMode.EDIT,
        _write_mercury,
        _read_mercury,
        marks=(
            *(f"<|{slash}{tag}|>" for tag in _MERCURY_TAGS for slash in ("", "/")),
            _CURSOR,
        ),
    ),
    NextEditFormat(
        "codestral",
        r"codestral(?!.*(?:mamba|embed))",
        FimMode.FIM,
        lambda _request, _excerpt: "",  # the endpoint gets the code around the cursor
        _read_gap,
        lines=0,
    ),
)


def format_of(model: str, modes: Iterable[FimMode] = tuple(FimMode)) -> str:
    """Return the name of a model's format if its mode is one of these, else ""."""
    name = model.lower()
    row = next((f for f in FORMATS if re.search(f.names, name)), None)
    return row.name if row and row.mode in frozenset(modes) else ""


def named_format(name: str) -> NextEditFormat:
    """Return the format of a name.

    Raises:
        KeyError: there is none.
    """
    return {row.name: row for row in FORMATS}[name]
