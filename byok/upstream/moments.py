"""The right model for a moment of a chat: the user's rules, and what they chose.

Rules are applied from the last of `RULES` to the first, so an earlier one prevails. The
usual model, which the client or the settings name, answers where none of them holds.

A turn stays with its model: requests that only bring results of tools go where the
question went. After a picture the usual model comes back with the next question, unless
only the image model has the conversation in its cache: it answered within the last five
minutes, no other model did, and the conversation has more than 8,000 tokens. After the
other moments nothing is worth keeping: tools or the beginning of the prompt changed.

Who names a model on this machine in a client may do so to keep a chat here. Rules whose
model is elsewhere do not apply to it.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import Message, Role, ToolDefinition
from byok.core.events import Notice
from byok.core.routing import MAX_ID_LENGTH, ChatMoment
from byok.dialects.chat_changes import pictures_of
from byok.upstream.base import Destination, Plan, Recovery
from byok.upstream.demo import RefusingUpstream
from byok.upstream.pictures import is_usable
from byok.upstream.router import Router
from byok.upstream.window.estimate import BYTES_A_TOKEN, weigh_said, weigh_tools

_MOST_KEPT, _MOST_SHOWN = 1000, 20
_CACHE_SECONDS = 300.0  # for which upstreams keep a prompt
_LONG = 8_000 * BYTES_A_TOKEN  # bytes that are worth a cache
_NEVER = float("-inf")


class ChatFacts(Struct, frozen=True):
    """What rules ask about a chat; `weight` is in bytes, up to the newest question.

    `is_question`: the user speaks; else it only brings results of tools.
    """

    is_question: bool = True
    has_picture: bool = False
    weight: int = 0
    has_parent: bool = False
    only_reads: bool = False


def facts_of(
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition],
    *,
    has_parent: bool = False,
    only_reads: bool = False,
) -> ChatFacts:
    """Return the facts about a conversation: of its newest question and before."""
    asked = [n for n, message in enumerate(messages) if message.role is Role.USER]
    upto = messages[: asked[-1] + 1] if asked else messages
    return ChatFacts(
        is_question=not asked or asked[-1] == len(messages) - 1,
        has_picture=bool(asked) and any(map(is_usable, pictures_of(upto[-1]))),
        weight=sum(map(weigh_said, upto)) + weigh_tools(tools),
        has_parent=has_parent,
        only_reads=only_reads,
    )


class Rule(NamedTuple):
    """One rule: `holds` gets the facts, and the bytes that are long for the model."""

    moment: ChatMoment
    why: str
    holds: Callable[[ChatFacts, float], bool]


RULES = (
    Rule(
        ChatMoment.IMAGE,
        "the question brings a picture",
        lambda facts, _: facts.has_picture,
    ),
    Rule(
        ChatMoment.LONG_CONTEXT,
        "the conversation fills most of its model's window",
        lambda facts, much: 0 < much < facts.weight,
    ),
    Rule(
        ChatMoment.SUBAGENT,
        "an agent began this conversation",
        lambda facts, _: facts.has_parent,
    ),
    Rule(
        ChatMoment.PLAN,
        "the agent has only tools that read",
        lambda facts, _: facts.only_reads,
    ),
)
_CACHED = "only this model has the conversation in its cache, since a picture"
_SAME_TURN = "a turn stays with its model"


class ModelChoice(Struct, frozen=True):
    """Who answers a chat: what chose it, and why, in half a sentence."""

    rule: str
    why: str
    model: str = ""
    at: float = 0.0  # seconds since 1970


BY_CLIENT = ModelChoice("client", "the client names it")
BY_PURPOSE = ModelChoice("chat", "your settings name it for chats")
BY_DEFAULT = ModelChoice("default", "it is the default model")


class KeptMoment(NamedTuple):
    """The moment of a conversation; times are of its last requests to models.

    `told` are the sentences that its user was told.
    """

    moment: ChatMoment | None = None
    image_at: float = _NEVER
    other_at: float = _NEVER
    told: frozenset[str] = frozenset()


class MomentMemory:
    """The moments of conversations, and the last choices; kept while settings change.

    `clock` measures seconds, `now` gives those since 1970.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.clock = clock
        self._now = now
        self._kept = BoundedMap[str, KeptMoment](_MOST_KEPT)
        self._choices = deque[ModelChoice](maxlen=_MOST_SHOWN)

    def find(self, conversation: str) -> KeptMoment | None:
        """Return what is known of a conversation, None for an unknown one."""
        return self._kept.get(conversation)

    def keep(
        self, conversation: str, kept: KeptMoment, moment: ChatMoment | None, told: str
    ) -> None:
        """Remember the moment of a request, if its conversation has a usable id."""
        if not 0 < len(conversation) <= MAX_ID_LENGTH:
            return
        image_at, other_at = kept.image_at, kept.other_at
        if moment is ChatMoment.IMAGE:
            image_at = self.clock()
        else:
            other_at = self.clock()
        said = kept.told | {told} if told else kept.told
        self._kept[conversation] = KeptMoment(moment, image_at, other_at, said)

    def has_cached(self, kept: KeptMoment) -> bool:
        """Tell whether only the image model has a conversation in its cache."""
        since = self.clock() - _CACHE_SECONDS
        return kept.moment is ChatMoment.IMAGE and kept.other_at < since < kept.image_at

    def note(self, by: ModelChoice, model: str) -> None:
        """Remember for `byok models why` how a model was chosen."""
        self._choices.append(replace(by, model=model, at=self._now()))

    def choices(self) -> list[ModelChoice]:
        """Return the last choices, the newest first."""
        return [*reversed(self._choices)]


