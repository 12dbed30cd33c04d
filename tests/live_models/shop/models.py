"""Rows of a shop, with all that makes rows difficult: proxies, inheritance, relations, defaults."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any, ClassVar

from django.db import models


class Tag(models.Model):
    name = models.CharField(max_length=20)
    orders: Any
    objects: ClassVar[Any] = models.Manager()


class Open(models.Manager["Order"]):
    """Soft deletion: what is hidden is not found."""

    def get_queryset(self) -> models.QuerySet[Order]:
        return super().get_queryset().filter(hidden=False)


class Order(models.Model):
    team = models.CharField(max_length=20, null=True)
    title = models.CharField(max_length=100, default="an order")
    total = models.DecimalField(max_digits=8, decimal_places=2, default=Decimal(0))
    hidden = models.BooleanField(default=False)
    tags = models.ManyToManyField(Tag, related_name="orders")
    objects = Open()


class Express(Order):
    """A row of two tables."""

    courier = models.CharField(max_length=20, default="")


class Quick(Order):
    """The same rows, other code."""

    class Meta:
        proxy = True


class Node(models.Model):
    """Its key is no number; rows are neighbours of each other."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    neighbours: Any = models.ManyToManyField("self")
    objects: ClassVar[Any] = models.Manager()


class Company(models.Model):
    name = models.CharField(max_length=20)
    objects: ClassVar[Any] = models.Manager()


class Customer(models.Model):
    company_id: Any
    name = models.CharField(max_length=20)
    company = models.ForeignKey(Company, models.SET_NULL, null=True)
    objects: ClassVar[Any] = models.Manager()


class Regular(Customer):
    """The same rows, other code."""

    class Meta:
        proxy = True


class Gold(Customer):
    """A row of two tables."""

    since = models.IntegerField(default=2000)


class Invoice(models.Model):
    """A row that shows others."""

    customer_id: Any
    clerk_id: Any
    customer = models.ForeignKey(Customer, models.SET_NULL, null=True)
    clerk = models.ForeignKey(
        Regular, models.CASCADE, null=True, related_name="written", to_field="id"
    )
    objects: ClassVar[Any] = models.Manager()


class Plain(models.Model):
    """No feed has it."""

    objects: ClassVar[Any] = models.Manager()
