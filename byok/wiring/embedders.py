"""Build the parts that make vectors from the settings: model, consent, team index.

The daemon imports this module only if embeddings are on.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from byok.core.errors import ConfigError, NotReady
from byok.core.platform.paths import Paths
from byok.core.platform.process import explain_import, has_room, memory_is_short
from byok.core.redact import Redactor
from byok.core.urls import host_of, is_loopback
from byok.search.outside.consent import Consent
from byok.search.vectors.recipe import RECIPE, dollars_per_million, prefixes_of
from byok.search.vectors.service import EmbeddingPlan, EmbeddingService
from byok.search.vectors.types import Embedder, EmbeddingTarget
from byok.settings import Settings, UpstreamSettings, upstream_named
from byok.settings.keys.ladder import UpstreamKey
from byok.settings.values import POSTGRES
from byok.upstream.base import Upstream
from byok.upstream.embeddings import EmbeddingModel
from byok.upstream.transport import Route, tls_context
from byok.wiring.key_sources import team_key_lookups
from byok.wiring.upstreams import PooledUpstream, Shared, make_spec

if TYPE_CHECKING:
    from byok.search.vectors.embedder import ModelEmbedder
    from byok.search.vectors.team.team_index import TeamIndex


_NUMPY_MIB = 150  # of address space; numpy ends the process if it lacks it
_TIMEOUT_SECONDS = 60.0  # for one request; a slow model gets fewer texts with each


def embedding_section(settings: Settings) -> tuple[str, UpstreamSettings]:
    """Return the name and section of the upstream that makes vectors.

    Raises:
        ConfigError: there is no such upstream.
    """
    return upstream_named(settings.embeddings.upstream, settings)


def embedding_target(settings: Settings) -> EmbeddingTarget | None:
    """Return the model that the settings name; None if embeddings are off.

    Raises:
        ConfigError: there is no such upstream.
    """
    embeddings = settings.embeddings
    if not embeddings.on:
        return None
    name, section = embedding_section(settings)
    spec = make_spec(name, section, settings)
    url = (spec.find_serving("embeddings") or spec.api).base_url
    host, local = host_of(url), is_loopback(url)
    price = embeddings.price
    if price is None:
        price = 0.0 if local else dollars_per_million(host, embeddings.model)
    return EmbeddingTarget(name, host, embeddings.model, local, price)


def make_embedder(
    settings: Settings,
    target: EmbeddingTarget,
    upstream: Upstream,
    *,
    consent: Consent,
    redactor: Redactor,
) -> "ModelEmbedder":
    """Build the embedder for the target of these settings.

    `upstream` is that of `embedding_section`. Without consent each of its requests
    raises NotAllowed.

    Raises:
        ConfigError: numpy is not installed.
        NotReady: there is too little memory for it.
    """
    if not has_room(_NUMPY_MIB):
        raise memory_is_short("embeddings")
    try:
        from byok.search.vectors.embedder import ModelEmbedder
    except ImportError as error:
        raise explain_import(
            error,
            "Embeddings need numpy, which is not installed.",
            hint="Run: byok upgrade --extra embeddings",
        ) from error
    options = settings.embeddings
    _, section = embedding_section(settings)
    embedding_model = EmbeddingModel(
        upstream,
        options.model,
        dimensions=options.dimensions,
        seconds=section.timeout or _TIMEOUT_SECONDS,
    )

    def may_send() -> None:
        consent.check(target.host, target.model, is_local=target.is_local)

    return ModelEmbedder(
        embedding_model,
        model=target.model,
        recipe=RECIPE,
        prefixes=prefixes_of(
            options.model, options.document_prefix, options.query_prefix
        ),
        may_send=may_send,
        redact=redactor,
    )


def make_team_index(settings: Settings, shared: Shared) -> "TeamIndex | None":
    """Return the index of the user's team; None if the settings name no server.

    It sends nothing yet, and may be called in any thread. The caller closes the index;
    the transports stay open.

    Raises:
        ConfigError: the package of the client is not installed.
    """
    team = settings.embeddings.team
    if not team.on:
        return None
    from byok.search.vectors.team.collection import TeamStore
    from byok.search.vectors.team.qdrant import QdrantStore
    from byok.search.vectors.team.team_index import TeamIndex, TeamPlace

    local = is_loopback(team.url)
    ca_file = team.ca_file or settings.network.ca_file
    key_lookup, salt_lookup = team_key_lookups(settings)
    key = shared.make_key(key_lookup)
    store: TeamStore
    if team.url.startswith(POSTGRES):
        from byok.search.vectors.team.postgres import PostgresStore

        is_plain = local or team.allow_insecure_http
        tls = None if is_plain else partial(tls_context, ca_file)
        store = PostgresStore(team.url, key, tls, writes=team.write)
    else:
        route = Route("" if local else team.proxy, ca_file)
        store = QdrantStore(team.url, partial(shared.transports.by, route), key)
    return TeamIndex(
        TeamPlace(team.url, team.team, team.write, team.search),
        store,
        UpstreamKey(shared.ladder, salt_lookup, shared.redactor),
    )


def with_embedder(
    sections: Mapping[str, UpstreamSettings], settings: Settings
) -> Mapping[str, UpstreamSettings]:
    """Return the upstreams to build: the upstream of embeddings, and those of chats.

    Raises:
        ConfigError: there is no upstream of that name, or chats use another upstream
            with this name, which would get code without consent.
    """
    name, section = embedding_section(settings)
    if sections.get(name, section) != section:
        raise ConfigError(
            f"embeddings.upstream means another {name!r} than chats use.",
            hint="Chats use that of --upstream, or one that was removed from the "
            "settings since the start. Restart byok, or name another one.",
        )
    return {name: section, **sections}


def make_plan(
    settings: Settings,
    pooled: Mapping[str, PooledUpstream],
    shared: Shared,
    consent: Consent,
) -> EmbeddingPlan | None:
    """Return the plan for embeddings by the settings; None if they are off."""
    target = embedding_target(settings)
    if target is None:
        return None
    entry, redactor = pooled[target.upstream], shared.redactor
    return EmbeddingPlan(
        target,
        partial(
            make_embedder,
            settings,
            target,
            entry.upstream,
            consent=consent,
            redactor=redactor,
        ),
        partial(make_team_index, settings, shared),
        redact=redactor.remove_known,
        built_from=(settings.embeddings, settings.network, target, entry.built_from),
    )


def make_idle_service(paths: Paths) -> EmbeddingService:
    """Return a service for a command that runs without a daemon; it sends nothing."""
    consent = Consent(paths.embedding_consent)
    return EmbeddingService(paths.vectors, paths.database, consent, works=False)


def make_idle_plan(settings: Settings) -> EmbeddingPlan | None:
    """Return the plan for embeddings, without an embedder that could send code."""
    target = embedding_target(settings)
    return None if target is None else EmbeddingPlan(target, _refuse)


def _refuse() -> Embedder:
    raise NotReady("Vectors are made by the daemon only.")
