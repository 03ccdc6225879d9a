"""Models made for next edits: each is asked in its format, and exactly read."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import byok
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.dialects.next_edit_formats import FORMATS, NextEditFormat, format_of
from byok.protocols.augment.prompts.next_edit import cursor_of, decode_next_edit
from tests.fakes.jobs import PLAIN, streamed

NAMES = {row.name: row for row in FORMATS}
HOME = Path(byok.__file__).parent
SOURCES = [
    (HOME / name).read_text("utf-8")
    for name in (
        "core/stage.py",
        "core/prompts/agent.md",
        "server/dashboard/static/requests.js",
        "protocols/augment/positions.py",
    )
]


class Case(NamedTuple):
    """A file, the cursor in it, and the lines that the model changes."""

    file: str
    cursor: int
    old: str
    new: str

    @property
    def after(self) -> str:
        return self.file.replace(self.old, self.new)

    def change(self, region: str) -> str:
        assert self.old in region
        return region.replace(self.old, self.new)


def make_case(number: int, name: str) -> Case:
    """Change lines of real code near a cursor; every other file has CRLF."""
    dice = random.Random(f"{name} {number}")
    file = dice.choice(SOURCES).rstrip("\n") + "\n"
    lines = file.splitlines(keepends=True)
    fit = [n for n, x in enumerate(lines) if len(x) > 15 and file.count(x) == 1]
    place = dice.choice(fit[5:-5])
    old = lines[place]
    indent = old[: len(old) - len(old.lstrip())]
    words = re.findall(r"[A-Za-z_]{4,}", old) or [old.strip()]
    word = dice.choice(words)
    new = (
        old.replace(word, f"{word}_é🚢"),
        f"{old}{indent}total = {number}\n",
        f"{indent}first = {number}\n\n{old}",
        f"{indent}changed({number})\n",
        f"{indent}if x:\n{indent}    {old.lstrip()}",
        f"{old.rstrip()}  # {number}\n",
    )[number % 6]
    if name == "codestral":  # it inserts at the cursor
        end = sum(map(len, lines[:place])) + len(old) - 1
        added = f"  # {number}\n{indent}more()" if number % 2 else f".x({number})"
        return Case(file, end, old, f"{old[:-1]}{added}\n")
    at = place - dice.randrange(4) if name == "sweep-2" else place + dice.randint(-3, 3)
    column = dice.randrange(len(lines[at]))
    return Case(file, sum(map(len, lines[:at])) + column, old, new)


def between(text: str, begin: str, end: str) -> str:
    return text.partition(begin)[2].partition(end)[0]


def write_zeta(prompt: str, case: Case, number: int) -> str:
    region = between(prompt, "<<<<<<< CURRENT\n", "=======\n<[fim-middle]>")
    new = case.change(region.replace("<|user_cursor|>", ""))
    return (new, f"{new}>>>>>>> UPDATED\n", new.rstrip("\n"))[number % 3]


def write_zeta_markers(prompt: str, case: Case, number: int) -> str:
    marked = between(prompt, "<|marker_1|>", "<[fim-middle]>")
    blocks = re.split(r"<\|marker_\d+\|>", marked.replace("<|user_cursor|>", ""))[:-1]
    new = case.change("".join(blocks))
    if new == "".join(blocks):
        return "<|marker_2|><|marker_2|>"
    first = next(
        n for n, b in enumerate(blocks) if not new.startswith("".join(blocks[: n + 1]))
    )
    rest = len(blocks)
    while rest - 1 > first and new.endswith("".join(blocks[rest - 1 :])):
        rest -= 1
    text = new[len("".join(blocks[:first])) : len(new) - len("".join(blocks[rest:]))]
    gap = "\n" if number % 3 == 0 else ""  # as on the card
    if number % 3 == 1 and not text.endswith("\n\n"):
        text = text.removesuffix("\n")
    return f"<|marker_{first + 1}|>{gap}{text}<|marker_{rest + 1}|>\n"


def write_sweep(prompt: str, case: Case, number: int) -> str:
    region = between(prompt, "<|file_sep|>current/src/a.py\n", "<|file_sep|>")
    new = case.change(region)
    return (new, f"{new}\n", f"{new}<|file_sep|>src/b.py\nx = 1\n")[number % 3]


def write_sweep_2(prompt: str, case: Case, number: int) -> str:
    head, _, prefill = prompt.rpartition("<|file_sep|>updated/src/a.py:")
    prefill = prefill.partition("\n")[2]
    region = head.rpartition("<|file_sep|>current/")[2].partition("\n")[2][:-1]
    new = case.change(region.replace("<|cursor|>", ""))
    assert new.startswith(prefill)
    return new.removeprefix(prefill) + "\n" * (number % 2)


def write_mercury(prompt: str, case: Case, number: int) -> str:
    region = between(prompt, "<|code_to_edit|>\n", "<|/code_to_edit|>")
    new = case.change(region.replace("<|cursor|>", ""))
    return (f"```\n{new}\n```", f"```python\n{new}```\n")[number % 2]


def write_gap(prompt: str, case: Case, number: int) -> str:
    return case.new.removeprefix(case.old[:-1])[:-1] + "\n" * (number % 3)


MODELS: dict[str, Callable[[str, Case, int], str]] = {
    "zeta-2": write_zeta,
    "zeta-2.1": write_zeta_markers,
    "sweep": write_sweep,
    "sweep-2": write_sweep_2,
    "mercury": write_mercury,
    "codestral": write_gap,
}
EVENTS = [
    {"path": "src/a.py", "edits": [{"before_text": "x\n", "after_text": "y\n"}]},
]


def body_of(case: Case, ending: str = "\n") -> dict[str, Any]:
    before, after = case.file[: case.cursor], case.file[case.cursor :]
    return {
        "prefix": before.replace("\n", ending),
        "selected_text": "",
        "suffix": after.replace("\n", ending),
        "path": "src/a.py",
        "edit_events": EVENTS,
    }


def suggested(
    body: dict[str, Any],
    row: str,
    answer: str,
    finish: FinishReason = FinishReason.STOP,
) -> list[Any]:
    """Return the suggestions that become of an answer in a format."""
    said: list[StreamEvent] = [TextDelta(answer), Finish(finish, format=row)]
    ran = streamed(decode_next_edit, body, said)
    assert ran.error is None
    return [line["next_edit"] for line in ran.lines]


@pytest.mark.parametrize("number", range(60))
@pytest.mark.parametrize("name", NAMES)
def test_next_edit_is_exactly_what_the_model_changed(name: str, number: int) -> None:
    case, ending = make_case(number, name), ("\n", "\r\n")[number % 2]
    body = body_of(case, ending)
    request = decode_next_edit(body, PLAIN).chat.next_edit
    assert request is not None
    answer = MODELS[name](NAMES[name].prompt(request), case, number)
    assert NAMES[name].most_tokens(request) > len(answer) / 2.5
    [edit] = suggested(body, name, answer)
    file = case.file.replace("\n", ending)
    begin, end = edit["char_start"], edit["char_end"]
    assert file[begin:end] == edit["existing_code"]
    made = file[:begin] + edit["suggested_code"] + file[end:]
    assert made == case.after.replace("\n", ending)
    assert edit["existing_code"].count("\n") <= 1


# What does not apply is no suggestion

FILE = "".join(f"def step_{n}(x):\n    return x + {n}\n" for n in range(8))
CASE = Case(FILE, FILE.index("x + 3"), "x + 3", "x - 3")
LINES = "".join(f"other_{n} = {n}\n" for n in range(20))


def broken_answers(name: str) -> dict[str, str]:
    """Return answers that must not change the file."""
    prompt = NAMES[name].prompt(cursor_of(body_of(CASE)).request)
    if name == "codestral":
        return {
            "nothing": " \n",
            "open fence": "```py\nx = 1\n",
            "huge": "x = 1\n" * 2000,
        }
    good = MODELS[name](prompt, CASE, 0)
    same = MODELS[name](prompt, CASE._replace(new=CASE.old), 0)
    fenced = name == "mercury"
    inner = good.partition("\n")[2].rpartition("```")[0] if fenced else good
    wrap = "```\n{}\n```".format if fenced else str
    found = {
        "the same": same,
        "nothing": wrap(""),
        "blank lines": wrap("\n\n"),
        "an open fence": f"```py\n{inner}",
        "two fences": f"```\n{inner}\n```\nand\n```\nb = 1\n```",
        "another file": wrap(LINES),
        "huge": wrap(inner + inner * 40),
        "a special token": wrap(inner.replace("- 3", NAMES[name].marks[0])),
        "an early end": wrap(inner[: inner.index("step_5")]),
    }
    if fenced:
        found["words"] = "No change is needed here.\n"
    if name == "zeta-2.1":
        found |= {
            "one marker": "<|marker_1|>x = 1\n",
            "no marker": FILE,
            "markers that say nothing changes": "<|marker_2|><|marker_2|>",
            "overlapping": "<|marker_2|>x = 1\n<|marker_1|>",
            "a gap": "<|marker_1|>x = 1\n<|marker_2|>y\n<|marker_4|>",
            "twice": "<|marker_1|>x\n<|marker_2|><|marker_1|>y\n<|marker_2|>",
            "outside": "<|marker_2|>x = 1\n<|marker_3|>",
            "marker 0": "<|marker_0|>x = 1\n<|marker_1|>",
            "a huge number": f"<|marker_1|>x = 1\n<|marker_{'9' * 5000}|>",
            "words before": f"Here it is: {good}",
            "words behind": f"{good}\nThat is all.",
        }
    return found


@pytest.mark.parametrize("name", NAMES)
def test_next_edit_that_does_not_apply_is_none(name: str) -> None:
    body = body_of(CASE)
    for what, answer in broken_answers(name).items():
        assert suggested(body, name, answer) == [], what


def test_next_edit_of_zeta_can_be_none() -> None:
    answer = "NO_EDITS\n>>>>>>> UPDATED\n"
    assert suggested({"prefix": "x = 1\n"}, "zeta-2", answer) == []


def test_next_edit_of_a_long_file_has_its_place_there() -> None:
    padding = "# a line\r\n" * 5000
    body = body_of(CASE, "\r\n")
    body |= {"prefix": padding + body["prefix"], "prefix_begin": 7}
    answer = MODELS["sweep"](NAMES["sweep"].prompt(cursor_of(body).request), CASE, 0)
    [edit] = suggested(body, "sweep", answer)
    file = body["prefix"] + body["suffix"]
    begin, end = edit["char_start"] - 7, edit["char_end"] - 7
    assert file[begin:end] == edit["existing_code"] == "    return x + 3\r\n"


def test_next_edit_at_a_cursor_inside_a_line_end() -> None:
    body = {"prefix": "a = 1\r", "suffix": "\nb = 2\r\nc = 3\r\n"}
    [edit] = suggested(body, "sweep", "a = 1\nb = 5\nc = 3\n")
    assert (edit["char_start"], edit["existing_code"]) == (7, "b = 2\r\n")
    assert edit["suggested_code"] == "b = 5\r\n"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "finish",
    [FinishReason.LENGTH, FinishReason.CONTENT_FILTER, FinishReason.TOOL_CALLS],
)
def test_next_edit_that_is_cut_is_none(name: str, finish: FinishReason) -> None:
    case = make_case(1, name)
    body = body_of(case)
    prompt = NAMES[name].prompt(cursor_of(body).request)
    answer = MODELS[name](prompt, case, 1)
    assert suggested(body, name, answer)
    assert suggested(body, name, answer, finish) == []


@pytest.mark.parametrize(
    "body",
    [
        {"prefix": "x", "edit_events": [{"edits": [{"after_text": 5}, 7]}, "odd"]},
        {"prefix": "a\r", "suffix": "\nb\r\n", "selection_begin_char": 1},
        {"prefix": "x" * 300_000, "suffix": "y" * 300_000},
        {"prefix": "\n" * 50_000, "suffix": "z", "path": "a\nb\r\nc"},
        {"prefix": "z", "selection_begin_char": -7, "prefix_begin": 10**12},
    ],
)
def test_next_edit_of_an_odd_body_has_bounds(body: dict[str, Any]) -> None:
    request = decode_next_edit(body, PLAIN).chat.next_edit
    for row in FORMATS:
        if request is None:  # a chat is asked
            continue
        assert len(row.prompt(request)) < 80_000
        assert row.most_tokens(request) < 20_000
        for answer in ("y = 1\n", "<|marker_1|>y = 1\n<|marker_2|>", "```\ny\n```"):
            for edit in suggested(body, row.name, answer):
                file = body["prefix"] + body.get("suffix", "")
                begin = edit["char_start"] - max(0, body.get("prefix_begin", 0))
                assert edit["existing_code"] in file[begin:]


# The prompts, as the makers publish them

SMALL = {
    "prefix": "def a(x):\n    return x\n\ndef b(y):\n    ret",
    "suffix": "urn y\n",
    "path": "m.py",
    "edit_events": [
        {
            "path": "m.py",
            "edits": [
                {
                    "after_line_start": 0,
                    "before_text": "def a(y):\n",
                    "after_text": "def a(x):\n",
                }
            ],
        }
    ],
}
CODE = "def a(x):\n    return x\n\ndef b(y):\n    ret{}urn y\n"
BEFORE = CODE.format("").replace("a(x)", "a(y)")
DIFF = "-def a(y):\n+def a(x):\n"
PROMPTS = {
    "zeta-2": "<[fim-suffix]>\n<[fim-prefix]><filename>edit_history\n"
    f"--- a/m.py\n+++ b/m.py\n{DIFF}\n<filename>m.py\n<<<<<<< CURRENT\n"
    f"{CODE.format('<|user_cursor|>')}=======\n<[fim-middle]>",
    "zeta-2.1": "<[fim-suffix]>\n<[fim-prefix]><filename>edit_history\n"
    f"--- a/m.py\n+++ b/m.py\n{DIFF}\n<filename>m.py\n"
    f"<|marker_1|>{CODE.format('<|user_cursor|>')}<|marker_2|>\n<[fim-middle]>",
    "sweep": f"<|file_sep|>m.py.diff\noriginal:\ndef a(y):\nupdated:\ndef a(x):\n"
    f"<|file_sep|>original/m.py\n{BEFORE}<|file_sep|>current/m.py\n{CODE.format('')}"
    "<|file_sep|>updated/m.py\n",
    "sweep-2": f"<|file_sep|>m.py\n{CODE.format('')}\n<|file_sep|>m.py:1:1\n"
    "original:\ndef a(y):\n\nupdated:\ndef a(x):\n\n"
    f"<|file_sep|>original/m.py:1:5\n{BEFORE}\n"
    f"<|file_sep|>current/m.py:1:5\n{CODE.format('<|cursor|>')}\n"
    "<|file_sep|>updated/m.py:1:5\ndef a(x):\n    return x\n\ndef b(y):\n",
    "mercury": "<|recently_viewed_code_snippets|>\n\n"
    "<|/recently_viewed_code_snippets|>\n\n<|current_file_content|>\n"
    "current_file_path: m.py\n<|code_to_edit|>\n"
    f"{CODE.format('<|cursor|>')}<|/code_to_edit|>\n<|/current_file_content|>\n\n"
    f"<|edit_diff_history|>\n--- m.py\n+++ m.py\n@@ -1,1 +1,1 @@\n{DIFF}"
    "<|/edit_diff_history|>\n",
}


@pytest.mark.parametrize("name", PROMPTS)
def test_next_edit_prompt_is_the_makers(name: str) -> None:
    assert NAMES[name].prompt(cursor_of(SMALL).request) == PROMPTS[name]


def test_next_edit_markers_stand_at_empty_lines_of_the_region() -> None:
    file = "".join(f"def step_{n}():\n" + "    go()\n" * 6 + "\n" for n in range(3))
    request = cursor_of({"prefix": file[:20], "suffix": file[20:], "path": "a"}).request
    marked = between(NAMES["zeta-2.1"].prompt(request), "<filename>a\n", "<[fim")
    assert re.findall(r"<\|marker_\d\|>(?:def \w+)?", marked) == [
        "<|marker_1|>def step_0",
        "<|marker_2|>def step_1",
        "<|marker_3|>def step_2",
        "<|marker_4|>",
    ]


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_next_edit_code_cannot_write_special_tokens(row: NextEditFormat) -> None:
    marks = [mark for mark in (*row.marks, *row.stop) if row.name != "codestral"]
    for mark in marks:
        prompts = []
        for word in ("word", mark):
            code = f"x = '{word}'\n" * 200
            edits = [{"path": word, "edits": [{"after_text": word}]}]
            body = {"prefix": code, "suffix": code, "path": word, "edit_events": edits}
            request = cursor_of(body).request
            prompts.append(row.prompt(request).count(mark))
        assert prompts[0] == prompts[1], mark
        region = row.excerpt(request).region
        shown = region.replace(mark, f"{mark[0]} {mark[1:]}")
        fenced = f"```\n{shown}\n```" if row.name == "mercury" else shown
        assert suggested(body, row.name, fenced) == [], mark


def test_next_edit_of_sweep_shows_the_last_edits_and_the_region_before_them() -> None:
    edits = [
        {"before_text": f"b{n}\n", "after_text": f"a{n}\n", "after_line_start": n}
        for n in range(5)
    ]
    events = [{"path": "p", "edits": edits}]
    sweep = NAMES["sweep"]
    for prefix, before in (("a4\nx\n", "b4\nx\n"), ("a4\na4\n", "a4\na4\n")):
        body = {"prefix": prefix, "path": "p", "edit_events": events}
        prompt = sweep.prompt(cursor_of(body).request)
        assert prompt.count("<|file_sep|>p.diff\noriginal:\nb") == 3
        assert f"<|file_sep|>original/p\n{before}<|file_sep|>" in prompt


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("hf.co/bartowski/zed-industries_zeta-2-GGUF:Q4_K_M", "zeta-2"),
        ("zeta-2.gguf", "zeta-2"),
        ("zeta-20", ""),
        ("zed-industries/zeta-2.1", "zeta-2.1"),
        ("zeta", ""),
        ("sweepai/sweep-next-edit-1.5B", "sweep"),
        ("sweep-next-edit-1.5b.q8_0.v2.gguf", "sweep"),
        ("sweepai/sweep-next-edit-v2-7B", "sweep-2"),
        ("mercury-edit-2", "mercury"),
        ("inception/mercury-coder-small", "mercury"),
        ("mercury-2", ""),
        ("codestral-latest", "codestral"),
        ("codestral-embed", ""),
        ("qwen2.5-coder:1.5b", ""),
    ],
)
def test_next_edit_format_is_recognised_by_the_model(model: str, name: str) -> None:
    assert format_of(model) == name
