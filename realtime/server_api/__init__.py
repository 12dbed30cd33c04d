"""The server HTTP API: bytes and a key in; status, headers and bytes out. No web framework.

`api.views` (Django REST framework) and `realtime.asgi` (plain ASGI) are thin shells over
`endpoint`.
"""
