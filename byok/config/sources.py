"""Who sets a setting that the file does not decide: a variable of the environment."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from byok.config.settings import Settings


def variable_of(
    path: Sequence[int | str], environ: Mapping[str, str] = os.environ
) -> str:
    """Return the variable that sets a setting, or a section around it; "" if none."""
    given = {name.upper(): name for name in environ}
    names = ("__".join(map(str, path[:n])) for n in range(len(path), 0, -1))
    variables = (f"BYOK_{name}".upper() for name in names)
    return next((given[name] for name in variables if name in given), "")


def environment_values() -> dict[str, Any]:
    """Return what the environment of this process sets, as tables of values.

    Raises:
        SettingsError: a table of it is no JSON.
    """
    from pydantic_settings import EnvSettingsSource

    return EnvSettingsSource(Settings)()
