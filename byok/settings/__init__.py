"""The settings of the user: sections, sources, validation.

The names are imported on first use, to avoid an import cycle: the sections of features
need `byok.settings.section`, and the settings as a whole need those sections.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byok.settings.example_file import example
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
_MODULES = {
    "Settings": "settings",
    "UpstreamSettings": "sections",
    "example": "example_file",
}  # all other names are in `loading`


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"{__name__} has no {name}")
    module = _MODULES.get(name, "loading")
    return getattr(import_module(f"{__name__}.{module}"), name)
