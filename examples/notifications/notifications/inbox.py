"""What happens to the notifications of a user, and how all their pages learn of it.

A publication says one fact: there is a notification, or some were read. A fact that comes twice
changes nothing, so the count of unread ones is the same in every tab and on every device.
"""

from django.db import transaction

from realtime import publish

from .models import Notification


def channel_of(user):
    """Return the personal channel of a user: the service admits no other user to it."""
    return f"inbox:#{user.pk}"


def notify(user, text):
    """Add a notification.

    The row and the publication are committed together, or neither is: durable publications wait in
    the same database, and go out after the commit, even if this process dies in between.
    """
    with transaction.atomic():
        notification = Notification.objects.create(user=user, text=text)
        publish(channel_of(user), {"new": notification.pk, "text": text}, durable=True)


def mark_read(user, **which):
    """Mark notifications of a user as read; `which` selects some of them, as in a filter."""
    with transaction.atomic():
        unread = user.notifications.filter(read=False, **which)
        ids = list(unread.values_list("pk", flat=True))
        if ids:
            Notification.objects.filter(pk__in=ids).update(read=True)
            publish(channel_of(user), {"read": ids}, durable=True)
