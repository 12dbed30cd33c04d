import uuid

from django.db import models


class Talk(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class Message(models.Model):
    talk = models.ForeignKey(Talk, on_delete=models.CASCADE, related_name="messages")
    is_answer = models.BooleanField()
    text = models.TextField()
    status = models.CharField(max_length=12, default="complete")

    class Meta:
        ordering = ("pk",)
