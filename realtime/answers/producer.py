"""Producers: what writes an answer.

    begun ──leave the block──► left ──the last chunk is kept──► complete, stopped or failed
      │                          └──`END_TIMEOUT` is over──► the sweeper ends the answer
      └── the answer has ended elsewhere ──► ended: writes raise `Stopped`, the token fires

Invariants:
- Only a producer that has begun takes chunks; one that was left publishes those that wait.
- Chunks that were written are in the channel before the end is; those that came after an end from
  elsewhere are in none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.db import DatabaseError

from realtime.answers import forms, rows, stream
from realtime.answers.models import Answer, Status
from realtime.cluster.member import NewPublication
from realtime.config import sources
from realtime.engine.base import Published
from realtime.errors import EngineUnavailable, UnrecoverablePosition
from realtime.hooks.site_values import to_payload
from realtime.protocol.messages import Publication, StreamPosition
from realtime.server_api.arguments import Position
from realtime.server_api.queries import reading
from realtime.serving import serving

TICK = 0.04
"""Seconds between publications of one answer while it is young."""
YOUNG = 2.0
"""Seconds for which it is; later it has half as many publications."""
LOOK = 1.0
"""Seconds of silence after which to look whether the answer has ended."""
AWAY = 60.0
"""Seconds without a publication after which an answer fails."""
MAX_WAITING = 4 << 20
"""Bytes that wait, at most: as many as an answer has by default."""
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


class CancellationToken:
    """Fires when the answer ends elsewhere. `run_stream` of pydantic-ai takes it, too."""

    def __init__(self) -> None:
        self._fired: Future[None] = Future()

    @property
    def is_cancelled(self) -> bool:
        """Whether the producer should stop."""
        return self._fired.cancelled()

    def cancel(self) -> None:
        """Have the producer stop. May be called from any thread."""
        self._fired.cancel()

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call this once when it fires, in the thread that notices; at once if it has."""
        self._fired.add_done_callback(lambda _: callback())

    # pydantic-ai calls its own token so

    def _register(self, run: Any) -> None:
        self.on_cancel(run.cancel)

    def _unregister(self, run: Any) -> None:
        """Do nothing: a run that is over cannot be cancelled."""


