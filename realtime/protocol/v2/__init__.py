"""The second generation of the wire protocol: codecs, codes, and the schema.

`make schema` generates `client_pb2` from the schema. docs/protocol.md, 15.
"""
