"""What hooks are told does not show secrets where it is logged."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from realtime.hooks.base import Handshake
from realtime.hooks.requests import ConnectRequest, Request, SubscribeRequest


def test_credentials_are_not_shown() -> None:
    handshake = Handshake({"cookie": "sessionid=secret", "authorization": "Bearer secret"})
    asked = SubscribeRequest(
        client="C", user="17", handshake=handshake, channel="room:1", token="secret"
    )
    connecting = ConnectRequest(client="C", user="", handshake=handshake, data={"key": "secret"})

    assert "secret" not in f"{asked!r} {connecting!r} {handshake!r}"
    assert "room:1" in repr(asked)


@pytest.mark.django_db
@pytest.mark.parametrize("active", [True, False])
def test_user_who_is_not_active_is_nobody(active: bool) -> None:
    user = User.objects.create_user("ann", is_active=active)
    request = Request(client="C", user=str(user.pk), handshake=Handshake())

    assert request.get_user().is_authenticated is active
