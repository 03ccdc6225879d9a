"""Plan embeddings as the settings say: the model, the consent, the team.

Imported only where the settings name a model.
"""

from collections.abc import Mapping
from functools import partial

from byok.config import Settings, UpstreamSettings
from byok.embeddings.consent import Consent
from byok.embeddings.recipe import RECIPE
from byok.embeddings.service import EmbeddingPlan, EmbeddingService
from byok.embeddings.types import Embedder
from byok.errors import ConfigError, NotReady
from byok.keys import KeyLadder
from byok.platform.paths import Paths
from byok.redact import Redactor
from byok.upstream.transport import Transports
from byok.wiring.embedders import embedding_section, embedding_target, make_embedder
from byok.wiring.team_index import make_team_index
from byok.wiring.upstream_pool import PooledUpstream


def with_embedder(
    sections: Mapping[str, UpstreamSettings], settings: Settings
) -> Mapping[str, UpstreamSettings]:
    """Return the upstreams to be built: those of chats, and the one of embeddings.

    Raises:
        ConfigError: there is no upstream of that name, or chats use another one of that
            name: code would go there with the consent to this one.
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
    *,
    consent: Consent,
    transports: Transports,
    ladder: KeyLadder,
    redactor: Redactor,
) -> EmbeddingPlan | None:
    """Return what the settings want of embeddings; None if they are off."""
    target = embedding_target(settings)
    if target is None:
        return None
    one = pooled[target.upstream]
    return EmbeddingPlan(
        target,
        partial(
            make_embedder,
            settings,
            target,
            one.upstream,
            consent=consent,
            recipe=RECIPE,
            redactor=redactor,
        ),
        partial(make_team_index, settings, transports, ladder, redactor),
        redact=redactor.remove_known,
        built_from=(settings.embeddings, settings.network, target, one.built_from),
    )


def make_idle_service(paths: Paths) -> EmbeddingService:
    """Return a service for a command that runs without a daemon; it sends nothing."""
    consent = Consent(paths.embedding_consent)
    return EmbeddingService(paths.vectors, paths.database, consent, works=False)


def make_idle_plan(settings: Settings) -> EmbeddingPlan | None:
    """Return what the settings want, without anything that could send."""
    target = embedding_target(settings)
    return None if target is None else EmbeddingPlan(target, _refuse)


def _refuse() -> Embedder:
    raise NotReady("Vectors are made by the daemon only.")
