"""The server's timeouts and intervals, in seconds; tests shorten them."""

from msgspec import Struct

from byok.core.routing import EndpointGroup


class OfficialTiming(Struct, frozen=True):
    """For the list of models and a completion in all, else to the first byte.

    Clients give a completion a few seconds, and anything else one minute. A group that
    waited in vain is answered here for the `pause`.
    """

    models: float = 12.0
    completion: float = 1.5
    first: float = 45.0
    pause: float = 60.0

    def until_first(self, group: EndpointGroup) -> float:
        """Return how long a group waits for the first byte."""
        return self.in_all(group) or self.first

    def in_all(self, group: EndpointGroup) -> float | None:
        """Return how long a group waits for a whole answer; None: while bytes come."""
        known = {
            EndpointGroup.MODELS: self.models,
            EndpointGroup.COMPLETION: self.completion,
        }
        return known.get(group)


class Timing(Struct, frozen=True):
    """Deadlines for clients, for the end, and for the official service."""

    beat: float = 20.0  # silence before a heartbeat
    head_after: float = 5.0  # silence before the head of a stream
    late_head_after: float = 45.0  # the same where a failure must be a status
    grace: float = 10.0  # how long streams may go on after SIGTERM
    drain: float = 600.0  # how long streams may go on beside a successor
    settle: float = 5.0  # for requests that no model answers yet, before the index ends
    first_request: float = 1.0  # on connections that were just opened then
    last_words: float = 2.0  # for the last lines of the streams that are left
    head: float = 10.0  # until a request's head is whole
    body_gap: float = 15.0  # between two pieces of a body
    challenge: float = 2.0  # for the whole body of a challenge, which needs no token
    patience: float = 30.0  # with a client that does not read
    look: float = 1.0  # between two looks at the file of settings
    official: OfficialTiming = OfficialTiming()
