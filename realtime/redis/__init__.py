"""Talking to Redis: where it is, our own connections on an event loop, blocking ones without.

    hosts          one shard: its address, credentials, TLS, Sentinel
    script         a Lua script and its digest
    link           one connection and its handshake: commands out, replies in
    connection     commands on an event loop, many in one write
    subscriptions  publish/subscribe that comes back after it was lost
    blocking       commands of threads that have no event loop

Nothing here knows what is said to Redis. Whatever goes wrong is an EngineUnavailable.
"""
