"""A prober of a fake model."""

from collections.abc import AsyncIterator

import pytest

from byok.dialects.registry import DIALECTS
from byok.upstream.client import HttpUpstream
from byok.upstream.probe.asking import Prober
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import PATIENT, Key
from tests.fakes.upstream import FakeUpstream


@pytest.fixture
async def prober(fake: FakeUpstream) -> AsyncIterator[Prober]:
    """A prober of the model behind the fake upstream."""
    transports = Transports()
    api = Api(DIALECTS["openai_chat"]("openai_compatible"), fake.url)
    spec = UpstreamSpec("fake", (api,), timeouts=PATIENT)
    yield Prober(HttpUpstream(spec, transports, Key()), "m", seconds=5)
    await transports.close()
