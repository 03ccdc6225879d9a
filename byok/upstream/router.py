"""Routing: from the model id that a client sends to an upstream and its model."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from byok.model_ids import MAX_ID_LENGTH, PREFIX, ListedModel, split_id
from byok.purposes import Purpose
from byok.upstream.base import Upstream
from byok.upstream.catalog import Catalog
from byok.upstream.unconfigured import UnconfiguredUpstream

_log = logging.getLogger(__name__)
_MAX_REMEMBERED = 1000
PLACEHOLDER = "default"
NO_ALIASES: Mapping[str, str] = MappingProxyType({})
_FIRST_LIST_SECONDS = 2.0  # for lists that are on their way


@dataclass(frozen=True, slots=True)
class Destination:
    """The upstream and model that a request goes to.

    `instead_of` is the requested id, if it is unknown and the default model answers.
    """

    upstream: Upstream
    model: str
    instead_of: str = ""

    @property
    def model_id(self) -> str:
        """The id of the model that answers, as clients name it."""
        return ListedModel(self.upstream.name, self.model).id


class Router:
    """Chooses upstream and model by the model id that a client sends.

    `byok:<upstream>:<model>` goes to that upstream or nowhere, an alias to its model;
    whatever else is unknown is the default model.
    """

    def __init__(
        self,
        upstreams: Mapping[str, Upstream],
        catalog: Catalog,
        default: str = "",
        aliases: Mapping[str, str] = NO_ALIASES,
    ) -> None:
        self._upstreams = upstreams
        self._catalog = catalog
        self._aliases = aliases
        self._default = self.resolve(default)
        self._logged: set[str] = set()

    def list_models(self) -> list[ListedModel]:
        """Return the aliases, and the models of all upstreams as far as known."""
        pairs = ((alias, split_id(wanted)) for alias, wanted in self._aliases.items())
        named = [ListedModel(*parts, alias) for alias, parts in pairs if parts]
        return [*named, *self._catalog.list_models()]

    def default(self) -> ListedModel:
        """Return the default model.

        It is the user's choice, else the default of the first upstream, else a
        placeholder for the first model that this upstream lists.
        """
        if self._default:
            return self._find(self._default) or self._upstream_listing(self._default)
        name = next(iter(self._upstreams))
        return ListedModel(name, self._catalog.default_of(name) or PLACEHOLDER)

    async def choose(self, model_id: str) -> Destination:
        """Return the destination of a model id; an unconfigured upstream refuses."""
        model_id = self.resolve(model_id)
        if nowhere := self._refusing_upstream(model_id):
            return nowhere
        found, instead_of = self._find(model_id), ""
        if found is None:
            self._log_unknown(model_id)
            await self._look_up_default()
            found = self.default()
            instead_of = "" if model_id == found.model else model_id[:MAX_ID_LENGTH]
        if self._is_placeholder(found):
            found = ListedModel(found.upstream, await self._some_model(found.upstream))
        return Destination(self._upstreams[found.upstream], found.model, instead_of)

    async def choose_listed(self, model_id: str) -> Destination:
        """Return the destination of a model id, or of the name of a listed model."""
        model_id = self.resolve(model_id)
        if nowhere := self._refusing_upstream(model_id):
            return nowhere
        if self._find(model_id) is None and model_id:
            if not any(m.model == model_id for m in self._catalog.list_models()):
                await self._catalog.settle(_FIRST_LIST_SECONDS)
            for listed in self._catalog.list_models():
                if listed.model == model_id:
                    return Destination(self._upstreams[listed.upstream], model_id)
        return await self.choose(model_id)

    def default_for(self, purpose: Purpose) -> ListedModel:
        """Return the model for a job where neither user nor client chose one."""
        found = self.default()
        if self._default:
            return found
        model = self._catalog.model_for(found.upstream, purpose)
        return ListedModel(found.upstream, model or found.model)

    def choose_for(self, purpose: Purpose, found: Destination) -> Destination:
        """Return who does a job instead of a default model that nobody chose."""
        name = found.upstream.name
        if self._default or name not in self._upstreams:
            return found
        if found.model != self._catalog.default_of(name):
            return found
        return replace(found, model=self._catalog.model_for(name, purpose))

    def resolve(self, model_id: str) -> str:
        """Return the id that an alias stands for; any other id as it is."""
        return self._aliases.get(model_id.removeprefix(PREFIX), model_id)

    async def _look_up_default(self) -> None:
        """Wait for the lists if only they tell which upstream has the default model."""
        known = not self._default or self._find(self._default)
        if known or any(m.model == self._default for m in self._catalog.list_models()):
            return
        self._catalog.refresh()
        await self._catalog.settle(5.0)

    async def _some_model(self, name: str) -> str:
        """Return a model of an upstream without a default, from its list."""
        if known := self._catalog.default_of(name):
            return known
        self._catalog.refresh()
        await self._catalog.settle(5.0)
        listed = self._catalog.default_of(name)
        return listed or self._catalog.presumed_default(name) or PLACEHOLDER

    def _find(self, model_id: str) -> ListedModel | None:
        """Parse `byok:<upstream>:<model>`; the model need not be listed."""
        if len(model_id) > MAX_ID_LENGTH:  # it would be kept, here and there
            return None
        name, model = split_id(model_id) or ("", "")
        return ListedModel(name, model) if name in self._upstreams else None

    def _refusing_upstream(self, model_id: str) -> Destination | None:
        """Return a refusing upstream for the id of one that is not configured."""
        if not (parts := split_id(model_id)) or parts[0] in self._upstreams:
            return None
        return Destination(UnconfiguredUpstream(parts[0]), parts[1])

    def _upstream_listing(self, model: str) -> ListedModel:
        """Find the upstream that lists a model, else the first one."""
        listed = (m for m in self._catalog.list_models() if m.model == model)
        return next(listed, ListedModel(next(iter(self._upstreams)), model))

    def _is_placeholder(self, found: ListedModel) -> bool:
        known = self._catalog.models_of(found.upstream)
        return found.model == PLACEHOLDER and PLACEHOLDER not in known

    def _log_unknown(self, model_id: str) -> None:
        model_id = model_id[:MAX_ID_LENGTH]
        if (
            not model_id
            or model_id in self._logged
            or len(self._logged) > _MAX_REMEMBERED
        ):
            return
        self._logged.add(model_id)
        _log.info("unknown model %.80r: using the default model", model_id)
