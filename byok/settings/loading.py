"""Read the settings by precedence, check what they name, and show them masked.

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

# Who sets a setting that the file does not decide: a variable of the environment.


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


WRITABLE_BY_OTHERS = 0o022
LARGEST = 2**16  # bytes of a file: tomllib needs quadratic time for deep tables
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


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        _check_file(path)
        return decode_settings(path.read_bytes(), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.",
            hint=f"Run: chmod u+r {shell_word(path)}",
        ) from error


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
        why = f"{path} is not valid UTF-8 (byte {error.start})"
    except tomllib.TOMLDecodeError as error:
        why = f"{path} is not valid TOML: {error}"
    except RecursionError:
        why = f"{path} is nested too deeply"
    except ValueError:
        why = f"{path} contains a number that is too long"
    raise ConfigError(f"{why}.", hint="Mend it, then run: byok config check")


def _check_file(path: Path) -> None:
    facts = path.stat()
    check_file(path, facts, WRITABLE_BY_OTHERS)
    if facts.st_size > LARGEST:
        raise _too_large(path)


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
    section, key = (*place, "", "")[:2]
    if key in (overrides or {}).get(str(section), {}):
        return "the command line"
    return variable_of(place, environ) or str(path)


_KEY_FIELDS = ("api_key", "apikey", "key", "token")


def _explain(path: str, row: ErrorDetails) -> str:
    place = [str(part) for part in row["loc"]]
    key = ".".join(place)
    message = fault_message(row)
    if row["type"] == "extra_forbidden":
        guess = _guess_key(place[-1], place[:-1])
        if len(place) == 3 and place[-1] in _KEY_FIELDS:
            guess += f" A key does not belong here: byok keys set {place[1]}"
        return f"{path}: unknown key {key}. {guess}".rstrip()
    end = "" if message.endswith("?") else "."  # it may ask what was meant
    return f"{path}: {key}: {message}{end}" if key else f"{path}: {message}{end}"


def _guess_key(key: str, section: list[str]) -> str:
    """Guess which key of a section was meant, or the section to which a key belongs."""
    known = _keys_of_section(section)
    if longer := [name for name in known if name.endswith(f"_{key}")]:
        return f"Did you mean {longer[0]}?"
    if not section:
        if key in UpstreamSettings.model_fields:
            return "It belongs under [upstreams.NAME]."
        for other in Settings.model_fields:
            if key in _keys_of_section([other]):
                return f"It belongs under [{other}]."
    return did_you_mean(key, known)


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


# Resolve `--upstream`: a name from the settings, a preset, or a URL.


_ADDRESS = re.compile(r"[\w.-]+:\d{1,5}(/[\w./-]*)?", re.ASCII)  # without http://


def upstream_named(wanted: str, settings: Settings) -> tuple[str, UpstreamSettings]:
    """Return the name and section of an upstream given by name, preset or URL.

    Raises:
        ConfigError: it is none of these.
    """
    if wanted in settings.upstreams:
        return wanted, settings.upstreams[wanted]
    if "://" in wanted:
        return CUSTOM, _custom(wanted)
    if wanted == "azure":
        raise ConfigError(
            "azure needs the address of your resource.",
            hint="Set base_url under [upstreams.azure] in your settings file "
            "(byok config path).",
        )
    if wanted == DEMO or (wanted in PRESETS and PRESETS[wanted].base_url):
        return wanted, UpstreamSettings(type=wanted)
    refuse_key(wanted, "an upstream")
    known = upstream_names(settings.upstreams)
    if wanted == CUSTOM:
        raise ConfigError(
            f"{CUSTOM} is what byok calls a server that is named by its URL.",
            hint="Use that URL instead.",
        )
    guess = did_you_mean(wanted, known)
    hint = f"Use one of {', '.join(known)}, or a URL."
    if guess:
        hint = f"{guess} Else name another preset (docs/models.md), or a URL."
    if _ADDRESS.fullmatch(wanted):
        hint = f"A URL begins with http:// or https://, such as http://{wanted}"
    raise ConfigError(f"Unknown upstream {wanted!r}.", hint=hint)


def refuse_key(given: str, belongs: str, *path: str) -> None:
    """Refuse a key where a name belongs, such as that of "a model"; it is not repeated.

    Raises:
        ConfigError: it is a key. `path` is the setting that has it, if one has.
    """
    if looks_like_key(given):
        message = f"This is a key, and the name of {belongs} belongs here."
        raise ConfigError(
            message,
            hint="byok keys set NAME asks for the key of an upstream. Your shell keeps "
            "what was typed in its history: better replace this key.",
        ) from (SettingsClash(message, path) if path else None)


def upstream_names(own: Iterable[str]) -> list[str]:
    """Return the names that `--upstream` takes, the user's own first."""
    return list(dict.fromkeys((*own, *PRESETS, DEMO)))


