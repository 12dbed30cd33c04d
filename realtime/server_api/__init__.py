"""The server API: publishing and administering, as Python functions and over HTTP.

`operations` has the rules. `publishing`, `queries` and `connections` are the Python functions.
`http` and `methods` turn bytes into bytes, without a web framework: `api.views` (Django REST
framework) and `realtime.asgi` (plain ASGI) are thin shells over `http`.
"""
