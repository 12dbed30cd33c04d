"""The first generation of the wire protocol: codecs, numbers, and the schema.

`make schema` generates `client_pb2` from the schema. docs/protocol.md, 2 to 5.
"""
