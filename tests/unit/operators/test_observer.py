"""What the observer of a node answers of its users."""

from __future__ import annotations

from realtime.node.node import Node
from realtime.operators.questions import AskUsers, UsersAnswer
from tests.unit.parts import RecordingClient


async def test_users_are_found_by_the_beginning_of_their_id(node: Node) -> None:
    for number, user in enumerate(["ada", "ada", "adam", "bob", "", "ad"]):
        node.hub.add(RecordingClient(f"C{number}", user))
    found = (await node.survey(AskUsers("ada", 50), UsersAnswer)).answers
    first = (await node.survey(AskUsers("", 2), UsersAnswer)).answers
    assert [(answer.users, answer.total) for answer in found] == [({"ada": 2, "adam": 1}, 2)]
    assert [(answer.users, answer.total) for answer in first] == [({"ad": 1, "ada": 2}, 4)]
