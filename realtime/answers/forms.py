"""The forms of answers: which chunks begin, carry and end one.

    form     one publication                      the last publication
    ui       an array of chunks of the AI SDK     [..., {"type": "finish" | "abort" | "error"}]
    ag-ui    an array of events of AG-UI          [..., {"type": "RUN_FINISHED" | "RUN_ERROR"}]
    events   {"events": [any JSON, ...]}          {"events": [...], "end": status}
    text     a string                             {"end": status}

The last publication of every form has the tag `end`, which is the status. A reader needs no more
than that to know that nothing follows. All of this is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from realtime.streams.joining import join_chunks


class Status(StrEnum):
    """Of an answer: see `models`."""

    WAITING = "waiting"
    QUEUED = "queued"
    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


Chunk = Any
"""A value with a JSON form; in `ui` and `ag-ui` an object with a `type`."""

END = "end"
"""The tag of the last publication."""

_MESSAGES = {
    "failed": "The answer failed.",
    "interrupted": "The answer was interrupted.",
    "lost": "A part of the answer was missed. Load it anew.",
}
"""What readers see; the row keeps the reason for the site."""

_BLOCKS = {
    "text-start": ("text-end", "id"),
    "reasoning-start": ("reasoning-end", "id"),
    "start-step": ("finish-step",),
    "TEXT_MESSAGE_START": ("TEXT_MESSAGE_END", "messageId"),
    "TOOL_CALL_START": ("TOOL_CALL_END", "toolCallId"),
    "REASONING_START": ("REASONING_END", "messageId"),
    "REASONING_MESSAGE_START": ("REASONING_MESSAGE_END", "messageId"),
    "STEP_STARTED": ("STEP_FINISHED", "stepName"),
}
"""Type that opens a block → the type that closes it, and the field that both have."""


class Form(NamedTuple):
    """One form. Without a `text`, its publications are no arrays."""

    name: str
    begins: Mapping[str, str] = {}
    """The first chunk, with places for the ID and the channel of the answer."""
    ends: tuple[str, ...] = ()
    """The types of chunks that end an answer: the site's own, if it has one."""
    opens: Mapping[str, str] = {}
    """The chunk that opens a block of text, without the ID of the block."""
    text: str = ""
    """The type of the chunks whose `delta` is text; "" for none."""
    block: str = ""
    """The field with the ID of the block."""


FORMS: Mapping[str, Form] = {
    "ui": Form(
        "ui",
        {"type": "start", "messageId": "{id}"},
        ("finish", "abort", "error"),
        {"type": "text-start"},
        "text-delta",
        "id",
    ),
    "ag-ui": Form(
        "ag-ui",
        {"type": "RUN_STARTED", "threadId": "{channel}", "runId": "{id}"},
        ("RUN_FINISHED", "RUN_ERROR"),
        {"type": "TEXT_MESSAGE_START", "role": "assistant"},
        "TEXT_MESSAGE_CONTENT",
        "messageId",
    ),
    "events": Form("events"),
    "text": Form("text"),
}


def type_of(chunk: Chunk) -> str:
    """Return the type of a chunk; "" if it has none."""
    kind = chunk.get("type", "") if isinstance(chunk, Mapping) else ""
    return kind if isinstance(kind, str) else ""


def begin(form: Form, answer_id: str, channel: str) -> list[Chunk]:
    """Return the chunks with which an answer begins."""
    names = {"id": answer_id, "channel": channel}
    chunk = {name: text.format_map(names) for name, text in form.begins.items()}
    return [chunk] if chunk else []


def words(form: Form, block: str, text: str, *, opens: bool) -> list[Chunk]:
    """Return the chunks of a piece of text.

    Args:
        block: the ID of the text block that has it.
        opens: whether the piece opens the block.
    """
    if form.name == "text":
        return [text]
    if not form.text:
        raise TypeError("an answer of the form 'events' has no text: use send")
    chunk = {"type": form.text, form.block: block, "delta": text}
    return [{**form.opens, form.block: block}, chunk] if opens else [chunk]