class MomentNotice(Recovery):
    """Tells the user with the answer who gives it; it recovers nothing."""

    def __init__(self, text: str) -> None:
        self._notice = Notice(text)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return the notice."""
        return (self._notice,)


class Moments(Struct, frozen=True):
    """Chooses models by the user's rules; `models` are those of the rules in force.

    A chat is long above a `share` of the window that `window_of` tells in tokens, 0 for
    an unknown one. `local` are the names of the upstreams on this machine.
    """

    models: Mapping[ChatMoment, str]
    share: float
    router: Router
    window_of: Callable[[Destination], int]
    local: Collection[str]
    memory: MomentMemory

    async def choose(
        self,
        usual: Destination,
        by: ModelChoice,
        facts: ChatFacts,
        conversation: str = "",
    ) -> Destination:
        """Return who answers a chat: the usual one, chosen `by` this, or another.

        The user is told once in a conversation why another one answers, or may not.
        """
        if not self.models or isinstance(usual.upstream, RefusingUpstream):
            self.memory.note(by, usual.model_id)
            return usual
        kept = self.memory.find(conversation)
        moment: ChatMoment | None = None
        chosen, told, is_named = usual, "", by is BY_CLIENT
        for rule in reversed(RULES):
            why = self._why(rule, facts, kept, moment, chosen)
            if not why:
                continue
            other = await self.router.choose_listed(self.models[rule.moment])
            if is_named and not self._may_leave(usual, other):
                told = _refusal(rule, usual, other)
                continue
            moment, chosen, told = rule.moment, other, _notice(rule, usual, other)
            by = ModelChoice(rule.moment, why)
        self.memory.note(by, chosen.model_id)
        before = kept or KeptMoment()
        self.memory.keep(conversation, before, moment, told)
        if not told or told in before.told:
            return chosen
        return replace(chosen, recoveries=(MomentNotice(told),))

    def _why(
        self,
        rule: Rule,
        facts: ChatFacts,
        kept: KeptMoment | None,
        moment: ChatMoment | None,
        chosen: Destination,
    ) -> str:
        """Return why a rule holds, or ""; `chosen` is by those that it outranks."""
        if rule.moment not in self.models:
            return ""
        if kept is not None and not facts.is_question:
            return _SAME_TURN if kept.moment is rule.moment else ""
        if rule.holds(facts, self.share * self.window_of(chosen) * BYTES_A_TOKEN):
            return rule.why
        if (
            rule.moment is not ChatMoment.IMAGE
            or moment is ChatMoment.LONG_CONTEXT
            or not kept
        ):
            return ""
        is_worth_it = facts.weight > _LONG and self.memory.has_cached(kept)
        return _CACHED if is_worth_it else ""

    def _may_leave(self, usual: Destination, other: Destination) -> bool:
        """Tell whether a chat with a model that a client names may go to another."""
        names = (usual.upstream.name, other.upstream.name)
        return names[0] not in self.local or names[1] in self.local


def _notice(rule: Rule, usual: Destination, other: Destination) -> str:
    """Return what the user is told; of a sub-agent's answer its agent is the reader."""
    if other.model_id == usual.model_id or rule.moment is ChatMoment.SUBAGENT:
        return ""
    setting = f"[routing.models] {rule.moment}"
    return f"{other.model_id} answers, because {rule.why} ({setting})."


def _refusal(rule: Rule, usual: Destination, other: Destination) -> str:
    return (
        f"{usual.model_id} answers although {rule.why}: you chose a model on this "
        f"machine, and {other.model_id} ([routing.models] {rule.moment}) is not on it."
    )
