"""An upstream for the probe: its own API and keys, and nothing around it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from byok.config import Settings, UpstreamSettings
from byok.dialects.default_models import choose_chat_model
from byok.dialects.presets import DEMO
from byok.errors import ConfigError
from byok.keys import KeyLadder
from byok.redact import Redactor
from byok.upstream.client import HttpUpstream
from byok.upstream.transport import Transports
from byok.wiring.key_sources import keys_wanted, make_key
from byok.wiring.upstreams import make_spec


@asynccontextmanager
async def open_probed(
    name: str,
    section: UpstreamSettings,
    common: Settings,
    ladder: KeyLadder,
    redactor: Redactor,
) -> AsyncIterator[HttpUpstream]:
    """Open the upstream of a section.

    Profiles of an earlier probe do not count: it would find what it believes. Nor does
    anything that keeps a conversation within a window.

    Raises:
        ConfigError: it is the demo.
    """
    if section.type == DEMO:
        raise ConfigError("The demo is no model that could be probed.")
    transports = Transports()
    key = make_key(ladder, redactor, *keys_wanted(name, section))
    try:
        yield HttpUpstream(make_spec(name, section, common), transports, key)
    finally:
        await transports.close()


async def choose_model(upstream: HttpUpstream, section: UpstreamSettings) -> str:
    """Return the default model of an upstream, from its list if need be.

    Raises:
        ConfigError: it lists none.
    """
    named = (section.model, *section.models)
    if chosen := next(filter(None, named), ""):
        return chosen
    listed = await upstream.models()
    facts = [upstream.known.facts(model) for model in listed]
    if not (found := choose_chat_model(upstream.spec.vendor, facts)):
        raise ConfigError(
            f"{upstream.name} lists no models.",
            hint=f"Name one: byok probe {upstream.name}/MODEL",
        )
    return found
