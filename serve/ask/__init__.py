"""Asking a language model: one limiter for everybody, one attempt at a time, paid once.

Nothing in here knows Ray Serve or what a record is: the batch job and the gateway use it alike.
"""
