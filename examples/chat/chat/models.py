from django.conf import settings
from django.db import models


class Message(models.Model):
    """What someone said in a room."""

    room = models.SlugField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    text = models.CharField(max_length=500)
    time = models.DateTimeField(auto_now_add=True)

    def as_json(self):
        """Return what pages get of a new message."""
        name = self.author.get_username()
        return {"id": self.pk, "user": str(self.author_id), "name": name, "text": self.text}
