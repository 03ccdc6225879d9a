"""The kinds of clients."""

from byok.clients.locations import ClientKind


def test_client_kind_has_a_name_for_people() -> None:
    names = [kind.readable_name for kind in ClientKind]
    assert len(set(names)) == len(ClientKind)


def test_client_kind_knows_the_editors() -> None:
    editors = [kind.value for kind in ClientKind if kind.is_editor]
    assert editors == ["vscode", "vscode-insiders", "vscodium", "cursor"]
