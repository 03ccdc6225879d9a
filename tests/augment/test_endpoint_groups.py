"""Every endpoint has its group, but for those that only byok answers."""

import pytest

from byok.augment.endpoint_groups import PATHS, group_of
from byok.augment.endpoints import ENDPOINTS
from byok.routing import EndpointGroup
from byok.server.openai_api import ROUTES

ALONE = {"/token"}


def test_every_endpoint_of_the_clients_has_a_group() -> None:
    paths = {row.path for row in ENDPOINTS if not row.path.startswith("/byok/")}
    grouped = [path for group in PATHS.values() for path in group]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == paths - ALONE


def test_every_group_has_endpoints() -> None:
    assert set(PATHS) == set(EndpointGroup)
    assert all(PATHS.values())


@pytest.mark.parametrize(
    "path",
    [
        *ALONE,
        *(row.path for row in ROUTES),
        *(row.path for row in ENDPOINTS if row.path.startswith("/byok/")),
        "/no/such",
        "",
    ],
)
def test_what_is_byoks_own_has_none(path: str) -> None:
    assert group_of(path) is None


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("/get-models", EndpointGroup.MODELS),
        ("/batch-upload", EndpointGroup.CONTEXT),
        ("/chat-input-completion", EndpointGroup.COMPLETION),
        ("/generate-commit-message-stream", EndpointGroup.EDIT),
        ("/agents/edit-file", EndpointGroup.EDIT),
        ("/chat-stream", EndpointGroup.CHAT),
        ("/remote-agents/list", EndpointGroup.AGENTS),
        ("/user-secrets/list", EndpointGroup.ACCOUNT),
        ("/report-error", EndpointGroup.TELEMETRY),
    ],
)
def test_some_paths_and_their_groups(path: str, group: EndpointGroup) -> None:
    assert group_of(path) is group
