"""The settings of the user: sections, sources, validation.

The names are imported on first use, to avoid an import cycle: the sections of features
need `byok.settings.section`, and the settings as a whole need those sections.
"""

from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byok.settings.loading import (
        check_files,
        check_models,
        check_settings,
        chosen_models,
        foreign_variables,
        load_settings,
        make_settings,
        mask_settings,
        refuse_key,
        upstream_named,
        upstream_names,
    )
    from byok.settings.sections import UpstreamSettings
    from byok.settings.settings import Settings

__all__ = [
    "Settings",
    "UpstreamSettings",
    "check_files",
    "check_models",
    "check_settings",
    "chosen_models",
    "example",
    "foreign_variables",
    "load_settings",
    "make_settings",
    "mask_settings",
    "refuse_key",
    "upstream_named",
    "upstream_names",
]
_EXAMPLE = "config.example.toml"  # in the package, or at the root of a clone


def example() -> str:
    """Return the example file: every key with its default and an explanation."""
    packaged = resources.files(__package__) / _EXAMPLE
    in_clone = Path(__file__).parents[2] / _EXAMPLE
    return (packaged if packaged.is_file() else in_clone).read_text("utf-8")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"{__name__} has no {name}")
    modules = {"Settings": "settings", "UpstreamSettings": "sections"}
    module = modules.get(name, "loading")
    return getattr(import_module(f"{__name__}.{module}"), name)
