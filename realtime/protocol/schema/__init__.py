"""The Protobuf schema of the client protocol and the module generated from it (`make schema`)."""
