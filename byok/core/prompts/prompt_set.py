"""All kinds of prompts, the texts in force, and the variants that suit a model."""

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

TOOL = "tool:"  # begins a condition: one of these tools is offered
FAMILY = "family:"  # begins a condition: the model is of one of these families
SHIPPED = "shipped"  # the slot for the shipped text, in a file that only adds to it
END = ".md"
_NOTHING: Mapping[str, str] = {}
_NO_TEXT = Template(())
_ONLY_SHIPPED = Template((Slot(SHIPPED, 1, alone=True),))
_MAX_CACHED = 200  # rendered texts in the cache: rendering one takes 0.1 ms
_MAX_PERCENT = 12  # of a context window, for a prompt
# In English text; tokenizers count more (docs/reference/prompts.md).
_CHARS_PER_TOKEN = 3.5
SMALL_WINDOW = 8192  # tokens; below, the whole texts take more than an eighth of it
# The number of parameters in a model's name: "7b", "1.7b", "e4b", "135m".
_SIZE = re.compile(
    r"(?<![a-z\d.])e?(\d{1,4}(?:\.\d+)?)([bm])(?![a-z\d])", re.IGNORECASE
)
_SMALL_PARAMETERS = 10e9
_MIN_PARAMETERS = 20e6  # "1m" in a name is the length of a context window
_UNITS = {"b": 1e9, "m": 1e6}
_MAX_CONVERSATIONS = 1000
_MAX_KEY_CHARS = 1000  # of the ids of a conversation and a model


class PromptKind(Struct, frozen=True):
    """A kind of prompt: its name, and the slots and conditions that its text may use.

    The name is that of its file; `about` says in one line what the prompt is for.
    """

    name: str
    about: str
    slots: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    tools: bool = False


def _kind(name: str, about: str, slots: str = "", conditions: str = "") -> PromptKind:
    names = frozenset(conditions.split())
    return PromptKind(
        name, about, frozenset(slots.split()), names - {"tool"}, "tool" in names
    )


SHORT, SMALL, REASONING = "short", "small", "reasoning"
FAMILIES = ("claude", "gpt", "gemini", "qwen", "deepseek", "kimi", "glm")
# Variants of prompts for some models: `agent.small.md` beside `agent.md`.
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


def count_tokens(text: str) -> int:
    """Estimate the number of tokens of a text, rather too high than too low.

    Characters of other scripts count as a token each.
    """
    plain = len(text.encode("ascii", "ignore"))
    return int(plain / _CHARS_PER_TOKEN) + len(text) - plain + 1


def max_prompt_tokens(window: int) -> int:
    """Return the maximum tokens of a prompt for a context window."""
    return window * _MAX_PERCENT // 100


