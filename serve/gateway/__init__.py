"""The OpenAI-compatible gateway: one request of a client in, one answer out.

    app.py        the routes, and OpenAI-shaped errors for whatever goes wrong (openapi.py,
                  openapi_schemas.py: what they are)
    client.py     one client's request: what it sends, whether it is still there, what it gets
    gateway.py    one request from its arrival to its answer, on one screen
    build.py      a gateway of its settings
    request.py    a request, read and checked (estimate.py: its tokens; bound.py: the most it costs)
    recall.py     whether a request has to be asked at all
    charge.py     what a request takes from its key (held.py: while its stream lasts)
    settings.py   the `serve` section of fupan.yaml
    contract.py   what its parts hand to each other
    errors.py     the error tree, and what each one is on the wire
    names.py      one list of names over all providers
    upstream.py   one request to providers: the first that can answer it (one_provider.py: permits,
                  retries; attempt_stream.py: streams; failures.py: what clients are told)
    events.py     server-sent events: read, joined (joined.py), put together, cut again
    keys.py       who may ask: keys, hashed at rest
    meter.py      how much each key may ask and spend
    admission.py  bounded queues and bodies
    tasks.py      limits for callers that name their task
    flights.py    single flight: of equal requests at once, one is asked (flight.py: one of them)
    repeats.py    idempotency keys
    replay.py     a kept answer given again
    tee.py        a stream that is kept while it passes
    analyze.py    one document, asked about in parallel

Invariant: nothing here imports Ray Serve (`serve/app.py` does), so that the whole gateway also runs
in one process behind any ASGI server.
"""
