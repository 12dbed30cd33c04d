"""Talking to Redis: its address, our own connections on event loops, blocking ones in threads.

    hosts       one shard: its address, credentials, TLS, Sentinel
    commands    commands and scripts, requests and replies
    link        one connection and its handshake: commands out, replies in
    connection  commands on an event loop, many in one write
    pubsub      publish/subscribe that comes back after it was lost
    blocking    commands of threads that have no event loop

Nothing here knows what the commands mean. Every failure is an EngineUnavailable.
"""