class Situation(Struct, frozen=True):
    """The facts that decide which text of a prompt a model gets.

    Attributes:
        variants: the variants that suit the model, the best first.
        window: its context window in tokens, 0 if that is unknown.
        tools: the names of the tools that are offered.
        conditions: the other conditions that hold, such as `parallel`.
        taken: the tokens of another prompt of the request, which has the same budget.
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
        available: Iterable[str] = self.tools if kind + colon == TOOL else self.variants
        if kind + colon in (TOOL, FAMILY):
            return not frozenset(names.split("|")).isdisjoint(available)
        return condition in self.conditions


class Prompt(NamedTuple):
    """A rendered prompt.

    `name` is that of its file without `.md`, with "own " before it for a file of the
    user's; `note` says what does not fit into the context window, "" if all does.
    """

    text: str = ""
    name: str = ""
    note: str = ""


@dataclass(frozen=True)
class PromptSet:
    """Templates by the name of their file without `.md`: `agent`, `agent.small`.

    The user's `own` templates replace the shipped `templates`. An own text without a
    variant also replaces the shipped variants.
    """

    templates: Mapping[str, Template] = field(default_factory=dict)
    own: Mapping[str, Template] = field(default_factory=dict)
    _cache: BoundedMap[tuple[str, Situation], Prompt] = field(
        default_factory=lambda: BoundedMap(_MAX_CACHED),
        init=False,
        compare=False,
        repr=False,
    )

    @cached_property
    def _named_tools(self) -> frozenset[str]:
        return named_tools((*self.templates.values(), *self.own.values()))

    def render(
        self,
        name: str,
        situation: Situation = Situation(),  # noqa: B008 - it cannot change
        values: Mapping[str, str] = _NOTHING,
    ) -> Prompt:
        """Return a prompt.

        A shipped text that takes too much of the context window is replaced by its
        short form, also inside a text of the user's; the user's own words stay.

        Raises:
            LookupError: there is no prompt of this name.
        """
        if values:
            return self._render(name, situation, values)
        # Other tools do not affect the text, and clients may offer thousands.
        situation = replace(situation, tools=situation.tools & self._named_tools)
        prompt = self._cache.get((name, situation))
        if prompt is None:
            prompt = self._render(name, situation, values)
            self._cache[name, situation] = prompt
        return prompt

    def _render(
        self, name: str, situation: Situation, values: Mapping[str, str]
    ) -> Prompt:
        own_names = _candidate_names(self.own, name, situation) or [""]
        shipped_names = _candidate_names(self.templates, name, situation) or [""]
        if own_names == shipped_names == [""]:
            raise LookupError(f"no prompt is called {name}")
        for own_name, shipped_name in product(own_names, shipped_names):
            template = self.own.get(own_name, _ONLY_SHIPPED)
            shipped = self.templates.get(shipped_name, _NO_TEXT)
            slots = {**values, SHIPPED: shipped.render(values, situation.holds)}
            text = template.render(slots, situation.holds)
            if not _is_too_long(text, situation):
                break
        variants = _variants_for_any_window(situation)
        best_own = _best_name(self.own, name, variants)
        best_shipped = _best_name(self.templates, name, variants)
        window = f"the window of {situation.window:,} tokens"
        note = ""
        if own_name and _is_too_long(text, situation):
            note = f"your own {own_name} takes more than {_MAX_PERCENT} % of {window}"
        elif own_name != best_own:
            instead = f"your own {best_own}" if best_own else best_shipped
            note = f"your own {own_name} is used instead of {instead} for {window}"
        elif shipped_name != best_shipped and template.has(SHIPPED):
            note = f"{shipped_name} is used instead of {best_shipped} for {window}"
        return Prompt(text, f"own {own_name}" if own_name else shipped_name, note)

    @cached_property
    def version(self) -> str:
        """Eight characters of a hash of all texts."""
        digest = hashlib.sha256()
        for templates in (self.templates, self.own):
            for name in sorted(templates):
                digest.update(f"{name}\0{templates[name]!r}\0".encode())
            digest.update(b"\0")
        return digest.hexdigest()[:8]


def named_tools(templates: Iterable[Template]) -> frozenset[str]:
    """Return the names of all tools in conditions of these templates."""
    conditions = (
        part.condition.removeprefix(TOOL)
        for template in templates
        for part in template.walk()
        if isinstance(part, Choice) and part.condition.startswith(TOOL)
    )
    return frozenset(tool for names in conditions for tool in names.split("|"))


def _best_name(
    templates: Mapping[str, Template], name: str, variants: Iterable[str]
) -> str:
    """Return the name of the first variant with a template, else the plain name.

    It is "" if there is no template for either.
    """
    names = (*(f"{name}.{variant}" for variant in variants), name)
    return next((n for n in names if n in templates), "")


def _variants_for_any_window(situation: Situation) -> list[str]:
    """Return the variants that suit the model, except the one for short windows."""
    return [variant for variant in situation.variants if variant != SHORT]


def _candidate_names(
    templates: Mapping[str, Template], name: str, situation: Situation
) -> list[str]:
    """Return the names of the templates to try, each shorter than the one before.

    For a short window, the template that suits the model best is left out, if there is
    a shorter one.
    """
    best = _best_name(templates, name, _variants_for_any_window(situation))
    shorter = [f"{name}.{SMALL}", f"{name}.{SHORT}"]
    shorter = [text for text in shorter if text in templates]
    if best in shorter or (SHORT in situation.variants and shorter):
        return shorter
    return [best, *shorter] if best else shorter


def _is_too_long(text: str, situation: Situation) -> bool:
    tokens = situation.taken + count_tokens(text)
    return situation.window > 0 and tokens > max_prompt_tokens(situation.window)


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


class ModelFit(NamedTuple):
    """The facts about a model that its prompts must suit.

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
    """Return the variants that suit a model of this name, and its window.

    `family` is the name of its family, or ""; with `thinks` it reasons by itself;
    `window` is its context window in tokens, 0 if that is unknown.
    """
    small = has_few_parameters(model)
    by_variant = {
        SHORT: 0 < window < SMALL_WINDOW,
        SMALL: small,
        family: family in FAMILIES,
        REASONING: thinks and not small,
    }
    return ModelFit(tuple(name for name, suits in by_variant.items() if suits), window)


@lru_cache  # few models answer all requests
def has_few_parameters(model: str) -> bool:
    """Tell whether a model's name says that it has fewer than 10 billion parameters."""
    sizes = [float(n) * _UNITS[unit.lower()] for n, unit in _SIZE.findall(model)]
    return bool(sizes) and _MIN_PARAMETERS <= max(sizes) < _SMALL_PARAMETERS


class FitMemory:
    """Keeps the fit of a model since the first turn of a conversation; not thread-safe.

    Facts about a model may arrive while it answers, with a list of models or from a
    local server that has loaded it. A prompt that changed with them would miss the
    prompt cache.
    """

    def __init__(self) -> None:
        self._cache = BoundedMap[tuple[str, str], ModelFit](_MAX_CONVERSATIONS)

    def recall(
        self, conversation: str, model_id: str, find: Callable[[], ModelFit]
    ) -> ModelFit:
        """Return the fit of the first turn, in which it is found by `find`.

        Nothing is stored for requests without a conversation, or with very long ids.
        """
        if not conversation or len(conversation) + len(model_id) > _MAX_KEY_CHARS:
            return find()
        key = (conversation, model_id)
        if (fit := self._cache.get(key)) is None:
            fit = self._cache[key] = find()
        return fit
