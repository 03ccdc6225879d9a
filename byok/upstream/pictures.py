"""Pictures for models that see none: a model that does describes each once.

The description stands where the picture stood, marked as one, in all later requests
too: it is kept by a digest of the picture, also while byok is not running, so that the
prompt begins with the same bytes. A picture that cannot be described gets the usual
placeholder, and is not tried again for some minutes.

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
_LONGEST = 6000  # characters of a description
_SAMPLING = Sampling(temperature=0.0, max_tokens=3000, effort="none")
_LARGEST = 20 * 2**20  # characters of a picture in base64; larger ones are not sent
_MOST, _AT_ONCE = 20, 4  # pictures that are described for a request, and beside others
_MOST_FAILED = 1000
_BEGINNINGS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


class Described(NamedTuple):
    """What was found out: the words for pictures by their data, and who wrote them.

    `new` of them were described just now; `failure` is why others were not, or "".
    """

    words: Mapping[str, str]
    model_id: str
    new: int = 0
    failure: str = ""


_SECONDS, _PAUSE = 60.0, 300.0


class PictureDescriber:
    """Describes pictures by the model that `find` returns.

    A request waits a minute at most; a failed picture rests for five.
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
        self._failed = BoundedMap[bytes, tuple[ByokError, float]](_MOST_FAILED)
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._locks = WeakValueDictionary[bytes, asyncio.Lock]()

    async def describe(self, pictures: Iterable[ImagePart]) -> Described:
        """Return words for these pictures, as far as they can be had."""
        asked = await self._find()
        given = dict.fromkeys(pictures)
        usable = [picture for picture in given if is_usable(picture)]
        keys = await asyncio.to_thread(_keys_of, asked.model_id, usable)
        stored = await self._store.find(keys.values())
        words = {
            p.data: stored[key].decode() for p, key in keys.items() if key in stored
        }
        left = [picture for picture in keys if picture.data not in words][-_MOST:]
        deadline = time.monotonic() + _SECONDS
        outcomes = await asyncio.gather(
            *(self._describe(asked, one, keys[one], deadline) for one in left)
        )
        failure = "" if len(usable) == len(given) else "it is broken or too large"
        for picture, said in zip(left, outcomes, strict=True):
            if isinstance(said, ByokError):
                failure = reason_of(said)
            else:
                words[picture.data] = said
        new = sum(isinstance(said, str) for said in outcomes)
        return Described(words, asked.model_id, new, failure)

    async def _describe(
        self, asked: Destination, picture: ImagePart, key: bytes, deadline: float
    ) -> str | ByokError:
        """Describe a picture, unless somebody just did, or it failed a moment ago."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        try:
            async with asyncio.timeout(deadline - time.monotonic()), lock, self._places:
                if found := await self._store.find((key,)):
                    return found[key].decode()
                failed, until = self._failed.get(key) or (None, 0.0)
                if failed is not None and time.monotonic() < until:
                    return failed
                return await self._ask(asked, picture, key)
        except ByokError as error:
            failure = error
        except TimeoutError:
            failure = UpstreamTimeout("it is too slow.", upstream=asked.upstream.name)
        _log.warning("%s describes no picture: %s", asked.model_id, failure.log_text)
        failure.__traceback__ = failure.__cause__ = failure.__context__ = None
        self._failed[key] = failure, time.monotonic() + _PAUSE
        return failure

    async def _ask(self, asked: Destination, picture: ImagePart, key: bytes) -> str:
        """Ask for a description, and keep it.

        Raises:
            ByokError: there is none.
        """
        said = await answer_of(
            asked,
            self._prompts.render(PICTURE).text,
            _QUESTION,
            pictures=(picture,),
            longest=_LONGEST,
            sampling=_SAMPLING,
        )
        words = f"[a picture, described by {asked.model_id}:\n{said}]"
        kept = words.encode("utf-8", "replace")
        self._store.keep({key: kept})
        return kept.decode()


def _keys_of(model_id: str, pictures: Iterable[ImagePart]) -> dict[ImagePart, bytes]:
    """Return what the store knows pictures by, in their order."""
    name = hashlib.blake2b(model_id.encode(), person=b"picture")
    keys: dict[ImagePart, bytes] = {}
    for picture in pictures:
        digest = name.copy()
        digest.update(picture.data.encode())
        keys[picture] = digest.digest()
    return keys


def is_usable(picture: ImagePart) -> bool:
    """Tell whether a picture may be sent: its data begin as its type says."""
    beginning = _BEGINNINGS.get(picture.media_type)
    if beginning is None or len(picture.data) > _LARGEST:
        return False
    try:
        return base64.b64decode(picture.data[:64]).startswith(beginning)
    except binascii.Error:
        return False


class DescribedPictures(Recovery, Struct, eq=False):
    """Describes the pictures of conversations with models that see none.

    `sees` tells whether the model of a plan takes pictures, as far as is known.
    """

    describer: PictureDescriber
    sees: Callable[[Plan], bool]

    async def prepare(self, plan: Plan) -> Plan:
        """Put descriptions in the places of pictures.

        Raises:
            UpstreamRefused: the model is to describe one, and sees none.
        """
        chat = plan.restored or plan.request
        if plan.described is not None or not has_images(chat.messages):
            return plan
        if self.sees(plan):
            return plan
        if chat.prompt == PICTURE:
            text, kind = "it sees no pictures.", RefusalKind.NO_IMAGES
            raise UpstreamRefused(text, kind=kind, upstream=plan.name)
        pictures = [one for message in chat.messages for one in pictures_of(message)]
        found = await self.describer.describe(pictures)
        restored = write_pictures_as(chat, lambda one: found.words.get(one.data, ""))
        told = _tell(found)
        return plan.having(restored=restored, fitted=None, described=told)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Tell who described a picture of the newest turn, or why nobody did."""
        if plan.described and shows_picture(plan.request):
            return plan.described
        return ()


def _tell(found: Described) -> tuple[Notice, ...]:
    told: list[str] = []
    if found.new:
        noun = "the picture" if found.new == 1 else f"{found.new} pictures"
        told.append(f"This model sees no pictures: {found.model_id} described {noun}.")
    if found.failure:
        told.append(
            f"{found.model_id} did not describe every picture: {found.failure}."
        )
    return tuple(map(Notice, told))
