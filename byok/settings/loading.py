"""Read the settings by precedence, check the things they name, and mask secrets.

Only the user's own configuration folder is read, never a workspace or the current
directory: a repository must not be able to redirect a key.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from byok.core.errors import ConfigError
from byok.core.escapes import shell_word
from byok.core.platform.paths import check_file
from byok.core.redact import looks_like_key
from byok.core.routing import CUSTOM, split_id
from byok.core.suggest import did_you_mean
from byok.dialects.presets import DEMO, PRESETS
from byok.settings.section import SettingsClash, fault_message, fault_rows
from byok.settings.sections import FactSettings, UpstreamSettings
from byok.settings.settings import Settings

WRITABLE_BY_OTHERS = 0o022
LARGEST = 2**16  # bytes of a file: tomllib needs quadratic time for deep tables
_BOM = "\ufeff"  # editors of Windows put it first
_RESERVED = ("BYOK_HOME", "BYOK_SHARED", "BYOK_VENV")
_PREFIXES = ("BYOK_KEY_", "BYOK_VAULT_")
_KEY_FIELDS = ("api_key", "apikey", "key", "token")
_ADDRESS = re.compile(r"[\w.-]+:\d{1,5}(/[\w./-]*)?", re.ASCII)  # without http://
# Settings that users add to requests; their values may be secret.
SENT = ("headers", "query", "extra_body")
_USER = re.compile(r"(?<=://)[^/\s@]*@")


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
    tables: Mapping[str, Any],
    path: Path,
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """Validate tables of values as if they were read from the settings file.

    Raises:
        ConfigError: as in `load_settings`.
    """
    _check_environment(environ)
    try:
        return Settings(**{"_toml": tables, **(overrides or {})})
    except ValidationError as error:
        raise ConfigError(
            "\n".join(
                _explain_fault(_source(row["loc"], path, overrides, environ), row)
                for row in fault_rows(error)
            ),
            hint="byok config example describes every key.",
        ) from error
    except SettingsError as error:
        raise ConfigError(
            f"Environment: {error}.", hint="Write lists and tables as JSON."
        ) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        check_file(path, path.stat(), WRITABLE_BY_OTHERS)
        with path.open("rb") as file:
            return decode_settings(file.read(LARGEST + 1), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.",
            hint=f"Run: chmod u+r {shell_word(path)}",
        ) from error


def decode_settings(raw: bytes, path: Path) -> dict[str, Any]:
    """Decode the content of a settings file into tables of values.

    Raises:
        ConfigError: it is too large, or not valid TOML; the message names the line.
    """
    if len(raw) > LARGEST:
        raise ConfigError(f"{path} is too large for a settings file (64 KiB at most).")
    try:
        return tomllib.loads(raw.decode("utf-8").removeprefix(_BOM))
    except UnicodeDecodeError as error:
        problem = f"{path} is not valid UTF-8 (byte {error.start})"
    except tomllib.TOMLDecodeError as error:
        problem = f"{path} is not valid TOML: {error}"
    except RecursionError:
        problem = f"{path} is nested too deeply"
    except ValueError:
        problem = f"{path} contains a number that is too long"
    raise ConfigError(f"{problem}.", hint="Mend it, then run: byok config check")


def _check_environment(environ: Mapping[str, str]) -> None:
    for name in environ:
        if _is_foreign(name) and "__" in name:
            raise ConfigError(
                f"Unknown environment variable {name}.{_guess(name)}",
                hint="Settings have the form BYOK_<SECTION>__<KEY>, for example "
                "BYOK_SERVER__PORT.",
            )


def environment_values() -> dict[str, Any]:
    """Return the settings that the environment of this process sets, as tables.

    Raises:
        SettingsError: a variable for a table is not valid JSON.
    """
    from pydantic_settings import EnvSettingsSource

    return EnvSettingsSource(Settings)()


def variable_of(
    path: Sequence[int | str], environ: Mapping[str, str] = os.environ
) -> str:
    """Return the variable that sets a setting, or a section with it; "" if none."""
    variables = {name.upper(): name for name in environ}
    names = ("__".join(map(str, path[:n])) for n in range(len(path), 0, -1))
    candidates = (f"BYOK_{name}".upper() for name in names)
    return next((variables[name] for name in candidates if name in variables), "")


def foreign_variables(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return warnings about `BYOK_*` variables that match no setting.

    They may belong to another program. `load_settings` refuses unknown ones with two
    underscores, a form that only byok uses.
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
    typed, known = name.removeprefix("BYOK_"), _variables()
    close = difflib.get_close_matches(typed, known, n=1, cutoff=0.75)
    close += [k for k in known if k.endswith(f"__{typed}") or k.startswith(f"{typed}_")]
    return f" Did you mean BYOK_{close[0]}?" if typed and close else ""


def _variables() -> list[str]:
    names = [*_RESERVED, "BYOK_KEY_<NAME>"]
    for section in Settings.model_fields:
        prefix = f"{section}__<NAME>" if section == "upstreams" else section
        keys = [f"{prefix}__{key}" for key in _keys_of_section([section])]
        names += [f"BYOK_{key.upper()}" for key in keys or [section]]
    return [name.removeprefix("BYOK_") for name in names]


def _source(
    setting: Sequence[int | str],
    path: Path,
    overrides: Mapping[str, Any] | None,
    environ: Mapping[str, str],
) -> str:
    """Return where a setting came from: the command line, a variable or the file."""
    section, key = (*setting, "", "")[:2]
    if key in (overrides or {}).get(str(section), {}):
        return "the command line"
    return variable_of(setting, environ) or str(path)


def _explain_fault(path: str, row: ErrorDetails) -> str:
    names = [str(part) for part in row["loc"]]
    key = ".".join(names)
    message = fault_message(row)
    if row["type"] == "extra_forbidden":
        guess = _guess_key(names[-1], names[:-1])
        if len(names) == 3 and names[-1] in _KEY_FIELDS:
            guess += f" A key does not belong here: byok keys set {names[1]}"
        return f"{path}: unknown key {key}. {guess}".rstrip()
    end = "" if message.endswith("?") else "."  # it may end with "Did you mean ...?"
    return f"{path}: {key}: {message}{end}" if key else f"{path}: {message}{end}"


def _guess_key(key: str, section: list[str]) -> str:
    """Suggest another key of the section, or the section that has this key."""
    known = _keys_of_section(section)
    if suffixed := [name for name in known if name.endswith(f"_{key}")]:
        return f"Did you mean {suffixed[0]}?"
    if not section:
        if key in UpstreamSettings.model_fields:
            return "It belongs under [upstreams.NAME]."
        for other in Settings.model_fields:
            if key in _keys_of_section([other]):
                return f"It belongs under [{other}]."
    return did_you_mean(key, known)


def _keys_of_section(path: list[str]) -> list[str]:
    if path[:1] == ["upstreams"] and "facts" in path:
        return list(FactSettings.model_fields)
    if path[:1] == ["upstreams"]:
        return list(UpstreamSettings.model_fields)
    section: type[BaseModel] = Settings
    for name in path:
        field = section.model_fields.get(name)
        kind = field.annotation if field else None
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return []
        section = kind
    return list(section.model_fields)


def upstream_named(
    name_or_url: str, settings: Settings
) -> tuple[str, UpstreamSettings]:
    """Return the name and section of an upstream given by name, preset or URL.

    Raises:
        ConfigError: it is none of these.
    """
    if name_or_url in settings.upstreams:
        return name_or_url, settings.upstreams[name_or_url]
    if "://" in name_or_url:
        return CUSTOM, _custom_upstream(name_or_url)
    name = name_or_url
    if name == "azure":
        raise ConfigError(
            "azure needs the address of your resource.",
            hint="Set base_url under [upstreams.azure] in your settings file "
            "(byok config path).",
        )
    if name == DEMO or (name in PRESETS and PRESETS[name].base_url):
        return name, UpstreamSettings(type=name)
    refuse_key(name, "an upstream")
    known = upstream_names(settings.upstreams)
    if name == CUSTOM:
        raise ConfigError(
            f"{CUSTOM} is what byok calls a server that is named by its URL.",
            hint="Use that URL instead.",
        )
    guess = did_you_mean(name, known)
    hint = f"Use one of {', '.join(known)}, or a URL."
    if guess:
        hint = f"{guess} Else name another preset (docs/models.md), or a URL."
    if _ADDRESS.fullmatch(name):
        hint = f"A URL begins with http:// or https://, such as http://{name}"
    raise ConfigError(f"Unknown upstream {name!r}.", hint=hint)


def refuse_key(name: str, subject: str, *path: str) -> None:
    """Refuse a key in place of the name of a subject such as "a model".

    `path` is the setting that has it, if one has. The message does not show the key.

    Raises:
        ConfigError: the name is a key.
    """
    if looks_like_key(name):
        message = f"This is a key, and the name of {subject} belongs here."
        raise ConfigError(
            message,
            hint="byok keys set NAME asks for the key of an upstream. Your shell keeps "
            "what was typed in its history: better replace this key.",
        ) from (SettingsClash(message, path) if path else None)


def upstream_names(own: Iterable[str]) -> list[str]:
    """Return the names that `--upstream` accepts, the user's own first."""
    return list(dict.fromkeys((*own, *PRESETS, DEMO)))


