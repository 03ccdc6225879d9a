"""The end of a base URL's path, where several APIs of a server are side by side."""

from urllib.parse import urlsplit


def path_ends_with(base_url: str, ending: str) -> bool:
    """Tell whether the path of a URL has an ending such as `/v1`; its host has none."""
    return urlsplit(base_url).path.endswith(ending)


def without_ending(base_url: str, ending: str) -> str:
    """Return a base URL without an ending of its path, where it has that one."""
    if not path_ends_with(base_url, ending):
        return base_url
    return base_url.removesuffix(ending)
