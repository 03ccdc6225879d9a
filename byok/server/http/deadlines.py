"""The server's timeouts and intervals, in seconds; tests shorten them."""

from msgspec import Struct

from byok.core.routing import EndpointGroup


class OfficialTiming(Struct, frozen=True):
    """Deadlines of the official service: for whole answers, or for the first byte.

    Clients wait a few seconds for a completion, and one minute for anything else. After
    a timeout, byok itself answers the group for the seconds of `pause`.
    """

    models: float = 12.0
    completion: float = 1.5
    first: float = 45.0
    pause: float = 60.0

    def until_first(self, group: EndpointGroup) -> float:
        """Return how long a group waits for the first byte."""
        return self.in_all(group) or self.first

    def in_all(self, group: EndpointGroup) -> float | None:
        """Return how long a group waits for a whole answer; None for no limit."""
        limits = {
            EndpointGroup.MODELS: self.models,
            EndpointGroup.COMPLETION: self.completion,
        }
        return limits.get(group)


class Timing(Struct, frozen=True):
    """Deadlines for clients, for the end of byok, and for the official service."""

    beat: float = 20.0  # silence before a heartbeat
    head_after: float = 5.0  # silence before the head of a stream
    late_head_after: float = 45.0  # the same if a failure must become a status
    # How long streams may go on after SIGTERM. cli/control.py, cli/demo.py and service
    # managers (clients/service/) wait longer than that before they kill byok.
    grace: float = 10.0
    drain: float = 600.0  # how long streams may go on beside a successor
    settle: float = 5.0  # for requests that no model answers, before the index closes
    first_request: float = 1.0  # on a connection that was opened just before a handover
    last_words: float = 2.0  # for the last lines of the streams that remain
    head: float = 10.0  # until a request's head is whole
    body_gap: float = 15.0  # between two pieces of a body
    challenge: float = 2.0  # for the whole body of a challenge, which needs no token
    patience: float = 30.0  # with a client that does not read
    look: float = 1.0  # between two polls of the settings file
    official: OfficialTiming = OfficialTiming()
