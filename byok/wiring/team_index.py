"""Build what a member of a team needs, as the settings say."""

from functools import partial
from typing import TYPE_CHECKING

from byok.config import Settings
from byok.keys import KeyLadder
from byok.keys.lookup import UpstreamKey
from byok.redact import Redactor
from byok.upstream.transport import Route, Transports
from byok.urls import is_loopback
from byok.wiring.key_sources import team_keys_wanted

if TYPE_CHECKING:
    from byok.embeddings.types import TeamVectors


def make_team_index(
    settings: Settings, transports: Transports, ladder: KeyLadder, redactor: Redactor
) -> "TeamVectors | None":
    """Return the vectors of the user's team; None if no server is named.

    Asks nobody, and may be called in any thread. Close it when done; the transports
    stay open.

    Raises:
        ConfigError: the package of the client is not installed.
    """
    own = settings.embeddings.team
    if not own.on:
        return None
    from byok.embeddings.team.server import TeamServer, connect_to
    from byok.embeddings.team.team_index import TeamIndex, TeamPlace

    local = is_loopback(own.url)
    route = Route("" if local else own.proxy, own.ca_file or settings.network.ca_file)
    connect = connect_to(own.url, partial(transports.by, route))
    key, salt = team_keys_wanted(settings)
    return TeamIndex(
        TeamPlace(own.url, own.team, own.write, own.search),
        TeamServer(connect, UpstreamKey(ladder, key, redactor, local=local)),
        UpstreamKey(ladder, salt, redactor),
    )