def closing(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks that close the blocks which are open after some chunks, innermost first."""
    opened: list[Chunk] = []
    for chunk in chunks:
        kind = type_of(chunk)
        if kind in _BLOCKS:
            closes, *fields = _BLOCKS[kind]
            end = {"type": closes} | {field: chunk.get(field) for field in fields}
            opened = [*(each for each in opened if each != end), end]
        elif kind:
            opened = [each for each in opened if not each.items() <= chunk.items()]
    return opened[::-1]


def ending(form: Form, status: str, begun: Iterable[Chunk], metadata: Any = None) -> list[Chunk]:
    """Return the chunks that end an answer; none in the forms that are not made of them.

    Args:
        begun: the answer so far; its first chunk names it.
    """
    match form.name, status:
        case "ui", "complete":
            return [{"type": "finish"} | _given("messageMetadata", metadata)]
        case "ui", "stopped":
            return [{"type": "abort"}]
        case "ui", _:
            return [{"type": "error", "errorText": _MESSAGES[status]}]
        case "ag-ui", "complete" | "stopped":
            outcome = "success" if status == "complete" else "cancelled"
            started: Chunk = next((each for each in begun if type_of(each) == "RUN_STARTED"), {})
            ids = {name: started.get(name, "") for name in ("threadId", "runId")}
            end = {"type": "RUN_FINISHED", **ids, "outcome": {"type": outcome}}
            return [end | _given("result", metadata)]
        case "ag-ui", _:
            return [{"type": "RUN_ERROR", "message": _MESSAGES[status]}]
        case _:
            return []


def _given(name: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {name: value}


def status_of(chunk: Chunk) -> str:
    """Return the status after a chunk that ends an answer."""
    match chunk:
        case {"type": "abort"} | {"outcome": {"type": "cancelled"}}:
            return Status.STOPPED
        case {"type": "error" | "RUN_ERROR"}:
            return Status.FAILED
        case _:
            return Status.COMPLETE


def error_of(chunk: Chunk) -> str:
    """Return why an answer failed, of a chunk that ends it; "" if it says nothing."""
    return str(chunk.get("errorText") or chunk.get("message") or "")


def data_of(form: Form, chunks: Sequence[Chunk]) -> object:
    """Return the data of a publication with these chunks."""
    if form.name == "text":
        return "".join(chunks)
    return list(chunks) if form.text else {"events": list(chunks)}


def end_data_of(form: Form, chunks: Sequence[Chunk], status: str, metadata: Any = None) -> object:
    """Return the data of the last publication."""
    return list(chunks) if form.text else {"end": status} | _given("metadata", metadata)


def chunks_of(form: Form, data: object) -> list[Chunk]:
    """Return the chunks in the data of a publication; none if the data have another form."""
    match data:
        case list() if form.text:
            return data
        case str() if form.name == "text":
            return [data]
        case {"events": list(events)} if form.name == "events":
            return events
        case _:
            return []


def text_of(form: Form, chunks: Iterable[Chunk]) -> str:
    """Return the text in some chunks."""
    if form.name == "text":
        return "".join(chunks)
    return "".join(
        chunk["delta"]
        for chunk in chunks
        if form.text and type_of(chunk) == form.text and isinstance(chunk.get("delta"), str)
    )


def joined(form: Form, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return chunks with those joined that mean the same as one."""
    if form.name == "text":
        text = "".join(chunks)
        return [text] if text else []
    return join_chunks(chunks) if form.text else list(chunks)


MAX_DEPTH = 28
"""Levels of a chunk. MariaDB keeps no JSON of more than 32."""


def clean(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a value as databases and UTF-8 can keep it: models may write NUL and half characters.

    Both become the replacement character.

    Raises:
        TypeError: the value has more than `depth` levels.
    """
    if depth < 0:
        raise TypeError(f"a chunk is nested in {MAX_DEPTH} levels at most")
    match value:
        case str():
            units = value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass")
            return units.decode("utf-16", "replace")
        case Mapping():
            return {clean(str(key)): clean(each, depth - 1) for key, each in value.items()}
        case list() | tuple():
            return [clean(each, depth - 1) for each in value]
        case _:
            return value
