"""Chooses the model for a moment of a chat by the user's rules.

Rules are applied from the last of `RULES` to the first, so an earlier one prevails. If
no rule holds, the usual model answers, which the client or the settings name.

A turn stays with its model: requests that only bring results of tools go where the
question went. After a picture the usual model answers the next question, unless only
the image model has the conversation in its cache: it answered within the last five
minutes, no other model did, and the conversation has more than 8,000 tokens. After the
other moments no cache is worth keeping: tools or the beginning of the prompt changed.

A user who chooses a model on this machine in a client may do so to keep the chat here.
Rules whose model is elsewhere do not apply to such a chat.
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
from byok.upstream.window.estimate import (
    BYTES_A_TOKEN,
    weigh_tools,
    weigh_without_thoughts,
)

_MAX_CONVERSATIONS, _MAX_CHOICES = 1000, 20
_CACHE_SECONDS = 300.0  # for which upstreams cache a prompt
_MIN_CACHED_WEIGHT = 8_000 * BYTES_A_TOKEN  # bytes; a shorter prompt needs no cache
_NEVER = float("-inf")


class ChatFacts(Struct, frozen=True):
    """The facts about a chat that rules use.

    `is_question`: the request has a message of the user, not only results of tools.
    `weight` is in bytes, up to the newest question.
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
    """Return the facts about a conversation up to its newest question."""
    questions = [n for n, message in enumerate(messages) if message.role is Role.USER]
    considered = messages[: questions[-1] + 1] if questions else messages
    pictures = pictures_of(considered[-1]) if questions else ()
    return ChatFacts(
        is_question=not questions or questions[-1] == len(messages) - 1,
        has_picture=any(map(is_usable, pictures)),
        weight=sum(map(weigh_without_thoughts, considered)) + weigh_tools(tools),
        has_parent=has_parent,
        only_reads=only_reads,
    )


class Rule(NamedTuple):
    """One rule; `holds` gets the facts, and the weight that is long for the model."""

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
        lambda facts, long_weight: 0 < long_weight < facts.weight,
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
    """A model that was chosen for a chat: by which rule, and why, as a clause."""

    rule: str
    why: str
    model: str = ""
    at: float = 0.0  # seconds since 1970


BY_CLIENT = ModelChoice("client", "the client names it")
BY_PURPOSE = ModelChoice("chat", "your settings name it for chats")
BY_DEFAULT = ModelChoice("default", "it is the default model")


class StoredMoment(NamedTuple):
    """The moment of a conversation, and the times of its last requests to models.

    `image_at` is the time of the image model, `other_at` that of all others. `notices`
    are the texts that the user was shown.
    """

    moment: ChatMoment | None = None
    image_at: float = _NEVER
    other_at: float = _NEVER
    notices: frozenset[str] = frozenset()


class MomentMemory:
    """The moments of conversations, and the last choices; it outlives new settings.

    `clock` measures seconds, `now` returns the seconds since 1970.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.clock = clock
        self._now = now
        self._moments = BoundedMap[str, StoredMoment](_MAX_CONVERSATIONS)
        self._choices = deque[ModelChoice](maxlen=_MAX_CHOICES)

    def find(self, conversation: str) -> StoredMoment | None:
        """Return the stored moment of a conversation, None for an unknown one."""
        return self._moments.get(conversation)

    def store(
        self, id_: str, last: StoredMoment, moment: ChatMoment | None, notice: str
    ) -> None:
        """Store the moment of a request after the `last` one of its conversation."""
        if not 0 < len(id_) <= MAX_ID_LENGTH:
            return
        image_at, other_at = last.image_at, last.other_at
        if moment is ChatMoment.IMAGE:
            image_at = self.clock()
        else:
            other_at = self.clock()
        notices = last.notices | {notice} if notice else last.notices
        self._moments[id_] = StoredMoment(moment, image_at, other_at, notices)

    def is_cached(self, last: StoredMoment) -> bool:
        """Tell whether only the image model has a conversation in its cache."""
        since = self.clock() - _CACHE_SECONDS
        return last.moment is ChatMoment.IMAGE and last.other_at < since < last.image_at

    def record_choice(self, choice: ModelChoice, model: str) -> None:
        """Store a choice for `byok models why`."""
        self._choices.append(replace(choice, model=model, at=self._now()))

    def choices(self) -> list[ModelChoice]:
        """Return the last choices, the newest first."""
        return [*reversed(self._choices)]


class MomentNotice(Recovery):
    """Tells the user with the answer which model gives it; it recovers nothing."""

    def __init__(self, text: str) -> None:
        self._notice = Notice(text)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return the notice."""
        return (self._notice,)


class Moments(Struct, frozen=True):
    """Chooses models by the user's rules; `models` has those of the rules in force.

    A chat is long above a `share` of the model's window, which `window_of` returns in
    tokens, 0 for an unknown one. `local` are the names of upstreams on this machine.
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
        """Return who answers a chat: the usual model, chosen `by` this, or another.

        The user is told once in a conversation why another one answers, or may not.
        """
        if not self.models or isinstance(usual.upstream, RefusingUpstream):
            self.memory.record_choice(by, usual.model_id)
            return usual
        stored = self.memory.find(conversation)
        moment: ChatMoment | None = None
        chosen, notice, is_named = usual, "", by is BY_CLIENT
        for rule in reversed(RULES):
            reason = self._reason(rule, facts, stored, moment, chosen)
            if not reason:
                continue
            other = await self.router.choose_listed(self.models[rule.moment])
            is_local = usual.upstream.name in self.local
            if is_named and is_local and other.upstream.name not in self.local:
                notice = (
                    f"{usual.model_id} answers although {rule.why}: you chose a model "
                    f"on this machine, and {other.model_id} ([routing.models] "
                    f"{rule.moment}) is not on it."
                )
                continue
            moment, chosen = rule.moment, other
            setting = f"[routing.models] {rule.moment}"
            notice = f"{other.model_id} answers, because {rule.why} ({setting})."
            # Only an agent reads the answers of a sub-agent.
            if other.model_id == usual.model_id or moment is ChatMoment.SUBAGENT:
                notice = ""
            by = ModelChoice(rule.moment, reason)
        self.memory.record_choice(by, chosen.model_id)
        last = stored or StoredMoment()
        self.memory.store(conversation, last, moment, notice)
        if not notice or notice in last.notices:
            return chosen
        return replace(chosen, recoveries=(MomentNotice(notice),))

    def _reason(
        self,
        rule: Rule,
        facts: ChatFacts,
        stored: StoredMoment | None,
        moment: ChatMoment | None,
        chosen: Destination,
    ) -> str:
        """Return why a rule holds, "" if it does not.

        `moment` and `chosen` are the choice of the rules over which it prevails.
        """
        if rule.moment not in self.models:
            return ""
        if stored is not None and not facts.is_question:
            return _SAME_TURN if stored.moment is rule.moment else ""
        if rule.holds(facts, self.share * self.window_of(chosen) * BYTES_A_TOKEN):
            return rule.why
        if (
            rule.moment is not ChatMoment.IMAGE
            or moment is ChatMoment.LONG_CONTEXT
            or not stored
        ):
            return ""
        is_large = facts.weight > _MIN_CACHED_WEIGHT
        return _CACHED if is_large and self.memory.is_cached(stored) else ""
