"""What asking a model consists of: upstreams, plans to ask them, and recoveries.

A plan says how a question is asked next. Plans are values: a recovery does not change a
plan, it returns another one. What is None in it is prepared before the next sending, so
a recovery that changes an early ingredient sets the later ones back to None, and knows
nothing of how they are made.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import ChatRequest
from byok.core.errors import ByokError, UpstreamError
from byok.core.events import Notice, StreamEvent
from byok.core.record import current_record
from byok.core.routing import ListedModel
from byok.dialects.base import Codec
from byok.dialects.fim_templates import FimMode
from byok.upstream.fitting import Fitted
from byok.upstream.http_sender import RequestKey
from byok.upstream.remedies import RequestRemedies, WrittenRequest
from byok.upstream.retry import Patience

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class ForwardedResponse(Struct, frozen=True):
    """A response that is forwarded unchanged: its headers, and its body as it comes.

    Reading raises an UpstreamError if the connection breaks.
    """

    headers: Mapping[str, str]
    reads: AsyncIterator[bytes]
    status: int = 200


class Upstream(Protocol):
    """A configured upstream: sends requests to models, and lists them."""

    @property
    def name(self) -> str:
        """The name in the user's settings."""
        ...

    @property
    def rest_seconds(self) -> float:
        """For how long it is not asked, because it could not be reached; usually 0."""
        ...

    @property
    def recoveries(self) -> "Sequence[Recovery]":
        """What is tried when a request fails, from the wire outwards."""
        ...

    def send(self, plan: "Plan") -> AsyncGenerator[list[StreamEvent], None]:
        """Send a prepared plan once; yield the events of each network read as a list.

        The last event is a Finish, else an UpstreamError is raised; events before the
        error have been yielded. Closing the generator closes the connection.
        """
        ...

    def serves(self, path: str, model: str) -> bool:
        """Tell whether requests for a path of /v1 can be forwarded for a model."""
        ...

    def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AbstractAsyncContextManager[ForwardedResponse]:
        """Forward a request; `path` is relative to the base URL of an API.

        `headers` are those of the client that the API needs to know. Leaving the
        context closes the connection.

        Raises:
            BadRequest: the upstream has no API that serves the path.
            UpstreamError: it gave no usable response.
        """
        ...

    async def models(self) -> list[str]:
        """List the ids of its models.

        Raises:
            UpstreamError: it gave no list.
        """
        ...


class Destination(Struct, frozen=True):
    """The upstream and model that a request goes to.

    `recoveries` are those beyond the upstream's own, such as to ask another one.
    """

    upstream: Upstream
    model: str
    recoveries: "tuple[Recovery, ...]" = ()

    @property
    def model_id(self) -> str:
        """The id of the model that answers, as clients name it."""
        return ListedModel(self.upstream.name, self.model).id


class Plan(Struct, frozen=True):
    """How a question is asked next.

    Attributes:
        destination: who is asked.
        request: the question, with the corrections that the model is shown.
        corrections: how often the model was asked to make a tool call again.
        failures: who was asked in vain before, and why.
        has_others: other models stand ready, so that a busy one is waited for briefly.
        has_void_thoughts: thoughts were shown of which the client must still be told
            that they do not count.
        restored: the request with the provider data that the client dropped.
        described: what the user is told of pictures that words stand for, None where
            none do.
        fitted: what of it fits into the window; None also where nobody minds that.
        is_cut: more was left out for this question than for the one before it.
        shortenings: how often the request was made shorter after a refusal.
        mode: how a gap is filled or a next edit asked for, `codec` writes it; both are
            None for a chat.
        patience: how long the upstream is waited for.
        key: the key of this request, and in `refused_key` why it is another one.
        remedies: how the request is written, and `written` is it.
        urgent: what the user is told before it is sent.
    """

    destination: Destination
    request: ChatRequest
    corrections: int = 0
    failures: tuple[tuple[Destination, ByokError], ...] = ()
    has_others: bool = False
    has_void_thoughts: bool = False
    restored: ChatRequest | None = None
    described: tuple[Notice, ...] | None = None
    fitted: Fitted | None = None
    is_cut: bool = False
    shortenings: int = 0
    mode: FimMode | None = None
    codec: Codec | None = None
    patience: Patience | None = None
    key: RequestKey | None = None
    refused_key: UpstreamError | None = None
    remedies: RequestRemedies | None = None
    written: WrittenRequest | None = None
    urgent: tuple[Notice, ...] = ()

    @property
    def model(self) -> str:
        """The name of the model at its upstream."""
        return self.destination.model

    @property
    def name(self) -> str:
        """The name of the upstream."""
        return self.destination.upstream.name

    @property
    def outgoing(self) -> ChatRequest:
        """The request as far as it is prepared."""
        if self.fitted is not None:
            return self.fitted.chat
        return self.restored or self.request

    @property
    def weight(self) -> int:
        """The bytes that the model is to read, 0 where nobody weighed them."""
        return self.fitted.weight if self.fitted is not None else 0

    def having(self, **changes: Any) -> "Plan":
        """Return the plan with some ingredients changed."""
        return replace(self, **changes)

    def send_to(
        self, destination: Destination, failure: ByokError, *, has_others: bool
    ) -> "Plan":
        """Return the plan to ask another destination, after a failure of this one."""
        return Plan(
            destination,
            self.request,
            self.corrections,
            (*self.failures, (self.destination, failure)),
            has_others=has_others,
            has_void_thoughts=self.has_void_thoughts,
        )

    def correct(self, request: ChatRequest, *urgent: Notice) -> "Plan":
        """Return the plan of a new request, after an answer with an unusable call."""
        return Plan(self.destination, request, self.corrections + 1, urgent=urgent)

    def go_on(self, request: ChatRequest) -> "Plan":
        """Return the plan of a request that continues the answer to this one."""
        return Plan(self.destination, request, self.corrections)

    def release(self, *, keeps_request: bool) -> "Plan":
        """Return the plan without what may be large: it was answered."""
        request, fitted = self.request, self.fitted
        if not keeps_request:
            silent, conversation = request.silent, request.conversation
            request = ChatRequest((), silent=silent, conversation=conversation)
        if fitted is not None:
            fitted = replace(fitted, chat=request)
        return self.having(request=request, restored=None, fitted=fitted, written=None)


class Recovery:
    """One way around failures, for all requests; what it tried is in their plans.

    Only `next` is needed. The rest is for what is prepared for every request, and for
    what later ones learn.
    """

    async def prepare(self, plan: Plan) -> Plan:
        """Return the plan with what it lacks; called before each sending."""
        return plan

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Return what to try after a failure of a plan.

        If this recovery does not help, it is the failure itself, perhaps with what the
        user can do about it.
        """
        return failure

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return what the user is told with the answer to a plan."""
        return ()

    def note_begin(self, plan: Plan) -> None:
        """Remember what helped: the answer begins."""

    async def note_end(
        self, plan: Plan, events: Sequence[StreamEvent]
    ) -> Sequence[Notice]:
        """Learn from the events that end an answer; return what the user is told."""
        return ()


async def plan_again(
    recoveries: Iterable[Recovery], plan: Plan, failure: ByokError
) -> Plan | ByokError:
    """Return the plan of the first recovery that helps, else the failure for the user.

    The record notes what was tried again. The failure loses its traceback and its
    causes: their frames hold the request.
    """
    failure.__traceback__ = failure.__cause__ = failure.__context__ = None
    told = failure
    for recovery in recoveries:
        outcome = await recovery.next(plan, told)
        if isinstance(outcome, Plan):
            current_record().note_retry(failure)
            return outcome
        told = outcome
    return told
