"""The prompts that there are and those in force: shipped ones, or the user's."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import product
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.prompts.template import Choice, Slot, Template, parse_template

TOOL = "tool:"  # begins the condition that one of these tools is offered
FAMILY = "family:"  # begins the condition that the model is of one of these families
SHIPPED = "shipped"
"""The slot for the shipped text, in a file of the user's that only adds to it."""


class PromptKind(Struct, frozen=True):
    """One prompt: its name, which is that of its file, and what its text may name.

    `about` says in one line when a model is told it.
    """

    name: str
    about: str
    slots: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    tools: bool = False


def _kind(name: str, about: str, slots: str = "", conditions: str = "") -> PromptKind:
    found = frozenset(conditions.split())
    return PromptKind(
        name, about, frozenset(slots.split()), found - {"tool"}, "tool" in found
    )


SHORT, SMALL, REASONING = "short", "small", "reasoning"
FAMILIES = ("claude", "gpt", "gemini", "qwen", "deepseek", "kimi", "glm")
# A prompt for a condition of the model: `agent.small.md` beside `agent.md`.
VARIANTS = {
    SHORT: "context windows in which the whole text takes too much room",
    SMALL: "local models of few parameters",  # shorter, firmer, with an example
    **{name: f"models of the {name} family" for name in FAMILIES},
    REASONING: "models that think by themselves",  # no advice on how to think
}
KINDS = {
    kind.name: kind
    for kind in (
        _kind("agent", "agent modes", conditions="tool parallel snippets"),
        _kind(
            "ask",
            "agent modes with tools that only read",
            conditions="tool parallel snippets",
        ),
        _kind("chat", "chat modes", conditions="tool snippets"),
        _kind("prototype", "the persona that builds prototypes"),
        _kind("brainstorm", "the persona that collects ideas"),
        _kind("review", "the persona that reviews"),
        _kind("silent", "background jobs of a client"),
        _kind("commit", "commit messages"),
        _kind("title", "titles of conversations"),
        _kind("enhance", "rewriting of prompts"),
        _kind("edit", "edits of a selection"),
        _kind("edit_file", "edits of a file that an agent describes"),
        _kind("smart_paste", "code blocks put into a file", conditions="selection"),
        _kind("next_edit", "suggestions for the next edit"),
        _kind("next_edit_place", "places for the next edit"),
        _kind("completion", "inline completions by a chat model", "mark"),
        _kind("chat_input", "completions in the chat input box", "mark"),
        _kind("summary", "summaries of long conversations", "words holds"),
        _kind("picture", "descriptions of pictures, for models that see none"),
        _kind("translate", "English search words for a question"),
        _kind("rerank", "the order of the files that a search found", "most"),
    )
}


_NOTHING: Mapping[str, str] = {}
_NO_TEXT = Template(())
_ONLY_SHIPPED = Template((Slot(SHIPPED, 1, alone=True),))
_MOST_KEPT = 200  # situations whose texts are kept: writing one takes 0.1 ms
_SHARE = 12  # percent of a context window that a prompt may take
# Characters of a token in English text, fewer than tokenizers show
# (docs/reference/prompts.md).
_TOKEN = 3.5


def count_tokens(text: str) -> int:
    """Return how many tokens a text has, rather too many than too few.

    Letters of other scripts count as a token each.
    """
    plain = len(text.encode("ascii", "ignore"))
    return int(plain / _TOKEN) + len(text) - plain + 1


def most_tokens(window: int) -> int:
    """Return how many tokens of a context window a prompt may take."""
    return window * _SHARE // 100


