"""One client over many HTTP requests.

session           one client whose requests come and go, and how it writes: its framing
incoming          the frames that the client sent
response          a response that takes a session's frames
sessions          the sessions of one node, by name, and of others, when requests may come to any
owning_node       which node owns a session: claims
owning_client     which client owns it
relay_messages    what nodes say to each other about sessions, and how they send it
remote_session    the relay node's side
remote_receiver   the owner's side
"""
