"""The types of the ask loop: upstreams, plans of requests to them, and recoveries.

A plan says how a question is asked next. Plans are immutable: a recovery returns
another plan. A field that is None is filled in before the plan is sent, so a recovery
that changes an early field resets the fields that depend on it to None, and need not
know how they are computed.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
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
from byok.upstream.http_sender import NO_HEADERS, RequestKey
from byok.upstream.remedies import RequestRemedies, WrittenRequest
from byok.upstream.retry import Patience


class ForwardedResponse(Struct, frozen=True):
    """A response that is forwarded unchanged: its headers, and the reads of its body.

    A read raises an UpstreamError if the connection breaks.
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
        """How long its circuit breaker still refuses requests; usually 0."""
        ...

    @property
    def recoveries(self) -> "Sequence[Recovery]":
        """The recoveries to try when a request fails, from the wire outwards."""
        ...

    def send(self, plan: "Plan") -> AsyncGenerator[list[StreamEvent], None]:
        """Send a prepared plan once; yield the events of each network read as a list.

        The last event is a Finish, or else an UpstreamError is raised after the events
        that came before it. Closing the generator closes the connection.
        """
        ...

    def serves(self, path: str, model: str) -> bool:
        """Tell whether requests of a model to a path of /v1 can be forwarded."""
        ...

    def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AbstractAsyncContextManager[ForwardedResponse]:
        """Forward a request; `path` is relative to the base URL of an API.

        `headers` are the client's headers that the API needs. Leaving the context
        closes the connection.

        Raises:
            BadRequest: the upstream has no API that serves the path.
            UpstreamError: the upstream gave no usable response.
        """
        ...

    async def models(self) -> list[str]:
        """Fetch the ids of its models.

        Raises:
            UpstreamError: the upstream gave no list.
        """
        ...


class Destination(Struct, frozen=True):
    """The upstream and model that a request goes to.

    `recoveries` are tried after the upstream's own, such as the one that asks another
    model.
    """

    upstream: Upstream
    model: str
    recoveries: "tuple[Recovery, ...]" = ()

    @property
    def model_id(self) -> str:
        """The id of the model in the form that clients use."""
        return ListedModel(self.upstream.name, self.model).id


class Plan(Struct, frozen=True):
    """How a question is asked next.

    Attributes:
        destination: the upstream and model that are asked.
        request: the question, with broken calls and their corrections at its end.
        corrections: how often the model was asked to repeat a tool call.
        failures: the destinations that failed before, each with its error.
        has_others: other models can be asked, so a busy one is waited for briefly.
        has_void_thoughts: whether the client has thoughts of a failed attempt, and was
            not told yet that they are void.
        restored: the request with the provider data that the client dropped.
        described: notices about pictures replaced by descriptions, None if none was.
        fitted: the conversation cut to the window; None also if no window matters.
        is_cut: whether more was left out than for the question before.
        shortenings: how often the request was shortened after a refusal.
        mode: how a gap is filled or a next edit requested, and `codec` encodes it; both
            are None for a chat.
        patience: how long the upstream is waited for.
        key: the API key; `refused_key` is the refusal of an earlier key.
        remedies: the remedies of the encoded request, which is `written`.
        urgent: notices that the user gets before the request is sent.
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
        """The estimated size of the conversation in bytes, 0 if it was not weighed."""
        return self.fitted.weight if self.fitted is not None else 0

    def having(self, **changes: Any) -> "Plan":
        """Return the plan with some fields changed."""
        return replace(self, **changes)

    def send_to(
        self, destination: Destination, failure: ByokError, *, has_others: bool
    ) -> "Plan":
        """Return the plan that asks another destination after this one failed."""
        return Plan(
            destination,
            self.request,
            self.corrections,
            (*self.failures, (self.destination, failure)),
            has_others=has_others,
            has_void_thoughts=self.has_void_thoughts,
        )

    def correct(self, request: ChatRequest, *urgent: Notice) -> "Plan":
        """Return the plan of the request that asks for a broken call again."""
        return Plan(self.destination, request, self.corrections + 1, urgent=urgent)

    def release(self, *, keeps_request: bool) -> "Plan":
        """Return the plan without its body and, unless needed, its conversation.

        Both can be large, and are not sent again once the answer has begun.
        """
        request, fitted = self.request, self.fitted
        if not keeps_request:
            silent, conversation = request.silent, request.conversation
            request = ChatRequest((), silent=silent, conversation=conversation)
        if fitted is not None:
            fitted = replace(fitted, chat=request)
        return self.having(request=request, restored=None, fitted=fitted, written=None)


class Recovery:
    """One way to recover from failures; the state of a request is in its plan.

    A recovery must override `next`. The other methods prepare every request, and learn
    from answers.
    """

    async def prepare(self, plan: Plan) -> Plan:
        """Return the plan with its missing fields; called before each sending."""
        return plan

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Return the plan to try after a failed one.

        If this recovery cannot help, it returns the failure, perhaps with a better hint
        for the user.
        """
        return failure

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return the notices that the user gets with the answer to a plan."""
        return ()

    def on_answer_start(self, plan: Plan) -> None:
        """Learn that a plan succeeded: its answer begins."""

    async def on_answer_end(
        self, plan: Plan, events: Sequence[StreamEvent]
    ) -> Sequence[Notice]:
        """Learn from the last events of an answer; return notices for the user."""
        return ()


async def find_next_plan(
    recoveries: Iterable[Recovery], plan: Plan, failure: ByokError
) -> Plan | ByokError:
    """Return the plan of the first recovery that helps, else the failure for the user.

    The retry is entered into the record of the request. The failure loses its traceback
    and its causes, whose frames keep the request in memory.
    """
    failure.__traceback__ = failure.__cause__ = failure.__context__ = None
    reported = failure
    for recovery in recoveries:
        outcome = await recovery.next(plan, reported)
        if isinstance(outcome, Plan):
            current_record().note_retry(failure)
            return outcome
        reported = outcome
    return reported
