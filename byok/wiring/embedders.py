"""Build what makes vectors from the settings: the model, and who may be sent code."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from byok.config import Settings, UpstreamSettings, upstream_named
from byok.embeddings.consent import Consent
from byok.embeddings.model.prefixes import dollars_per_million, prefixes_of
from byok.embeddings.types import EmbeddingTarget
from byok.platform.memory import explain_import, has_room, memory_is_short
from byok.redact import Redactor
from byok.upstream.base import Upstream
from byok.upstream.embeddings import EmbeddingModel
from byok.urls import is_loopback
from byok.wiring.upstreams import make_spec

if TYPE_CHECKING:  # numpy is loaded where vectors are wanted only
    from byok.embeddings.model.embedder import ModelEmbedder

_NUMPY_MIB = 150  # of addresses: where they are short, it ends the process
_SECONDS = 60.0  # for one request; a slow model gets fewer texts with each
_PORTS = {"http": 80, "https": 443}


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
    own = settings.embeddings
    if not own.on:
        return None
    name, section = embedding_section(settings)
    spec = make_spec(name, section, settings)
    url = (spec.find_serving("embeddings") or spec.api).base_url
    host, local = _host_of(url), is_loopback(url)
    price = own.price
    if price is None:
        price = 0.0 if local else dollars_per_million(host, own.model)
    return EmbeddingTarget(name, host, own.model, local, price)


def make_embedder(
    settings: Settings,
    target: EmbeddingTarget,
    upstream: Upstream,
    *,
    consent: Consent,
    recipe: str,
    redactor: Redactor,
) -> "ModelEmbedder":
    """Build the embedder for the target of these settings.

    `upstream` is that of `embedding_section`, and `recipe` the version of how texts are
    made. Without consent each of its requests raises NotAllowed.

    Raises:
        ConfigError: numpy is not installed.
        NotReady: there is too little memory for it.
    """
    if not has_room(_NUMPY_MIB):
        raise memory_is_short("embeddings")
    try:
        from byok.embeddings.model.embedder import ModelEmbedder
    except ImportError as error:
        raise explain_import(
            error,
            "Embeddings need numpy, which is not installed.",
            hint="Run: byok upgrade --extra embeddings",
        ) from error
    own = settings.embeddings
    _, section = embedding_section(settings)
    ask = EmbeddingModel(
        upstream,
        own.model,
        dimensions=own.dimensions,
        seconds=section.timeout or _SECONDS,
    )

    def may_send() -> None:
        consent.check(target.host, target.model, is_local=target.is_local)

    return ModelEmbedder(
        ask,
        host=target.host,
        model=target.model,
        recipe=recipe,
        prefixes=prefixes_of(own.model, own.document_prefix, own.query_prefix),
        may_send=may_send,
        redact=redactor,
    )


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _PORTS.get(parts.scheme, 0)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
