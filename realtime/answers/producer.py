"""Producers: what writes an answer.

    begun ──write, send──► begun ──leave the block──► complete, stopped or failed
      └── the answer has ended elsewhere ──► ended: writes raise `Stopped`, the token fires

Chunks that were written are in the channel before the end is; those that came after an end from
elsewhere are in none.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.db import DatabaseError

from realtime.answers import forms, rows, stream
from realtime.answers.cancelling import CancellationToken
from realtime.answers.models import Answer, Status
from realtime.cluster.member import NewPublication
from realtime.config import sources
from realtime.engine.base import Published
from realtime.errors import EngineUnavailable, NoReply, NotServing
from realtime.hooks.site_values import to_payload
from realtime.server_api.queries import history

TICK = 0.04
"""Seconds between publications of one answer while it is young."""
YOUNG = 2.0
"""Seconds for which it is; later it has half as many publications."""
LOOK = 1.0
"""Seconds of silence after which to look whether the answer has ended."""
AWAY = 60.0
"""Seconds without a publication after which an answer fails."""
MAX_WAITING = 1 << 20
"""Bytes that wait, at most."""
SAVE_AFTER = 1000
"""Publications after which the row gets what there is, so that history need not be longer."""
END_TIMEOUT = 10.0
"""Seconds that the end waits for what is under way."""
INPUTS = 500
"""Publications of the channel that are looked through for what the user wrote."""


class Stopped(Exception):
    """The answer has ended: its reader stopped it, or another answer took its place."""


class AnswerFailed(Exception):
    """The answer could not be published for too long, or is too long itself."""


class Producer:
    """Writes one answer. Its public members may be used from any thread."""

    def __init__(self, row: Answer) -> None:
        self.row = row
        self.id = str(row.pk)
        self.channel = row.channel
        self.token = CancellationToken()
        self._form = row.of_form
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._chunks: list[Any] = []
        """Those that were published or are on their way."""
        self._waiting: list[Any] = []
        self._waiting_bytes = 0
        self._bytes = 0
        self._under_way: NewPublication | None = None
        self._count = 0
        """The version of the last publication."""
        self._offset = 0
        self._epoch = ""
        self._saved = 0
        self._lost = False
        """Whether the engine has lost what was published: the row has to have it."""
        self._began = self._flushed = self._tried = self._looked = time.monotonic()
        self._block = ""
        """The text block that `write` opened; "": none is open."""
        self._blocks = 0
        self._has_begun = False
        self._end: list[Any] = []
        """The chunks of the producer itself that end the answer."""
        self._metadata: Any = None
        self._error: Exception | None = None
        self._inputs_after: int | None = None
        self.is_left = False
        """Whether the sweeper has to end the row, which the database does not know yet."""
        self._reason = ""
        self._max_bytes = sources.current().answers_max_size

    # what sites use

    @property
    def stopped(self) -> bool:
        """Whether the answer has ended elsewhere."""
        return self._error is not None

    def write(self, text: str) -> None:
        """Add text.

        Raises:
            Stopped: the answer has ended.
            AnswerFailed: it could not be published for a minute, or is longer than
                `answers_max_size`.
            TypeError: the form is "events", or this is no text.
        """
        if not isinstance(text, str):
            raise TypeError(f"write takes text, not {type(text).__name__}")
        if not text:
            return
        with self._lock:
            self._check()
            text = forms.clean(text)
            opens = not self._block
            if opens:
                self._blocks += 1
                self._block = f"{self.id}-{self._blocks}"
            chunks = forms.words(self._form, self._block, text, opens=opens)
            self._add(chunks, len(text.encode()))

    def send(self, chunk: Any) -> None:
        """Add a chunk of the form: an object or a model of pydantic. It waits for nothing.

        A chunk that ends the answer is kept until the block is left. Of several, the first
        that says the answer failed or was stopped counts, otherwise the last one.

        Raises:
            Stopped, AnswerFailed: as for `write`.
            TypeError: the chunk has no JSON form.
        """
        if hasattr(chunk, "model_dump"):
            chunk = chunk.model_dump(mode="json", by_alias=True, exclude_none=True)
        if self._form.name == "text":
            self.write(chunk)
            return
        if self._form.name == "ui" and chunk == {"type": "done"}:
            return  # pydantic-ai's "[DONE]"
        chunk, size = _plain(chunk)
        with self._lock:
            self._check()
            if forms.type_of(chunk) in self._form.ends:
                if not self._end or forms.status_of(self._end[0]) == Status.COMPLETE:
                    self._end = [chunk]
                return
            if self._block and self._form.text:
                closing = forms.closing(forms.words(self._form, self._block, "", opens=True))
                self._block = ""
                chunks = [*closing, chunk]
            else:
                chunks = [chunk]
            self._add(chunks, size)

    def finish(self, metadata: Any = None) -> None:
        """Give the end metadata, which readers get with it."""
        self._metadata, _ = _plain(metadata)

    def inputs(self) -> list[Any]:
        """Return what the user published into the channel since the last call, or since the begin.

        Raises:
            NotAvailable: the channel keeps no history.
            EngineUnavailable: the engine is away.
        """
        if not self.row.user:
            return []
        if self._inputs_after is None:
            found = history(self.channel, limit=INPUTS, reverse=True)
            own = [
                each["offset"]
                for each in found
                if "info" not in each
                and isinstance(each["data"], dict)
                and each["data"].get("answer") == self.id
            ]
            begin = min(own, default=0)
            found = [each for each in reversed(found) if each["offset"] > begin]
            self._inputs_after = begin
        else:
            found = history(self.channel, limit=INPUTS, since=self._inputs_after)
        if found:
            self._inputs_after = found[-1]["offset"]
        return [
            each["data"]
            for each in found
            if "info" in each and each["info"]["user"] == self.row.user
        ]

    async def ainputs(self) -> list[Any]:
        """Return what the user published. Async version of `inputs`."""
        return await sync_to_async(self.inputs)()

    # what the flusher uses

    def take(self, now: float) -> NewPublication | None:
        """Return what to publish now: what could not be published before, or what waits."""
        with self._lock:
            if self._error is not None:
                return None
            interval = TICK if now - self._began < YOUNG else 2 * TICK
            if self._under_way is None and self._waiting and now - self._flushed >= interval * 0.9:
                self._under_way = self._next()
                self._flushed = self._tried = now
            return self._under_way

    def _next(self) -> NewPublication:
        chunks = forms.joined(self._form, self._waiting)
        self._chunks += chunks
        self._waiting = []
        self._waiting_bytes = 0
        self._count += 1
        return stream.publication(self.row, self._count, forms.data_of(self._form, chunks))

    def published(self, outcome: Published | EngineUnavailable, now: float) -> None:
        """Take what became of the publication that is under way."""
        if isinstance(outcome, EngineUnavailable):
            self.check_away(now)
            return
        if not outcome.kept and self._ended_elsewhere():
            return
        with self._idle:
            if outcome.position is not None:
                self._lost |= self._epoch not in ("", outcome.position.epoch)
                self._offset, self._epoch = outcome.position.offset, outcome.position.epoch
            self._under_way = None
            self._looked = now
            self._idle.notify_all()

    def check_away(self, now: float) -> None:
        """Fail if nothing could be published for too long."""
        if self._under_way is not None and now - self._tried > AWAY:
            self._fail(AnswerFailed(f"the engine did not answer for {AWAY:g} s"))

    def is_silent(self, now: float) -> bool:
        """Return whether it is time to look if the answer has ended elsewhere."""
        return self._error is None and self._under_way is None and now - self._looked >= LOOK

    def looked(self, offset: int, now: float) -> None:
        """Take the offset of the last publication in the channel."""
        self._looked = now
        if offset > self._offset:
            self._ended_elsewhere()

    def _ended_elsewhere(self) -> bool:
        """Return whether the answer has ended; then the producer stops.

        If it goes on, the engine has the publication that it refused: it took the first attempt,
        whose reply was lost.
        """
        if stream.end_of(self.row) is None:
            return False
        self._fail(Stopped("the answer has ended"))
        return True

    def _fail(self, error: Exception) -> None:
        with self._idle:
            if self._error is None:
                self._error = error
            self._under_way, self._waiting = None, []
            self._idle.notify_all()
        self.token.cancel()

    @property
    def wants_saving(self) -> bool:
        """Whether the row should get what there is."""
        is_due = self._lost or self._count - self._saved >= SAVE_AFTER
        return self.is_left or (is_due and self._under_way is None and self._error is None)

    def save(self) -> None:
        """Write what there is into the row, or leave the row to the sweeper."""
        if self.is_left:
            rows.leave(self.row, self._reason)
            return
        with self._lock:
            if self._under_way is not None or self._error is not None:
                return
            self._chunks = forms.joined(self._form, self._chunks)
            self._saved, self._lost = self._count, False
            content = self.row.content(list(self._chunks))
            position = {"position": self._offset, "epoch": self._epoch}
        try:
            rows.unended_one(self.row).update(**content, **position)
        except DatabaseError:
            self._lost = True
            raise

    # what ends it

    def wait_until_idle(self) -> None:
        """Wait until no publication is under way, `END_TIMEOUT` seconds at most."""
        with self._idle:
            self._idle.wait_for(lambda: self._under_way is None, END_TIMEOUT)

    def end(self, status: str, error: str = "") -> None:
        """End the answer: what waits, then the end, then the row.

        Raises:
            EngineUnavailable: the engine is away; the sweeper ends the answer when it is back.
            InternalError: the site's `answer_end` failed; the sweeper calls it again.
            DatabaseError: the database is away; the sweeper ends the row when it is back.
        """
        try:
            if self._end and status == Status.COMPLETE:
                status = forms.status_of(self._end[0])
                error = forms.error_of(self._end[0])
            if self._error is None and self._publish_end(status):
                chunks = forms.joined(self._form, self._chunks)
            else:
                content = stream.end(self.row, status)
                status, chunks = content.end or status, content.chunks
            rows.settle(self.row, status, chunks, error)
        except (EngineUnavailable, NotServing):
            self._leave(error or "the engine was away at the end")
            raise
        except DatabaseError:
            self._leave(error)
            raise

    def _leave(self, reason: str) -> None:
        """Leave the row to the sweeper: now, or when the database is back."""
        try:
            rows.leave(self.row, reason)
        except DatabaseError:
            self.is_left, self._reason = True, reason
            self._fail(Stopped("the answer has ended"))

    def _publish_end(self, status: str) -> bool:
        """Publish what waits, and the end. Return whether the engine is known to have it."""
        while self._under_way is not None or self._waiting:
            with self._lock:
                new = self._under_way or self._next()
                self._under_way = None
            stream.publish_one(new)
        form = self._form
        begun = [] if self._has_begun else forms.begin(form, self.id, self.channel)
        ending = self._end
        if not ending or forms.status_of(ending[0]) != status:
            ending = forms.ending(form, status, [*begun, *self._chunks], self._metadata)
        last = [*begun, *forms.closing(self._chunks), *ending]
        try:
            data = forms.end_data_of(form, last, status, self._metadata)
            is_kept = stream.publish_one(stream.publication(self.row, stream.LAST, data, status))
        except NoReply:
            return False
        if is_kept:
            self._chunks += last
        return is_kept

    # inside

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _add(self, chunks: list[Any], size: int) -> None:
        if not self._has_begun:
            self._has_begun = True
            begin = forms.begin(self._form, self.id, self.channel)
            if forms.type_of(chunks[0]) != self._form.starts:
                chunks = [*begin, *chunks]
            elif begin:
                chunks = [begin[0] | chunks[0], *chunks[1:]]
        self._bytes += size
        self._waiting_bytes += size
        if self._bytes > self._max_bytes > 0:
            raise AnswerFailed(f"the answer is longer than answers_max_size: {self._max_bytes}")
        if self._waiting_bytes > MAX_WAITING:
            raise AnswerFailed(f"more than {MAX_WAITING >> 20} MiB wait for the engine")
        self._waiting += chunks


def _plain(value: Any) -> tuple[Any, int]:
    """Return a value as readers and rows get it, and its bytes as JSON."""
    text = to_payload(forms.clean(value)).json
    return msgspec.json.decode(text), len(text)
