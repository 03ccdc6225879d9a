"""What `byok init` adds to the settings file: it adds lines, and changes none."""

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from byok.cli.init_survey import DEFAULT, ChosenModel
from byok.clients import toml_text
from byok.clients.editor import (
    MISSING,
    Setting,
    SettingPath,
    TextEditor,
    decode_text,
    encode_text,
    find_value,
)
from byok.core.errors import ConfigError
from byok.core.model_ids import ListedModel
from byok.dialects.presets import OPENAI_COMPATIBLE
from byok.settings import Settings, UpstreamSettings, check_settings

_HEAD = "# Made by byok init. Every setting: byok config example\n"
_ROUTING, _MODELS, _SMALL = "routing", "models", "small"
_SMALL_JOBS = ("commit", "title")


class SettingsPlan(NamedTuple):
    """The file before and after; `kept` are settings that say otherwise, and stay."""

    before: bytes | None
    after: bytes
    kept: tuple[SettingPath, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether anything is added."""
        return self.after != (self.before or b"")


def plan_settings(
    before: bytes | None,
    name: str,
    section: UpstreamSettings,
    models: Iterable[ChosenModel],
) -> SettingsPlan:
    """Plan to use an upstream and models of it; what the file says already stays.

    Raises:
        ConfigError: the file cannot be extended without a change of something else.
    """
    try:
        decoded = decode_text(before or b"")
        text = decoded.text
        given = tomllib.loads(text)
        wanted, kept = _split(given, name, _upstream_settings(name, section), models)
        if not wanted:
            return SettingsPlan(before, before or b"", kept)
        new, editor = text or _HEAD, TextEditor(toml_text)
        for row in wanted:
            new = editor.put(new, *row)
        _check(text, new)
    except ValueError as error:
        raise ConfigError(
            f"The settings file cannot be extended: {error}. Nothing was changed.",
            hint="Add the upstream by hand; byok config example shows how.",
        ) from None
    return SettingsPlan(before, encode_text(decoded._replace(text=new)), kept)


def _upstream_settings(name: str, section: UpstreamSettings) -> list[Setting]:
    path = ("upstreams", name)
    rows = []
    if section.type != OPENAI_COMPATIBLE:
        rows.append(Setting((*path, "type"), section.type))
    if section.base_url:
        rows.append(Setting((*path, "base_url"), section.base_url))
    return rows


def _split(
    given: Mapping[str, Any],
    name: str,
    upstream: list[Setting],
    models: Iterable[ChosenModel],
) -> tuple[list[Setting], tuple[SettingPath, ...]]:
    """Return what is to be added, and what the file says otherwise."""
    wanted, kept = list[Setting](), list[SettingPath]()
    if find_value(given, ("upstreams", name)) is MISSING:
        wanted += upstream
    else:
        kept += [row.path for row in upstream if _differs(given, row)]
    chosen = [model for model in models if model.model]
    for purpose, model, _ in chosen:
        path = (_ROUTING, *(() if purpose == DEFAULT else (_MODELS,)), purpose)
        row = Setting(path, ListedModel(name, model).id)
        if find_value(given, path) is not MISSING:
            kept += [path] if _differs(given, row) else []
            if purpose == DEFAULT and kept[-1:] == [path]:
                break  # the other models would not belong to that default
        elif not (purpose in _SMALL_JOBS and _has_small(given)):
            wanted.append(row)
    return wanted, tuple(kept)


def _has_small(given: Mapping[str, Any]) -> bool:
    return find_value(given, (_ROUTING, _MODELS, _SMALL)) is not MISSING


def _differs(given: Mapping[str, Any], row: Setting) -> bool:
    there = find_value(given, row.path)
    return there is not MISSING and there != row.value


def _check(old: str, new: str) -> None:
    """Prove that the lines of the old text are all there, and that byok can use it.

    That no other setting differs is what `put` proves.

    Raises:
        ValueError: they are not, or byok would not start with the new text.
    """
    rest = iter(new.splitlines())
    if not all(line in rest for line in old.splitlines()):
        raise ValueError("a line of it would change")
    arguments: dict[str, Any] = {"_toml": tomllib.loads(new)}
    try:
        check_settings(Settings(**arguments))
    except ConfigError as error:
        raise ValueError(str(error).rstrip(".")) from None
