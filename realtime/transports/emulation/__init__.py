"""One client over many HTTP requests.

framing           how a session writes: handed in by the application
session           one client whose requests come and go
incoming          the frames that the client sent
response          a response that takes a session's frames
sessions          the sessions of one node, by name
shared_sessions   the same, when requests may come to any node
claims            which node owns a session
relay_messages    what nodes say to each other about sessions
remote_session    the relay node's side
remote_receiver   the owner's side
"""
