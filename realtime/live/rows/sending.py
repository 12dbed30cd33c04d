"""Sending publications of live models: to the engine, or into rows where the channel is durable."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from realtime.cluster.member import NewPublication
from realtime.errors import EngineUnavailable, NotServing
from realtime.server_api import transactions
from realtime.server_api.durable import RowKey, rows_of
from realtime.serving import serving

logger = logging.getLogger("realtime.live")


def send(publications: Sequence[NewPublication]) -> None:
    """Send publications after a commit, in as few round trips as possible.

    A process that reaches no clients drops them, as a management command beside the memory engine.

    Raises:
        Exception: they could not be written, or the engine failed in an unknown way.
    """
    if not publications:
        return
    checked = transactions.check(publications, serving.config())
    kept = [each for each in checked if each[1].durable]
    if kept:
        rows_of(serving.row_writer).add(kept, None, None)
    others = [each for each in checked if not each[1].durable]
    if not others:
        return
    try:
        serving.after_commit.send(others)
    except NotServing as error:
        logger.debug("Changes of rows are not published: %s", error)
    except EngineUnavailable as error:
        logger.warning("%d publications of changed rows are lost: %s", len(others), error)


def write(publications: Sequence[NewPublication]) -> Sequence[RowKey]:
    """Write durable publications into the transaction that is under way; return their keys.

    Raises:
        ImproperlyConfigured: the app "realtime.pending" is not installed.
        DatabaseError: the transaction is broken.
    """
    if not publications:
        return []
    checked = transactions.check(publications, serving.config())
    return rows_of(serving.row_writer).add(checked, None, None)


def withdraw(keys: Sequence[RowKey]) -> None:
    """Take durable publications of this transaction back.

    Raises:
        DatabaseError: the transaction is broken.
    """
    rows_of(serving.row_writer).withdraw(keys)
