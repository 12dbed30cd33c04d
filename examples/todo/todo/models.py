from django.db import models


class Item(models.Model):
    title = models.CharField(max_length=100)
    done = models.BooleanField(default=False)

    class Meta:
        ordering = ("pk",)
