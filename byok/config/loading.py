"""Read the settings: options, `BYOK_*` variables, config.toml, defaults, by precedence.

Only the user's own configuration folder is read, never a workspace or the current
directory: a repository must not be able to redirect a key.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from byok.config.fact_settings import FactSettings
from byok.config.faults import fault_message, fault_rows
from byok.config.sections import UpstreamSettings
from byok.config.settings import Settings
from byok.config.sources import variable_of
from byok.errors import ConfigError
from byok.escapes import shell_word

LARGEST = 2**16  # bytes of a file: tomllib needs quadratic time for deep tables
EXAMPLE = "config.example.toml"
_BOM = "\ufeff"  # editors of Windows put it first
_RESERVED = ("BYOK_HOME", "BYOK_SHARED", "BYOK_VENV")
_PREFIXES = ("BYOK_KEY_", "BYOK_VAULT_")


def load_settings(
    path: Path,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """Read and validate the settings; a missing file counts as empty.

    Raises:
        ConfigError: names the file, the key and what is expected, never a value.
    """
    return make_settings(_read_toml(path), path, overrides, environ)


def make_settings(
    given: Mapping[str, Any],
    path: Path,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """Validate tables of values as if they stood in the settings file.

    Raises:
        ConfigError: as in `load_settings`.
    """
    _check_environment(environ)
    try:
        return Settings(**{"_toml": given, **(overrides or {})})
    except ValidationError as error:
        raise ConfigError(
            "\n".join(
                _explain(_source(row["loc"], path, overrides, environ), row)
                for row in fault_rows(error)
            ),
            hint="byok config example describes every key.",
        ) from error
    except SettingsError as error:
        raise ConfigError(
            f"Environment: {error}.", hint="Write lists and tables as JSON."
        ) from None


def example() -> str:
    """Return the example file: every key with its default and an explanation."""
    packed = resources.files(__package__) / EXAMPLE
    in_checkout = Path(__file__).parents[2] / EXAMPLE
    return (packed if packed.is_file() else in_checkout).read_text("utf-8")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        _check_file(path)
        return decode_settings(path.read_bytes(), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error


def decode_settings(raw: bytes, path: Path) -> dict[str, Any]:
    """Return what a text says, as tables of values.

    Raises:
        ConfigError: it is too large, or not valid TOML; the message names the line.
    """
    if len(raw) > LARGEST:
        raise _too_large(path)
    try:
        return tomllib.loads(raw.decode("utf-8").removeprefix(_BOM))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not valid UTF-8 (byte {error.start}).") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply.") from None
    except ValueError:
        raise ConfigError(f"{path} contains a number that is too long.") from None


def _check_file(path: Path) -> None:
    facts = path.stat()
    if not path.is_file():
        raise ConfigError(f"{path} is not a file.")
    if facts.st_size > LARGEST:
        raise _too_large(path)
    if hasattr(os, "geteuid"):
        if facts.st_uid != os.geteuid():
            raise ConfigError(f"{path} belongs to another user.")
        if facts.st_mode & 0o022:
            raise ConfigError(
                f"{path} can be changed by other users.",
                hint=f"Run: chmod go-w {shell_word(path)}",
            )


def _too_large(path: Path) -> ConfigError:
    return ConfigError(f"{path} is too large for a settings file (64 KiB at most).")


def _check_environment(environ: Mapping[str, str]) -> None:
    for name in environ:
        if _is_foreign(name) and "__" in name:
            raise ConfigError(
                f"Unknown environment variable {name}.{_guess(name)}",
                hint="Settings have the form BYOK_<SECTION>__<KEY>, for example "
                "BYOK_SERVER__PORT.",
            )


def foreign_variables(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return warnings about `BYOK_*` variables that match no setting.

    They may belong to another program. Unknown ones with two underscores, a form that
    only byok uses, are refused by load_settings.
    """
    return [
        f"Ignoring the unknown environment variable {name}.{_guess(name)}"
        for name in environ
        if _is_foreign(name)
    ]


def _is_foreign(name: str) -> bool:
    if not name.startswith("BYOK_") or name in _RESERVED or name.startswith(_PREFIXES):
        return False
    section = name.removeprefix("BYOK_").partition("__")[0].lower()
    return section not in Settings.model_fields


def _guess(name: str) -> str:
    given = name.removeprefix("BYOK_")
    close = difflib.get_close_matches(given, known := _variables(), n=1, cutoff=0.75)
    close += [k for k in known if k.endswith(f"__{given}") or k.startswith(f"{given}_")]
    return f" Did you mean BYOK_{close[0]}?" if given and close else ""


def _variables() -> list[str]:
    names = [*_RESERVED, "BYOK_KEY_<NAME>"]
    for section in Settings.model_fields:
        below = f"{section}__<NAME>" if section == "upstreams" else section
        keys = [f"{below}__{key}" for key in _keys_of_section([section])]
        names += [f"BYOK_{key.upper()}" for key in keys or [section]]
    return [name.removeprefix("BYOK_") for name in names]


def _source(
    place: Sequence[int | str],
    path: Path,
    overrides: Mapping[str, Any] | None,
    environ: Mapping[str, str],
) -> str:
    """Return where a setting came from: the command line, a variable or the file."""
    if place and place[0] in (overrides or {}):
        return "the command line"
    return variable_of(place, environ) or str(path)


def _explain(path: str, row: ErrorDetails) -> str:
    place = [str(part) for part in row["loc"]]
    key = ".".join(place)
    message = fault_message(row)
    if row["type"] == "extra_forbidden":
        known = _keys_of_section(place[:-1])
        close = difflib.get_close_matches(place[-1], known, n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        return f"{path}: unknown key {key}.{guess}"
    return f"{path}: {key}: {message}." if key else f"{path}: {message}."


def _keys_of_section(place: list[str]) -> list[str]:
    if place[:1] == ["upstreams"] and "facts" in place:
        return list(FactSettings.model_fields)
    if place[:1] == ["upstreams"]:
        return list(UpstreamSettings.model_fields)
    section: type[BaseModel] = Settings
    for name in place:
        field = section.model_fields.get(name)
        kind = field.annotation if field else None
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return []
        section = kind
    return list(section.model_fields)