def _custom_upstream(url: str) -> UpstreamSettings:
    try:
        return Settings(upstreams={CUSTOM: {"base_url": url}}).upstreams[CUSTOM]
    except ValidationError as error:
        row = fault_rows(error)[0]
        if row["loc"][-1:] == ("base_url",):
            raise ConfigError(f"The upstream's URL {fault_message(row)}.") from error
        raise ConfigError(
            "The upstream's URL is plain http to another machine.",
            hint="Use https, or add a section to the settings with "
            "allow_insecure_http = true.",
        ) from error


def check_settings(settings: Settings, upstream: str = "", model: str = "") -> None:
    """Check files, models and upstreams as `byok serve` does, without a request.

    `upstream` and `model` are the options of `byok serve`.

    Raises:
        ConfigError: names the key, or the upstream that is not configured.
    """
    check_files(settings)
    if settings.embeddings.on:
        _find_upstream(settings.embeddings.upstream, settings)
    named = [_find_upstream(upstream, settings)] if upstream else []
    # If no upstream is chosen, byok may pick any preset at start.
    check_models(settings, [*named, *settings.upstreams] or [*PRESETS, DEMO], model)


def _find_upstream(name_or_url: str, settings: Settings) -> str:
    try:
        return upstream_named(name_or_url, settings)[0]
    except ConfigError as error:
        paths = (("embeddings", "upstream"), ("upstreams", name_or_url))
        raise error from SettingsClash(str(error), *paths)


