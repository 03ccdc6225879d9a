"""Vectors beside the search by words: joins a model, the stored vectors and the index.

This module loads neither numpy nor a database, because the daemon of a user without
embeddings imports it, too. The work is done by a `Session` (session.py), which exists
while the settings name a model, the user agreed where that is needed, and the index is
open. When the settings change, a new session replaces it; each session opens and closes
the files of vectors.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from byok.core.errors import ByokError, ConfigError, NotReady
from byok.core.threads import to_the_end
from byok.search.outside.consent import Consent
from byok.search.retrieval.model_aids import FindNear
from byok.search.vectors.types import (
    EmbeddingEstimate,
    EmbeddingState,
    EmbeddingStatus,
    EmbeddingTarget,
)

if TYPE_CHECKING:
    from byok.search.index.engine import ContextEngine
    from byok.search.vectors.session import Session
    from byok.search.vectors.team.team_index import TeamIndex
    from byok.search.vectors.types import Embedder

_log = logging.getLogger(__name__)
_MILLION = 1_000_000


class EmbeddingPlan(Struct, frozen=True):
    """The embeddings that the current settings describe.

    Attributes:
        target: the model, and its host.
        make_embedder: builds the embedder; raises ConfigError without numpy.
        make_team: builds the team's index, if the settings name a team.
        redact: removes the user's own keys from code.
        built_from: all settings that the others depend on; a plan with equal ones
            changes nothing.
    """

    target: EmbeddingTarget
    make_embedder: "Callable[[], Embedder]"
    make_team: "Callable[[], TeamIndex | None]" = lambda: None
    redact: Callable[[str], str] = str
    built_from: object = None


class EmbeddingService:
    """The `VectorSearch` of retrieval, and the service behind `byok embed`.

    `vectors` is the file of stored vectors, `index` the database of the code index.
    Without `works` it sends nothing and opens no vectors, for short-lived commands,
    which only report.
    """

    def __init__(
        self, vectors: Path, index: Path, consent: Consent, *, works: bool = True
    ) -> None:
        self.consent = consent
        self._works = works
        self._files = (vectors, index)
        self._plan: EmbeddingPlan | None = None
        self._engine: ContextEngine | None = None
        self._open_index: Callable[[], Awaitable[object]] | None = None
        self._session: Session | None = None
        self._error = ""
        self._changing = asyncio.Lock()
        self._repair: asyncio.Future[None] | None = None

    # The life of a session

    async def configure(
        self,
        plan: EmbeddingPlan | None,
        open_index: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Apply the current settings; None switches everything off.

        `open_index` opens the index, which `estimate` needs.
        """
        self._open_index = open_index or self._open_index
        await to_the_end(self._apply_plan(plan))

    async def _apply_plan(self, plan: EmbeddingPlan | None) -> None:
        async with self._changing:
            previous, self._plan = self._plan, plan
            is_equal = plan and previous and plan.built_from == previous.built_from
            if is_equal and not self._error:
                return
            await self._stop_session()
            await self._start_session()

    async def open(self, engine: "ContextEngine") -> None:
        """See VectorSearch.open."""
        await to_the_end(self._replace_index(lambda: engine))

    async def close(self) -> None:
        """See VectorSearch.close."""
        await to_the_end(self._replace_index(lambda: None))

    async def _replace_index(self, index: "Callable[[], ContextEngine | None]") -> None:
        async with self._changing:
            await self._stop_session()
            self._engine = index()
            await self._start_session()

    async def _start_session(self) -> None:
        """Start a session if plan, index and consent allow one."""
        self._error = ""
        plan, engine = self._plan, self._engine
        if plan is None or engine is None or self._session or not self._works:
            return
        if not self._may_send(plan.target):
            return
        try:
            self._session = await self._make_session(plan, engine)
        except ByokError as error:
            self._error = error.sentence
            _log.warning("vectors cannot be used: %s", error.sentence)
            return
        self._session.start(paused=self.consent.paused)

    async def _make_session(
        self, plan: EmbeddingPlan, engine: "ContextEngine"
    ) -> "Session":
        embedder = await asyncio.to_thread(plan.make_embedder)  # may load numpy
        team = plan.make_team()  # its connections belong to this event loop
        loop = asyncio.get_running_loop()

        def make() -> "Session":
            from byok.search.vectors.session import Session
            from byok.search.vectors.store.store import VectorStore

            store = VectorStore(
                *self._files, lambda: loop.call_soon_threadsafe(self._repair_once)
            )  # after a crash this blocks for a second per gigabyte
            return Session(store, engine, embedder, team, plan.redact)

        return await asyncio.to_thread(make)

    async def _stop_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _repair_once(self) -> None:
        """Start another session, which sets damaged files aside.

        Once in a run of byok: vectors may cost money, and a bad disk stays bad.
        """
        if self._repair is None:
            self._repair = asyncio.ensure_future(self._restart())

    def _may_send(self, target: EmbeddingTarget) -> bool:
        return self.consent.allows(target.host, target.model, is_local=target.is_local)

    # Questions

    async def begin(self, question: str) -> FindNear | None:
        """See VectorSearch.begin."""
        session = self._session
        return None if session is None else await session.begin(question)

    # Status and commands

    async def status(self) -> EmbeddingStatus:
        """Return the state and progress; opens and sends nothing."""
        if (plan := self._plan) is None:
            return EmbeddingStatus(EmbeddingState.OFF)
        target = plan.target
        status = EmbeddingStatus(
            self._state(plan),
            upstream=target.upstream,
            host=target.host,
            model=target.model,
            is_local=target.is_local,
            error=self._error,
        )
        return await self._session.describe(status) if self._session else status

    def _state(self, plan: EmbeddingPlan) -> EmbeddingState:
        if not self._may_send(plan.target):
            return EmbeddingState.NO_CONSENT
        if self._error:
            return EmbeddingState.FAILED
        return EmbeddingState.PAUSED if self.consent.paused else EmbeddingState.STANDBY

    async def estimate(self) -> EmbeddingEstimate:
        """Return what filling would send; opens the index, sends nothing.

        Raises:
            ConfigError: no upstream is named in the settings.
        """
        target = self._require_target()
        await self._ensure_index_open()
        from byok.search.vectors.recipe import USUAL_TOKENS, count_chunks

        engine = self._engine
        chunks = await asyncio.to_thread(count_chunks, engine.store) if engine else 0
        if self._session is not None:
            status = await self.status()
            chunks = max(0, status.chunks - status.embedded - status.refused)
        tokens = chunks * USUAL_TOKENS
        price = target.price
        return EmbeddingEstimate(
            upstream=target.upstream,
            host=target.host,
            model=target.model,
            is_local=target.is_local,
            chunks=chunks,
            tokens=tokens,
            dollars=None if price is None else tokens * price / _MILLION,
            confirmed=self._may_send(target),
        )

    async def enable(self, host: str, model: str) -> None:
        """Store that the user confirmed this host and model, and start filling.

        Raises:
            ConfigError: the settings name another host or model meanwhile.
        """
        target = self._require_target()
        if (host, model) != (target.host, target.model):
            raise ConfigError(
                f"The settings name {target.model} at {target.host} by now.",
                hint="Ask again: byok embed enable",
            )
        await asyncio.to_thread(self.consent.give, host, model)
        await self._restart()

    async def disable(self) -> None:
        """Withdraw the consent and stop; vectors stay."""
        try:
            await asyncio.to_thread(self.consent.withdraw)
        finally:  # even if the consent could not be written
            await self._restart()

    async def pause(self) -> None:
        """Stop filling until `resume`, also after a restart; questions go on."""
        await asyncio.to_thread(self.consent.pause)
        if self._session is not None:
            self._session.filling.pause()

    async def resume(self) -> None:
        """Go on filling."""
        await asyncio.to_thread(self.consent.resume)
        if self._session is not None:
            self._session.filling.resume()
        else:
            await self._restart()

    async def clear(self) -> int:
        """Withdraw the consent and remove all vectors; return how many there were."""
        await asyncio.to_thread(self.consent.withdraw)
        if not self._files[0].exists():
            return 0
        await self._ensure_index_open()
        from byok.search.vectors.session import clear_vectors

        async def clear() -> int:
            async with self._changing:
                await self._stop_session()
                return await asyncio.to_thread(clear_vectors, *self._files)

        return await to_the_end(clear())

    async def push(self) -> int:
        """Give the team the vectors stored here; return how many of them it has now.

        Raises:
            ConfigError: there is no team, or this member only reads.
            NotReady: the team did not accept all; the message says why.
        """
        exchange, space = (await self._require_session()).exchange()
        return await exchange.push(space)

    async def pull(self) -> int:
        """Fetch missing vectors from the team; return how many were received.

        Raises:
            ConfigError: there is no team.
            NotReady: not all could be requested; the message says why.
        """
        exchange, space = (await self._require_session()).exchange()
        return await exchange.pull(space)

    async def _require_session(self) -> "Session":
        """Return the session; opens the index if necessary.

        Raises:
            ConfigError: no model is named, or it is not confirmed.
            NotReady: the session could not be started.
        """
        target = self._require_target()
        await self._ensure_index_open()
        if self._session is not None:
            return self._session
        if not self._may_send(target):
            raise ConfigError(
                f"{target.model} at {target.host} is not confirmed.",
                hint="Run: byok embed enable",
            )
        raise NotReady(self._error or "The vectors are not open yet.")

    async def _restart(self) -> None:
        await to_the_end(self._replace_index(lambda: self._engine))

    async def _ensure_index_open(self) -> None:
        if self._engine is None and self._open_index is not None:
            await self._open_index()

    def _require_target(self) -> EmbeddingTarget:
        if self._plan is None:
            raise ConfigError(
                "The settings name no model for embeddings.",
                hint="Set upstream and model in the section [embeddings].",
            )
        return self._plan.target