class Producer:
    """Writes one answer. Its public members may be used from any thread."""

    def __init__(self, row: Answer) -> None:
        self.row = row
        self.id = str(row.pk)
        self.channel = row.channel
        self.token = CancellationToken()
        self._form = row.of_form
        self._lock = threading.Condition()
        """Notified when nothing is under way any more."""
        self._chunks: list[Any] = []
        """Those that were published or are on their way."""
        self._waiting: list[Any] = []
        self._waiting_bytes = self._bytes = 0
        self._under_way: NewPublication | None = None
        self._count = 0
        """The version of the last publication."""
        self._position = StreamPosition(0, "")
        self._save_at = SAVE_AFTER
        """The version at which the row gets what there is; 0: now, for the engine has lost it."""
        self._began = self._looked = time.monotonic()
        self._block = ""
        """The text block that `write` opened; "": none is open."""
        self.own_end: Any = None
        """The chunk of the site that ends the answer."""
        self._metadata: Any = None
        self.error: Exception | None = None
        """What writes raise; None while they do not."""
        self._inputs_after: Position | None = None
        self._max_bytes = sources.current().answers_max_size

    # what sites use

    @property
    def stopped(self) -> bool:
        """Whether the answer has ended elsewhere."""
        return self.error is not None

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
            block = self._block or f"{self.id}-{self._bytes}"
            chunks = forms.words(self._form, block, text, opens=not self._block)
            self._add(chunks, len(text.encode()))
            self._block = block

    def send(self, chunk: Any) -> None:
        """Add a chunk of the form: an object or a model of pydantic. It waits for nothing.

        A chunk that ends the answer is kept until the block is left. Of several, the first
        that says the answer failed or was stopped counts, otherwise the last one.

        Raises:
            Stopped, AnswerFailed: as for `write`.
            TypeError: the chunk has no JSON form, or is no object, as "ui" and "ag-ui" need it.
        """
        if hasattr(chunk, "model_dump"):
            chunk = chunk.model_dump(mode="json", by_alias=True, exclude_none=True)
        if self._form.name == "text":
            self.write(chunk)
            return
        if self._form.name == "ui" and chunk == {"type": "done"}:
            return  # pydantic-ai's "[DONE]"
        chunk, size = _plain(chunk)
        if self._form.text and not isinstance(chunk, dict):
            raise TypeError(f"a chunk of the form {self._form.name!r} is an object")
        with self._lock:
            self._check()
            if forms.type_of(chunk) in self._form.ends:
                if self.own_end is None or forms.status_of(self.own_end) == Status.COMPLETE:
                    self.own_end = chunk
                return
            chunks = [chunk]
            if self._block:
                opened = forms.words(self._form, self._block, "", opens=True)
                chunks = [*forms.closing(opened), chunk]
                self._block = ""
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
        if not (user := self.row.user):
            return []
        try:
            found = self._read_channel(self._inputs_after)
        except UnrecoverablePosition:  # the engine lost what was before: all it has is new
            found = self._read_channel(None)
        own = [each for each in found if each.info is not None and each.info.user == user]
        return [msgspec.json.decode(each.data.json) for each in own]

    def _read_channel(self, since: Position | None) -> list[Publication]:
        """Return the publications after a position; None: after the begin of the answer."""
        wanted = reading(self.channel, limit=INPUTS, since=since, reverse=since is None)
        result = serving.call(wanted)
        found = sorted(result.publications, key=lambda each: each.offset)
        # its end is announced as its begin is
        begins = [] if since else [at for at, each in enumerate(found) if self._is_begin(each)]
        top = result.position or StreamPosition(0, "")
        offset = found[-1].offset if found else top.offset
        self._inputs_after = Position(offset, top.epoch)
        return found[begins[0] :] if begins else found

    def _is_begin(self, found: Publication) -> bool:
        """Return whether a publication announces the answer."""
        data = msgspec.json.decode(found.data.json)
        return found.info is None and isinstance(data, dict) and data.get("answer") == self.id

    async def ainputs(self) -> list[Any]:
        """Return what the user published. Async version of `inputs`."""
        return await sync_to_async(self.inputs)()

    # what the flusher uses

    def take(self, now: float) -> NewPublication | None:
        """Return what to publish now: what could not be published before, or what waits."""
        if self.error is None and self._under_way is not None and now - self._looked > AWAY:
            self._fail(AnswerFailed(f"the engine did not answer for {AWAY:g} s"))
        with self._lock:
            interval = TICK if now - self._began < YOUNG else 2 * TICK
            is_time = self.error is not None or now - self._looked >= interval * 0.9
            if self._under_way is None and self._waiting and is_time:
                chunks = forms.joined(self._form, self._waiting)
                self._chunks += chunks
                self._waiting, self._waiting_bytes = [], 0
                self._count += 1
                data = forms.data_of(self._form, chunks)
                self._under_way = stream.publication(self.row, self._count, data)
                self._looked = now
            return self._under_way

    def published(self, outcome: Published) -> None:
        """Take what became of the publication that is under way, or of the last one."""
        if not outcome.kept and self._has_ended_elsewhere():
            return
        with self._lock:
            before, self._position = self._position, outcome.position or self._position
            if before.epoch not in ("", self._position.epoch):
                self._save_at = 0
            self._under_way = None
            self._lock.notify_all()

    def is_silent(self, now: float) -> bool:
        """Return whether it is time to look if the answer has ended elsewhere."""
        return self.error is None and self._under_way is None and now - self._looked >= LOOK

    def looked(self, top: StreamPosition, now: float) -> None:
        """Take the position of the last publication in the channel, which may be of another."""
        self._looked = now
        self.published(Published(top, kept=top == self._position))

    def _has_ended_elsewhere(self) -> bool:
        """Return whether the answer has ended; then the producer stops.

        If it goes on, the engine has the publication that it refused: it took the first attempt,
        whose reply was lost.
        """
        if stream.end_of(self.row) is None:
            return False
        self._fail(Stopped("the answer has ended"))
        return True

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self.error = self.error or error
            self._under_way, self._waiting = None, []
            self._lock.notify_all()
        self.token.cancel()

    @property
    def wants_saving(self) -> bool:
        """Whether the row should get what there is."""
        is_idle = self._under_way is None and self.error is None
        return is_idle and self._count >= self._save_at

    def save(self) -> None:
        """Write what there is into the row."""
        with self._lock:
            if not self.wants_saving:
                return
            self._chunks = forms.joined(self._form, self._chunks)
            content = self.row.content(list(self._chunks))
            offset, epoch = self._position.offset, self._position.epoch
            self._save_at = self._count + SAVE_AFTER
        try:
            rows.unended_one(self.row).update(**content, position=offset, epoch=epoch)
        except DatabaseError:
            self._save_at = 0
            raise

    def end(self, status: str) -> list[Any] | None:
        """Publish the end, once no chunk waits. Writes raise from now on.

        Returns:
            All chunks; None if the answer may have ended elsewhere.

        Raises:
            EngineUnavailable: the engine is away.
        """
        with self._lock:
            if self.error is not None:
                return None
            self.error = Stopped("the block has been left")
            if not self._lock.wait_for(self._is_idle, END_TIMEOUT):
                raise EngineUnavailable(f"the engine did not answer for {END_TIMEOUT:g} s")
        own, metadata = self.own_end, self._metadata
        return stream.publish_end(self.row, self._chunks, status, own=own, metadata=metadata)

    def _is_idle(self) -> bool:
        return self._under_way is None and not self._waiting

    # inside

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    def _add(self, chunks: list[Any], size: int) -> None:
        if not self._chunks and not self._waiting:
            begin = forms.begin(self._form, self.id, self.channel)
            if begin and forms.type_of(chunks[0]) == begin[0]["type"]:
                begin, chunks = [begin[0] | chunks[0]], chunks[1:]
            chunks = [*begin, *chunks]
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
