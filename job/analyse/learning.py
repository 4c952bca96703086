"""What replies teach: the one place where a run learns from them. Pure.

Invariant: a cut or broken reply teaches nothing about the length of answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from job.pack import Fit, Item
from job.validate import Verdict
from serve.ask.contract import Reply, Request


@dataclass(slots=True)
class Learning:
    """Learns from every reply, for the packs that follow."""

    fit: Fit

    def observe(
        self, items: Sequence[Item], request: Request, reply: Reply, verdict: Verdict
    ) -> None:
        """Learn from the reply to `request` about `items`, judged as `verdict`."""
        self.fit.observe_input(request.estimate_in, reply.usage.tokens_in)
        if verdict.whole:
            kind, lane = items[0].record.kind, items[0].record.lane
            self.fit.observe_output(kind, lane, reply.usage.tokens_out, verdict.weights)
