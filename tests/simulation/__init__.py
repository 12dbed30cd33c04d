"""A simulated world for the real nodes: virtual time, a network, servers, clients, and one judge.

    world        virtual time, what happens next, processes with loops and clocks of their own
    network      links between processes: delays, cuts, stalls, ends that learn nothing
    redis_*      a model of Redis: data and scripts, connections, replicas, Sentinels, clusters
    postgresql_* a model of PostgreSQL: tables, statements, backends, connections, faults
    members      the processes of the service: real nodes, with real engines
    http_server  a server of HTTP around the product's ASGI applications
    clients      clients of both generations, as the published ones recover
    wires        how clients connect: WebSocket, HTTP streams, SockJS
    listeners    clients whose URL names the channels, as an EventSource recovers
    threads      processes that publish with blocking calls
    greenlets    threads of a process, which the world stops where they would block
    site         writers of durable publications, and the relays of nodes
    site_*       the site's database: a model over SQLite, apart from the engine's or joined with it
    server_api   conditional publications, and reads, as a site makes them
    maps         maps: their load, clients, and invariants
    stored       streams as they are kept, to compare with what the service says
    wishes       what the server API was asked for
    judge        what was acknowledged, delivered and told; the invariants
    row_judge    what was committed, published and left; the invariants of rows
    checks       what must be true of nodes and Redis
    plan         what a seed decides; shrink makes a plan smaller; kept: plans that failed once
    faults       what may go wrong, relay_faults: with rows; known_faults: mistakes to be found
    mutants      plants faults, one at a time, and plays seeds until one fails; see mutations
    scenario     a plan becomes a service, its load and its faults
    __main__     runs seeds: `make simulate SECONDS=60`

A run has no real time, socket or thread, and each of its chances comes from the seed: it is equal,
step by step, with its seed.
"""
