"""The environment variables in which keys of upstreams are looked for."""


def own_variable(upstream: str, label: str = "") -> str:
    """Return `BYOK_KEY_<UPSTREAM>`, or `BYOK_KEY_<UPSTREAM>__<LABEL>`."""
    name = f"{upstream}__{label}" if label else upstream
    return f"BYOK_KEY_{name.upper().replace('-', '_')}"