def check_files(settings: Settings) -> None:
    """Check that the files named in the settings exist.

    Raises:
        ConfigError: names the key.
    """
    files = {
        "network.ca_file": settings.network.ca_file,
        "search.remote.ca_file": settings.search.remote.ca_file,
        "embeddings.team.ca_file": settings.embeddings.team.ca_file,
    }
    for name, upstream in settings.upstreams.items():
        files[f"upstreams.{name}.ca_file"] = upstream.ca_file
    for key, file in files.items():
        if file and not Path(file).is_file():
            raise ConfigError(
                f"{key}: the file {file} does not exist."
            ) from SettingsClash(key, tuple(key.split(".")))


def check_models(settings: Settings, upstreams: Collection[str], model: str) -> None:
    """Check that the models chosen in the settings belong to these upstreams.

    Raises:
        ConfigError: a model names another upstream, or a fallback is no known id.
    """
    routing = settings.routing
    for name, upstream in settings.upstreams.items():
        refuse_key(upstream.model, "a model", "upstreams", name, "model")
    for use, alias_or_id, path in chosen_models(settings, model):
        refuse_key(alias_or_id, "a model", *path)
        model_id = routing.meant_by(alias_or_id)
        if not model_id.startswith("byok:"):
            if path[1] == "fallback":
                raise ConfigError(
                    f"The {use} model {model_id!r} is no alias.",
                    hint="Add it to [routing.aliases], or write byok:<upstream>:"
                    "<model>.",
                ) from SettingsClash(model_id, path)
            continue
        name, _ = split_id(model_id) or ("", "")
        if name not in upstreams:
            guess = did_you_mean(name, upstreams)
            known = ", ".join(dict.fromkeys(upstreams))
            other = f"choose a model of one of these: {known}."
            raise ConfigError(
                f"The {use} model {model_id!r} names an upstream that is not "
                "configured.",
                hint=f"{guess} Add [upstreams.{name or 'NAME'}] to the settings, or "
                f"{'correct the name.' if guess else other}".lstrip(),
            ) from SettingsClash(model_id, path, ("upstreams", name))


class NamedModel(NamedTuple):
    """A model that the settings name, its use, and the path of the setting."""

    use: str
    model: str
    path: tuple[str, ...]


def chosen_models(settings: Settings, model: str = "") -> Iterator[NamedModel]:
    """Yield the models that the settings name; `model` overrides the default one."""
    routing = settings.routing
    yield NamedModel("default", model or routing.default, ("routing", "default"))
    for table in ("models", "aliases"):
        for use, name in dict(getattr(routing, table)).items():
            yield NamedModel(use, name, ("routing", table, use))
    for use, names in routing.fallback:
        for name in names:
            yield NamedModel(f"{use} fallback", name, ("routing", "fallback", use))


def mask_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings as JSON, without secrets."""
    masked: dict[str, Any] = _mask(settings.model_dump(mode="json"))
    return masked


def _mask(value: Any, *path: str) -> Any:
    """Hide the values of SENT, and user and password of every address."""
    is_user_name = path[-2:-1] in (("upstreams",), ("facts",))  # not a setting's name
    match value:
        case dict() if path[-1:] and path[-1] in SENT and not is_user_name:
            return dict.fromkeys(value, "***")
        case dict():
            return {key: _mask(child, *path, key) for key, child in value.items()}
        case list():
            items = value[:1] if path[-1] == "api_key_cmd" else value
            return [_mask(item, *path, "") for item in items]
        case str() if path[-1] == "proxy":  # its password may have any character
            scheme, separator, address = value.partition("://")
            return f"{scheme}{separator}{address.rpartition('@')[2]}"
        case str():
            return _USER.sub("", value)
        case _:
            return value
