"""The prompts in force: the shipped ones, and those of the user in their place."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from byok.prompts.kinds import FAMILY, SHIPPED, SHORT, TOOL
from byok.prompts.template import Choice, Template

_NOTHING: Mapping[str, str] = {}
_MOST_KEPT = 200  # situations whose texts are kept: writing one takes 0.1 ms
_SHARE = 12  # percent of a context window that a prompt may take
# Characters of a token in English text, fewer than tokenizers show (docs/PROMPTS.md).
_TOKEN = 3.5


def count_tokens(text: str) -> int:
    """Return how many tokens an English text has, rather too many than too few."""
    return int(len(text) / _TOKEN) + 1


def most_tokens(window: int) -> int:
    """Return how many tokens of a context window a prompt may take."""
    return window * _SHARE // 100


class Situation(NamedTuple):
    """What decides which text of a prompt a model is told.

    Attributes:
        variants: the variants that suit the model, the best first.
        window: its context window in tokens, 0 if that is unknown.
        tools: the names of the tools that are offered.
        conditions: the other conditions that hold, such as `parallel`.
    """

    variants: tuple[str, ...] = ()
    window: int = 0
    tools: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()

    def holds(self, condition: str) -> bool:
        """Tell whether a condition holds.

        `tool:NAME|NAME` does if one of these tools is offered, `family:NAME|NAME` if
        one of these families is among the variants.
        """
        kind, colon, names = condition.partition(":")
        known: Iterable[str] = self.tools if kind + colon == TOOL else self.variants
        if kind + colon in (TOOL, FAMILY):
            return not frozenset(names.split("|")).isdisjoint(known)
        return condition in self.conditions


class Prompt(NamedTuple):
    """What a model is told.

    `name` is that of its file without `.md`, "own " before it for one of the user's;
    `note` says what does not fit into the context window, "" if everything does.
    """

    text: str = ""
    name: str = ""
    note: str = ""


@dataclass(frozen=True)
class PromptSet:
    """Templates by the name of their file without `.md`: `agent`, `agent.small`.

    The user's `own` take the place of the shipped `templates`. An own text for all
    models counts for a model that has a shipped variant, too.
    """

    templates: Mapping[str, Template] = field(default_factory=dict)
    own: Mapping[str, Template] = field(default_factory=dict)
    _kept: dict[tuple[str, Situation], Prompt] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @cached_property
    def _named(self) -> frozenset[str]:
        return named_tools((*self.templates.values(), *self.own.values()))

    def render(
        self,
        name: str,
        situation: Situation = Situation(),  # noqa: B008 - it cannot change
        values: Mapping[str, str] = _NOTHING,
    ) -> Prompt:
        """Return a prompt, without a text if there is none of this name.

        A shipped text that takes too much of the context window gives way to its short
        form, also inside of one of the user's; the user's own words stay.
        """
        if values:
            return self._render(name, situation, values)
        # Other tools change no text, and clients may offer thousands.
        situation = situation._replace(tools=situation.tools & self._named)
        prompt = self._kept.get((name, situation))
        if prompt is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            prompt = self._render(name, situation, values)
            self._kept[name, situation] = prompt
        return prompt

    def _render(
        self, name: str, situation: Situation, values: Mapping[str, str]
    ) -> Prompt:
        chosen = _choose(self.own, name, situation.variants)
        if not chosen:
            return self._render_shipped(name, situation, values)
        text, note = self._fill(self.own[chosen], name, situation, values)
        if _is_too_long(text, situation.window):
            brief = situation._replace(variants=(SHORT, *situation.variants))
            long, chosen = chosen, _choose(self.own, name, brief.variants)
            text, note = self._fill(self.own[chosen], name, brief, values)
            if chosen != long:
                note = _instead(f"your own {chosen}", f"your own {long}", brief.window)
        if _is_too_long(text, situation.window):
            note = f"your own {chosen} takes more than {_share(situation.window)}"
        return Prompt(text, f"own {chosen}", note)

    def _fill(
        self,
        own: Template,
        name: str,
        situation: Situation,
        values: Mapping[str, str],
    ) -> tuple[str, str]:
        """Return a text of the user's, and what of the shipped one in it gave way."""
        if not own.has(SHIPPED):
            return own.render(values, situation.holds), ""
        base = self._render_shipped(name, situation, values)
        values = {**values, SHIPPED: base.text}
        return own.render(values, situation.holds), base.note

    def _render_shipped(
        self, name: str, situation: Situation, values: Mapping[str, str]
    ) -> Prompt:
        chosen = _choose(self.templates, name, situation.variants)
        if not chosen:
            return Prompt()
        text = self.templates[chosen].render(values, situation.holds)
        short = f"{name}.{SHORT}"
        window = situation.window
        if short not in self.templates or not (
            chosen == short or _is_too_long(text, window)
        ):
            return Prompt(text, chosen)
        if chosen == short:
            return Prompt(
                text, short, f"{short} is used: the window has {window:,} tokens"
            )
        text = self.templates[short].render(values, situation.holds)
        return Prompt(text, short, _instead(short, chosen, window))

    @cached_property
    def version(self) -> str:
        """Eight characters that change with any text."""
        seen = hashlib.sha256()
        for templates in (self.templates, self.own):
            for name in sorted(templates):
                seen.update(f"{name}\0{templates[name]!r}\0".encode())
            seen.update(b"\0")
        return seen.hexdigest()[:8]


def named_tools(templates: Iterable[Template]) -> frozenset[str]:
    """Return every tool on which a part of these templates depends."""
    conditions = (
        part.condition.removeprefix(TOOL)
        for template in templates
        for part in template.walk()
        if isinstance(part, Choice) and part.condition.startswith(TOOL)
    )
    return frozenset(tool for names in conditions for tool in names.split("|"))


def _choose(
    templates: Mapping[str, Template], name: str, variants: Iterable[str]
) -> str:
    """Return the name of the first variant with a text, else that of the text for all.

    It is "" if there is neither.
    """
    names = (*(f"{name}.{variant}" for variant in variants), name)
    return next((n for n in names if n in templates), "")


def _is_too_long(text: str, window: int) -> bool:
    return window > 0 and count_tokens(text) > most_tokens(window)


def _instead(used: str, long: str, window: int) -> str:
    return f"{used} is used: {long} takes more than {_share(window)}"


def _share(window: int) -> str:
    return f"{_SHARE} % of the window of {window:,} tokens"
