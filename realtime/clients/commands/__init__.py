"""The handlers of the client methods; `clients.dispatch` has their table. docs/protocol.md, 3."""
