"""What the settings say of every request to a model of an endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from byok.augment.reply_job import Defaults
from byok.chat import Sampling
from byok.config import Settings, UpstreamSettings
from byok.prompts.prompt_set import FitMemory, ModelFit, PromptSet, find_fit
from byok.upstream.base import Destination
from byok.upstream.catalog import Catalog


@dataclass(frozen=True, slots=True)
class RequestDefaults:
    """Finds the defaults of requests; `sections` are the upstreams by their names."""

    settings: Settings
    sections: Mapping[str, UpstreamSettings]
    catalog: Catalog
    prompts: PromptSet
    fits: FitMemory

    def __call__(
        self, endpoint: str, destination: Destination, conversation: str = ""
    ) -> Defaults:
        """Return the defaults of an endpoint for the model that is asked.

        In a `conversation` the prompts stay those that suited the model in its first
        turn.
        """
        chat = self.settings.chat
        upstream = destination.upstream.name
        own = self.sections.get(upstream) or UpstreamSettings()
        sampling = Sampling(
            chat.temperature if own.temperature is None else own.temperature,
            chat.top_p if own.top_p is None else own.top_p,
            chat.max_tokens if own.max_tokens is None else own.max_tokens,
            own.effort or chat.effort,
        )
        find = partial(self._find_fit, upstream, destination.model)
        fit = self.fits.recall(conversation, destination.model_id, find)
        return Defaults(
            own.system_prompt or chat.system_prompt,
            self.settings.prompts.get(endpoint.lstrip("/"), ""),
            sampling,
            self.prompts,
            fit,
            compact_tools=chat.compact_tools and fit.is_small,
        )

    def _find_fit(self, upstream: str, model: str) -> ModelFit:
        facts = self.catalog.facts_of(upstream, model).facts
        return find_fit(
            model,
            family=facts.family,
            thinks=facts.thinking is True,
            window=facts.loaded_window or facts.window,
        )
