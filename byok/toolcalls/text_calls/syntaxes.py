"""The markers of tool calls in text, by family of models."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from byok.toolcalls.text_calls.parsers import (
    Parser,
    invoke_parser,
    parse_deepseek,
    parse_functions,
    parse_glm,
    parse_hermes,
    parse_kimi,
    parse_llama,
    parse_mistral,
)

_NAME = r"[\w]"


@dataclass(frozen=True, slots=True)
class Markup:
    """One kind of block that holds tool calls.

    Attributes:
        opener: the text that begins it.
        closer: the text that ends it; "" where only the end of the answer does.
        parse: reads what stands between them.
        head: a regular expression for the first character of that, after white space.
        inside: the markers belong to what is parsed.
        at_start: it counts only as the beginning of an answer.
    """

    opener: str
    closer: str
    parse: Parser
    head: str = "<"
    inside: bool = False
    at_start: bool = False


@dataclass(frozen=True)
class Syntax:
    """The kinds of blocks of one family."""

    blocks: tuple[Markup, ...]

    def find(self, text: str, at: int = 0) -> tuple[int, Markup] | None:
        """Return the first block that begins in a text, and where."""
        found = ((text.find(block.opener, at), block) for block in self.blocks)
        known = [place for place in found if place[0] >= 0]
        return min(known, key=lambda place: place[0], default=None)

    def is_suspect(self, text: str) -> bool:
        """Tell whether an opener may begin in a text."""
        return any(block.opener[0] in text for block in self.blocks)

    def kept_back(self, text: str) -> int:
        """Return how many characters at the end may begin an opener."""
        return max(_overlap(text, block.opener) for block in self.blocks)


def _overlap(text: str, opener: str) -> int:
    start = text.rfind(opener[0], max(0, len(text) - len(opener) + 1))
    while start >= 0:
        if opener.startswith(text[start:]):
            longer = text.rfind(opener[0], max(0, len(text) - len(opener) + 1), start)
            if longer >= 0 and opener.startswith(text[longer:]):
                start = longer
                continue
            return len(text) - start
        start = text.rfind(opener[0], max(0, len(text) - len(opener) + 1), start)
    return 0


def _json_head(openers: Iterable[str]) -> tuple[Markup, ...]:
    return tuple(
        Markup(opener, "", parse_llama, ".", inside=True, at_start=True)
        for opener in openers
    )


_FUNCTION = Markup("<function=", "</function>", parse_functions, _NAME, inside=True)
_DSML = "｜DSML｜"
SYNTAXES: dict[str, Syntax] = {
    "hermes": Syntax(
        (Markup("<tool_call>", "</tool_call>", parse_hermes, r"[<{[]"), _FUNCTION)
    ),
    "glm": Syntax((Markup("<tool_call>", "</tool_call>", parse_glm, _NAME),)),
    "kimi": Syntax(
        (
            Markup(
                "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", parse_kimi
            ),
            Markup(
                "<|tool_call_begin|>",
                "<|tool_call_end|>",
                parse_kimi,
                _NAME,
                inside=True,
            ),
        )
    ),
    "deepseek": Syntax(
        (
            Markup("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", parse_deepseek),
            *(
                Markup(f"<{_DSML}{name}>", f"</{_DSML}{name}>", invoke_parser(_DSML))
                for name in ("function_calls", "tool_calls")
            ),
        )
    ),
    "minimax": Syntax(
        (Markup("<minimax:tool_call>", "</minimax:tool_call>", invoke_parser("")),)
    ),
    "llama": Syntax(
        (
            Markup("<|python_tag|>", "", parse_llama, r"{"),
            _FUNCTION,
            *_json_head(('{"name"', '{"type": "function"')),
        )
    ),
    "mistral": Syntax((Markup("[TOOL_CALLS]", "", parse_mistral, r"[\w[{]"),)),
}


def head_fits(block: Markup, text: str) -> bool | None:
    """Tell whether a block can begin so; None if that is not known yet."""
    start = text.lstrip()
    return re.match(block.head, start) is not None if start else None
