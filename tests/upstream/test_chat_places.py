"""Where the chats of each window went."""

from byok.upstream.router import ChatPlaces


def test_upstreams_of_chats_are_kept_per_window() -> None:
    places = ChatPlaces()
    places.note("a", "near")
    places.note("b", "far")
    places.note("a", "lan")
    places.note("a", "near")
    assert places.find("a") == frozenset({"near", "lan"})
    assert places.find("b") == frozenset({"far"})
    assert places.find("c") is None
    places.note("", "far")
    assert places.find("") is None


def test_windows_that_chatted_longest_ago_are_forgotten() -> None:
    places = ChatPlaces(most=2)
    for name in ("a", "b", "a", "c"):
        places.note(name, "near")
    assert places.find("b") is None
    assert places.find("a") == places.find("c") == frozenset({"near"})
