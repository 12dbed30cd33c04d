"""The first generation of the wire protocol: its codecs, its schema, and the module generated
from that (`make schema`)."""
