"""The environment variables in which keys are looked for."""

TEAM_INDEX = "team-index"  # the name of the team's server, beside those of upstreams
TEAM_SALT = "salt"  # the label of the team's salt, beside the key of that server


def own_variable(upstream: str, label: str = "") -> str:
    """Return `BYOK_KEY_<UPSTREAM>`, or `BYOK_KEY_<UPSTREAM>__<LABEL>`."""
    name = f"{upstream}__{label}" if label else upstream
    return f"BYOK_KEY_{name.upper().replace('-', '_')}"
