"""Which blobs questions were about lately: their vectors are made first."""

from collections.abc import Iterable

_MOST = 500


class AskedBlobs:
    """Counts how often blobs were among the hits of a question; keeps the last 500."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def note(self, blob_ids: Iterable[int]) -> None:
        """Count the blobs of a question, best ones first."""
        for blob_id in list(blob_ids)[:_MOST][::-1]:
            self._counts[blob_id] = self._counts.pop(blob_id, 0) + 1
        while len(self._counts) > _MOST:
            del self._counts[next(iter(self._counts))]

    def most(self) -> list[int]:
        """Return the blobs, those that were asked about most often first."""
        latest_first = reversed(self._counts.items())
        ordered = sorted(latest_first, key=lambda row: -row[1])
        return [blob_id for blob_id, _ in ordered]
