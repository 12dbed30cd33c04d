"""Rooms and what was written in them."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Room(models.Model):
    """A room, with its members."""

    name = models.CharField(max_length=50, unique=True)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL)


class Message(models.Model):
    """What a member wrote."""

    room = models.ForeignKey(Room, on_delete=models.CASCADE)
    text = models.TextField()