def _custom(url: str) -> UpstreamSettings:
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


# Validation beyond types: files, models and upstreams that the settings name.


def check_settings(settings: Settings, upstream: str = "", model: str = "") -> None:
    """Check everything that `byok serve` would refuse, without asking an upstream.

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


def _find_upstream(wanted: str, settings: Settings) -> str:
    try:
        return upstream_named(wanted, settings)[0]
    except ConfigError as error:
        places = (("embeddings", "upstream"), ("upstreams", wanted))
        raise error from SettingsClash(str(error), *places)


def check_files(settings: Settings) -> None:
    """Check that the files named in the settings exist.

    Raises:
        ConfigError: names the key.
    """
    named = {
        "network.ca_file": settings.network.ca_file,
        "search.remote.ca_file": settings.search.remote.ca_file,
        "embeddings.team.ca_file": settings.embeddings.team.ca_file,
    }
    for name, upstream in settings.upstreams.items():
        named[f"upstreams.{name}.ca_file"] = upstream.ca_file
    for key, file in named.items():
        if file and not Path(file).is_file():
            raise ConfigError(
                f"{key}: the file {file} does not exist."
            ) from SettingsClash(key, tuple(key.split(".")))


def check_models(settings: Settings, upstreams: Collection[str], model: str) -> None:
    """Check that the models chosen in the settings belong to these upstreams.

    Raises:
        ConfigError: a model names another upstream, or a fallback none.
    """
    routing = settings.routing
    for name, upstream in settings.upstreams.items():
        refuse_key(upstream.model, "a model", "upstreams", name, "model")
    for what, given, path in chosen_models(settings, model):
        refuse_key(given, "a model", *path)
        wanted = routing.meant_by(given)
        if not wanted.startswith("byok:"):
            if path[1] == "fallback":
                raise ConfigError(
                    f"The {what} model {wanted!r} is no alias.",
                    hint="Add it to [routing.aliases], or write byok:<upstream>:"
                    "<model>.",
                ) from SettingsClash(wanted, path)
            continue
        name, _ = split_id(wanted) or ("", "")
        if name not in upstreams:
            guess = did_you_mean(name, upstreams)
            known = ", ".join(dict.fromkeys(upstreams))
            other = f"choose a model of one of these: {known}."
            raise ConfigError(
                f"The {what} model {wanted!r} names an upstream that is not "
                "configured.",
                hint=f"{guess} Add [upstreams.{name or 'NAME'}] to the settings, or "
                f"{'correct the name.' if guess else other}".lstrip(),
            ) from SettingsClash(wanted, path, ("upstreams", name))


class NamedModel(NamedTuple):
    """A model that the settings name, what it is for, and the setting."""

    use: str
    model: str
    path: tuple[str, ...]


def chosen_models(settings: Settings, model: str = "") -> Iterator[NamedModel]:
    """Give the models that the settings name.

    `model` stands for the default one of the settings.
    """
    routing = settings.routing
    yield NamedModel("default", model or routing.default, ("routing", "default"))
    for table in ("models", "aliases"):
        for use, wanted in dict(getattr(routing, table)).items():
            yield NamedModel(use, wanted, ("routing", table, use))
    for use, models in routing.fallback:
        for wanted in models:
            yield NamedModel(f"{use} fallback", wanted, ("routing", "fallback", use))


# Settings for display, with every value that could be a secret masked.


# What settings of a user add to requests, which may be secret.
SENT = ("headers", "query", "extra_body")
_USER = re.compile(r"(?<=://)[^/\s@]*@")


def mask_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings as JSON, without secrets."""
    masked: dict[str, Any] = _mask(settings.model_dump(mode="json"))
    return masked


def _mask(shown: Any, *path: str) -> Any:
    """Hide what is sent, but for its names, and user and password of every address."""
    is_named = path[-2:-1] in (("upstreams",), ("facts",))  # by the user
    match shown:
        case dict() if path[-1:] and path[-1] in SENT and not is_named:
            return dict.fromkeys(shown, "***")
        case dict():
            return {key: _mask(value, *path, key) for key, value in shown.items()}
        case list():
            own = shown[:1] if path[-1] == "api_key_cmd" else shown
            return [_mask(value, *path, "") for value in own]
        case str() if path[-1] == "proxy":  # there a password may have any character
            scheme, found, rest = shown.partition("://")
            return f"{scheme}{found}{rest.rpartition('@')[2]}"
        case str():
            return _USER.sub("", shown)
        case _:
            return shown
