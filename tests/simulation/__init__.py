"""A simulated world for the real nodes: virtual time, a network, Redis, clients, and one judge.

    world      virtual time, what happens next, processes with loops and clocks of their own
    network    links between processes: delays, cuts, stalls, ends that learn nothing
    redis_*    a model of Redis: data and scripts, connections, replicas, Sentinels
    members    the processes of the service: real nodes, with real engines
    clients    clients of both generations, as the published ones recover
    listeners  clients whose URL names the channels, as an EventSource recovers
    threads    processes that publish with blocking calls
    judge      what was acknowledged, delivered and told; the invariants
    plan       what a seed decides; shrink makes a plan smaller
    faults     what may go wrong; known_faults: mistakes that some seeds must find
    scenario   a plan becomes a service, its load and its faults
    __main__   runs seeds: `make simulate SECONDS=60`

A run has no real time, socket or thread, and each of its chances comes from the seed: it is equal,
step by step, with its seed.
"""
