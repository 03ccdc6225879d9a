"""What each model of an upstream was found to refuse, and is no longer sent."""

import logging
from collections.abc import Iterable
from typing import Any

from byok.chat import Json
from byok.dialects.base import Dialect, Remedy
from byok.errors import UpstreamError, UpstreamRefused
from byok.events import Notice
from byok.upstream.http_sender import UpstreamSpec
from byok.wire.json_body import parse_json

_log = logging.getLogger(__name__)
_MAX_MODELS = 1000
_MOST = 12  # new ones for one request; the next request begins with them


class Remedies:
    """Remembers, for each model, the changes after which it took a request."""

    def __init__(self, spec: UpstreamSpec) -> None:
        self._spec = spec
        self._known: dict[str, list[Remedy]] = {}

    def of(self, dialect: Dialect, model: str, *, agent: bool) -> "RequestRemedies":
        """Begin a request to a model; `agent` says that it is to act by itself."""
        if len(self._known) > _MAX_MODELS:
            self._known.clear()
        if model not in self._known:
            self._known[model] = [*dialect.presume(self._spec.quirks)]
        return RequestRemedies(self._spec, dialect, model, self._known[model], agent)


class RequestRemedies:
    """The remedies of one request; `notices` is what the user should hear of them."""

    def __init__(
        self,
        spec: UpstreamSpec,
        dialect: Dialect,
        model: str,
        known: list[Remedy],
        agent: bool,
    ) -> None:
        self._spec = spec
        self._dialect = dialect
        self._model = model
        self._known = known  # of the model, for later requests
        self._made = [*known]
        self._agent = agent
        self._left = _MOST
        self.notices: list[Notice] = []

    def apply_known(self, body: Json) -> dict[str, Any]:
        """Return a body with all changes that the model is known to need."""
        return self._apply(body, self._made, new=False)

    def next_body(self, error: UpstreamError, content: bytes) -> dict[str, Any] | None:
        """Return the body that was refused with one change more.

        None where no change helps.
        """
        if not isinstance(error, UpstreamRefused) or not self._left:
            return None
        body, extra = parse_json(content), self._spec.extra_body
        remedy = self._dialect.remedy(body, error, self._made, extra)
        if remedy is None:
            return None
        self._left -= 1
        self._made.append(remedy)
        if not self._left:
            self.remember()  # as far as they go: the next request goes on from here
        name = self._spec.name
        _log.info(
            "%s: %.80s refuses a request; changed: %s", name, self._model, remedy.change
        )
        return self._apply(body, [remedy], new=True)

    def remember(self) -> None:
        """Make the changes in later requests at once, now that the model answers.

        What did not help was no remedy: it would cost everybody a tool for nothing.
        """
        self._known += [made for made in self._made if made not in self._known]

    def _apply(
        self, body: Json, remedies: Iterable[Remedy], *, new: bool
    ) -> dict[str, Any]:
        mended = self._dialect.apply(body, remedies, new=new, agent=self._agent)
        self.notices += map(Notice, mended.notices)
        return mended.body
