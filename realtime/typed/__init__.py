"""Typed channels: one declaration of the types in a channel, for checks, code, documents and pages.

    # orders/realtime.py
    orders = realtime.channel("orders:{pk}", sends=OrderChanged | OrderShipped, accepts=Comment)

    orders(pk=42).publish(OrderShipped(at=now()))

declaring     `channel`, and what it returns
declarations  patterns and their types; the checks of publications
contract      what an adapter of a library of types is
adapters      msgspec, and the choice of an adapter
models        pydantic
serializers   Django REST framework
formats       of dates and times in schemas
examples      a value to start from

Nothing of it is loaded in a site that declares no types. docs/typed-channels.md.
"""