class Situation(Struct, frozen=True):
    """What decides which text of a prompt a model is told.

    Attributes:
        variants: the variants that suit the model, the best first.
        window: its context window in tokens, 0 if that is unknown.
        tools: the names of the tools that are offered.
        conditions: the other conditions that hold, such as `parallel`.
        taken: how many tokens of a prompt's share another prompt of the request takes.
    """

    variants: tuple[str, ...] = ()
    window: int = 0
    tools: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    taken: int = 0

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
    _kept: BoundedMap[tuple[str, Situation], Prompt] = field(
        default_factory=lambda: BoundedMap(_MOST_KEPT),
        init=False,
        compare=False,
        repr=False,
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
        """Return a prompt.

        A shipped text that takes too much of the context window gives way to its short
        form, also inside of one of the user's; the user's own words stay.

        Raises:
            LookupError: there is no prompt of this name.
        """
        if values:
            return self._render(name, situation, values)
        # Other tools change no text, and clients may offer thousands.
        situation = replace(situation, tools=situation.tools & self._named)
        prompt = self._kept.get((name, situation))
        if prompt is None:
            prompt = self._render(name, situation, values)
            self._kept[name, situation] = prompt
        return prompt

    def _render(
        self, name: str, situation: Situation, values: Mapping[str, str]
    ) -> Prompt:
        owns = _texts(self.own, name, situation) or [""]
        shipped = _texts(self.templates, name, situation) or [""]
        if owns == shipped == [""]:
            raise LookupError(f"no prompt is called {name}")
        for own, used in product(owns, shipped):
            around = self.own.get(own, _ONLY_SHIPPED)
            base = self.templates.get(used, _NO_TEXT).render(values, situation.holds)
            text = around.render({**values, SHIPPED: base}, situation.holds)
            if not _is_too_long(text, situation):
                break
        best_own = _choose(self.own, name, _lasting(situation))
        best = _choose(self.templates, name, _lasting(situation))
        window = f"the window of {situation.window:,} tokens"
        note = ""
        if own and _is_too_long(text, situation):
            note = f"your own {own} takes more than {_SHARE} % of {window}"
        elif own != best_own:
            instead = f"your own {best_own}" if best_own else best
            note = f"your own {own} is used instead of {instead} for {window}"
        elif used != best and around.has(SHIPPED):
            note = f"{used} is used instead of {best} for {window}"
        return Prompt(text, f"own {own}" if own else used, note)

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


def _lasting(situation: Situation) -> list[str]:
    """Return the variants that suit the model in any window."""
    return [variant for variant in situation.variants if variant != SHORT]


def _texts(
    templates: Mapping[str, Template], name: str, situation: Situation
) -> list[str]:
    """Return the texts to try, each shorter than the one before.

    The one that suits the model best is not for a short window, if there is another.
    """
    best = _choose(templates, name, _lasting(situation))
    shorter = [f"{name}.{SMALL}", f"{name}.{SHORT}"]
    shorter = [text for text in shorter if text in templates]
    if best in shorter or (SHORT in situation.variants and shorter):
        return shorter
    return [best, *shorter] if best else shorter


def _is_too_long(text: str, situation: Situation) -> bool:
    tokens = situation.taken + count_tokens(text)
    return situation.window > 0 and tokens > most_tokens(situation.window)


# The prompts that come with byok.


END = ".md"


@cache
def shipped_texts() -> dict[str, str]:
    """Return the shipped prompts by name, with their comments."""
    return {
        file.name.removesuffix(END): file.read_text("utf-8")
        for file in resources.files(__package__).iterdir()
        if file.name.endswith(END)
    }


@cache
def shipped_prompts() -> PromptSet:
    """Return the prompts without those of the user."""
    texts = shipped_texts()
    return PromptSet({name: parse_template(text) for name, text in texts.items()})


# Which variants of prompts suit a model.


SMALL_WINDOW = 8192  # tokens; below, the whole texts take more than an eighth of it
# "7b", "1.7b", "e4b", "135m" in the name: the number of parameters, as hosts write it.
_SIZE = re.compile(
    r"(?<![a-z\d.])e?(\d{1,4}(?:\.\d+)?)([bm])(?![a-z\d])", re.IGNORECASE
)
_FEW = 10e9  # parameters
_FEWEST = 20e6  # of a model that can talk; "1m" is the length of a context window
_UNITS = {"b": 1e9, "m": 1e6}
_MAX_KEPT = 1000  # conversations
_LONGEST_KEY = 1000  # characters of the ids of a conversation and a model


class ModelFit(NamedTuple):
    """What prompts must suit.

    Attributes:
        variants: the variants of prompts for the model, the best first.
        window: its context window in tokens, 0 if that is unknown.
    """

    variants: tuple[str, ...] = ()
    window: int = 0

    @property
    def is_small(self) -> bool:
        """Whether the model or its window is small."""
        return SMALL in self.variants or SHORT in self.variants


def find_fit(model: str, *, family: str, thinks: bool, window: int) -> ModelFit:
    """Return what suits a model of this name.

    `family` is the name of its family, or ""; `thinks` says that it reasons by itself;
    `window` is its context window in tokens, 0 if that is unknown.
    """
    small = has_few_parameters(model)
    found = {
        SHORT: 0 < window < SMALL_WINDOW,
        SMALL: small,
        family: family in FAMILIES,
        REASONING: thinks and not small,
    }
    return ModelFit(tuple(name for name, suits in found.items() if suits), window)


@lru_cache  # few models answer all requests
def has_few_parameters(model: str) -> bool:
    """Tell whether a model's name says that it has fewer than 10 billion parameters."""
    sizes = [float(n) * _UNITS[unit.lower()] for n, unit in _SIZE.findall(model)]
    return bool(sizes) and _FEWEST <= max(sizes) < _FEW


class FitMemory:
    """Keeps what suited a model when a conversation began; for use on one thread.

    What is known of a model may grow while it answers: its list arrives, a local server
    tells how it was loaded. A prompt that changed with it would miss the prompt cache.
    """

    def __init__(self) -> None:
        self._kept = BoundedMap[tuple[str, str], ModelFit](_MAX_KEPT)

    def recall(
        self, conversation: str, model_id: str, find: Callable[[], ModelFit]
    ) -> ModelFit:
        """Return what suited the model in the first turn; in that one, `find` it.

        Nothing is kept of requests without a conversation, or with endless ids.
        """
        if not conversation or len(conversation) + len(model_id) > _LONGEST_KEY:
            return find()
        key = (conversation, model_id)
        if (fit := self._kept.get(key)) is None:
            fit = self._kept[key] = find()
        return fit
