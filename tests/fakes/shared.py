"""What upstreams share, with an empty keyring."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from byok.core.redact import Redactor
from byok.settings.keys import KeyLadder
from byok.upstream.model_facts import Profiles
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.transport import Transports
from byok.wiring.upstreams import Shared
from tests.fakes.ring import FakeRing, store_of


def make_shared(
    folder: Path = Path("no"),
    transports: Transports | None = None,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> Shared:
    """Return it; keys are in `environ`."""
    return Shared(
        transports or Transports(),
        ProviderDataStore(folder / "kept.db"),
        Profiles(folder / "profiles.json"),
        KeyLadder(environ=environ, keyring=store_of(FakeRing())),
        Redactor(),
    )
