from django.db import models


class Second(models.Model):
    """What the shop sold in one second."""

    orders = models.PositiveIntegerField()
    revenue = models.PositiveIntegerField()

    def as_json(self):
        """Return what the chart needs."""
        return {"id": self.pk, "orders": self.orders, "revenue": self.revenue}
