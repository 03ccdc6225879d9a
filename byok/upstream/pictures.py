"""Pictures for models that see none: another model describes each picture once.

The description replaces the picture, marked as one, in all later requests, too: it is
stored on disk by a digest of the picture, so that the prompt always begins with the
same bytes. A picture that cannot be described is replaced by the usual placeholder, and
not tried again for some minutes.

Only the picture is sent, and only to the model that the user named for pictures.
"""

import asyncio
import base64
import binascii
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple
from weakref import WeakValueDictionary

from msgspec import Struct

from byok.core.bounded import BoundedMap
from byok.core.chat import ImagePart, Sampling
from byok.core.errors import ByokError, RefusalKind, UpstreamRefused, UpstreamTimeout
from byok.core.events import Notice
from byok.core.prompts.prompt_set import PromptSet
from byok.dialects.chat_changes import pictures_of, shows_picture, write_pictures_as
from byok.upstream.base import Destination, Plan, Recovery
from byok.upstream.own_questions import PICTURE, answer_of
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.reasons import reason_of
from byok.upstream.window.estimate import has_images

_log = logging.getLogger(__name__)
_QUESTION = "Describe this picture."
_MAX_DESCRIPTION_CHARS = 6000
_SAMPLING = Sampling(temperature=0.0, max_tokens=3000, effort="none")
_MAX_BASE64_CHARS = 20 * 2**20  # larger pictures are not sent
_MAX_PICTURES, _MAX_PARALLEL = 20, 4  # pictures of a request; of all requests
_MAX_FAILED = 1000
_TIMEOUT, _COOLDOWN = 60.0, 300.0  # seconds; of a request, and of a failed picture
_MAGIC_BYTES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


class Described(NamedTuple):
    """Descriptions of pictures, by the data of each picture.

    `model_id` wrote them, `new` of them just now. `failure` is the reason if other
    pictures could not be described, else "".
    """

    words: Mapping[str, str]
    model_id: str
    new: int = 0
    failure: str = ""


