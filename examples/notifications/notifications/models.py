from django.conf import settings
from django.db import models


class Notification(models.Model):
    """One thing that a user should know."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="notifications")
    text = models.CharField(max_length=200)
    read = models.BooleanField(default=False)
    time = models.DateTimeField(auto_now_add=True)