class PictureDescriber:
    """Describes pictures by the model that `find` returns.

    A request waits for a minute at most. A picture whose description failed is not
    tried again for five minutes.
    """

    def __init__(
        self,
        find: Callable[[], Awaitable[Destination]],
        store: ProviderDataStore,
        prompts: PromptSet,
    ) -> None:
        self._find = find
        self._store = store
        self._prompts = prompts
        self._failed = BoundedMap[bytes, tuple[ByokError, float]](_MAX_FAILED)
        self._slots = asyncio.Semaphore(_MAX_PARALLEL)
        self._locks = WeakValueDictionary[bytes, asyncio.Lock]()

    async def describe(self, pictures: Iterable[ImagePart]) -> Described:
        """Return descriptions of as many of these pictures as possible."""
        describer = await self._find()
        unique = dict.fromkeys(pictures)
        usable = [picture for picture in unique if is_usable(picture)]
        keys = await asyncio.to_thread(_store_keys, describer.model_id, usable)
        stored = await self._store.find(keys.values())
        words = {
            p.data: stored[key].decode() for p, key in keys.items() if key in stored
        }
        new = [picture for picture in keys if picture.data not in words]
        new = new[-_MAX_PICTURES:]
        deadline = time.monotonic() + _TIMEOUT
        outcomes = await asyncio.gather(
            *(self._describe(describer, pic, keys[pic], deadline) for pic in new)
        )
        failure = "" if len(usable) == len(unique) else "it is broken or too large"
        for picture, outcome in zip(new, outcomes, strict=True):
            if isinstance(outcome, ByokError):
                failure = reason_of(outcome)
            else:
                words[picture.data] = outcome
        described = sum(isinstance(outcome, str) for outcome in outcomes)
        return Described(words, describer.model_id, described, failure)

    async def _describe(
        self, describer: Destination, picture: ImagePart, key: bytes, deadline: float
    ) -> str | ByokError:
        """Describe a picture, unless another request just did or failed to."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        name = describer.upstream.name
        try:
            async with asyncio.timeout(deadline - time.monotonic()), lock, self._slots:
                if stored := await self._store.find((key,)):
                    return stored[key].decode()
                failed, until = self._failed.get(key) or (None, 0.0)
                if failed is not None and time.monotonic() < until:
                    return failed
                return await self._ask(describer, picture, key)
        except ByokError as error:
            failure = error
        except TimeoutError:
            failure = UpstreamTimeout("it is too slow.", upstream=name)
        model_id = describer.model_id
        _log.warning("%s describes no picture: %s", model_id, failure.log_text)
        failure.__traceback__ = failure.__cause__ = failure.__context__ = None
        self._failed[key] = failure, time.monotonic() + _COOLDOWN
        return failure

    async def _ask(self, describer: Destination, picture: ImagePart, key: bytes) -> str:
        """Ask for a description, and store it.

        Raises:
            ByokError: there is no usable answer.
        """
        answer = await answer_of(
            describer,
            self._prompts.render(PICTURE).text,
            _QUESTION,
            pictures=(picture,),
            longest=_MAX_DESCRIPTION_CHARS,
            sampling=_SAMPLING,
        )
        words = f"[a picture, described by {describer.model_id}:\n{answer}]"
        raw = words.encode("utf-8", "replace")
        self._store.keep({key: raw})
        return raw.decode()


def _store_keys(model_id: str, pictures: Iterable[ImagePart]) -> dict[ImagePart, bytes]:
    """Return the keys of pictures in the store, in their order."""
    name = hashlib.blake2b(model_id.encode(), person=b"picture")
    keys: dict[ImagePart, bytes] = {}
    for picture in pictures:
        digest = name.copy()
        digest.update(picture.data.encode())
        keys[picture] = digest.digest()
    return keys


def is_usable(picture: ImagePart) -> bool:
    """Tell whether a picture may be sent: its data begin as its type requires."""
    magic = _MAGIC_BYTES.get(picture.media_type)
    if magic is None or len(picture.data) > _MAX_BASE64_CHARS:
        return False
    try:
        return base64.b64decode(picture.data[:64]).startswith(magic)
    except binascii.Error:
        return False


class DescribedPictures(Recovery, Struct, eq=False):
    """Replaces pictures by descriptions for models that see none.

    `sees` tells whether the model of a plan accepts pictures, as far as is known.
    """

    describer: PictureDescriber
    sees: Callable[[Plan], bool]

    async def prepare(self, plan: Plan) -> Plan:
        """Replace the pictures of the conversation by descriptions.

        Raises:
            UpstreamRefused: the request asks this model for a description.
        """
        chat = plan.restored or plan.request
        if plan.described is not None or not has_images(chat.messages):
            return plan
        if self.sees(plan):
            return plan
        if chat.prompt == PICTURE:
            text, kind = "it sees no pictures.", RefusalKind.NO_IMAGES
            raise UpstreamRefused(text, kind=kind, upstream=plan.name)
        pictures = [pic for message in chat.messages for pic in pictures_of(message)]
        described = await self.describer.describe(pictures)
        words = described.words
        restored = write_pictures_as(chat, lambda pic: words.get(pic.data, ""))
        notices = _notices_about(described)
        return plan.having(restored=restored, fitted=None, described=notices)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return which model described the newest turn's pictures, or why not."""
        if plan.described and shows_picture(plan.request):
            return plan.described
        return ()


def _notices_about(described: Described) -> tuple[Notice, ...]:
    texts, model, count = list[str](), described.model_id, described.new
    if count:
        noun = "the picture" if count == 1 else f"{count} pictures"
        texts.append(f"This model sees no pictures: {model} described {noun}.")
    if described.failure:
        texts.append(f"{model} did not describe every picture: {described.failure}.")
    return tuple(map(Notice, texts))
