"""What the report says of what was asked of a model and what it took, in English."""

from __future__ import annotations

COST = {
    "cost": "Cost and time",
    "asked": "Asked of the provider",
    "seconds": "Seconds",
    "by_station": "Seconds by step",
    "by_tier": "Shared among models",
    "tier_did": "{answered} answered, {escalated} handed on, {calls} calls, {tokens} tokens",
    "saved": "Saved against {model} for every record (naming apart)",
    "lost": "More than {model} for every record would have cost (naming apart)",
    "by_pack_size": "Packs by size",
    "pack_in_use": "In use at the end",
    "pack_sizes": "{fast} tokens, {slow} in the slow lane",
    "pack_limit": "What the run waited for",
    "pack_of": "About {n} tokens",
    "pack_others": "Slow lane, and packs that were not full",
    "pack_did": "calls {calls}, {seconds} s each; rows {rows}, asked again {again}",
    "requests": "Requests",
    "retries": "Retries",
    "rate_limited": "Answers 429 (too many requests)",
    "tokens_in": "Tokens in",
    "tokens_out": "Tokens out",
    "cost_so_far": "Cost so far",
    "cost_before": "of it by earlier commands of this run",
    "unconfirmed": "of it not confirmed by the provider",
    "max_spend": "May cost at most (--max-spend)",
    "prices": "Prices",
    "prices_own": "from fupan.yaml",
    "prices_list": "the vendor’s list of {day}",
    "cost_by_kind": "Cost by kind, {currency}",
    "cost_by_source": "Cost by source, {currency}",
    "cost_by_label": "Cost by team, {currency}",
    "wall": "The whole run",
    "calls": "Waiting for the model",
    "overhead": "Everything else",
    # The team's own rules, and how they were made shorter.
    "own_rules": "Team’s own rules",
    "own_rules_are": "{characters} characters, {tokens} tokens, hash {hash}, beginning “{line}”",
    "compressed": "Made shorter",
    "compressed_now": "{n} rule, checked to say the same: {tokens_after} tokens a call, not"
    " {tokens_before}; {tokens_saved} saved in {calls} calls, {tokens_spent} taken by shortening|"
    "{n} rules, each checked to say the same: {tokens_after} tokens a call, not {tokens_before};"
    " {tokens_saved} saved in {calls} calls, {tokens_spent} taken by shortening",
    "compressed_before": "By an earlier run: {tokens_after} tokens a call, not {tokens_before};"
    " {tokens_saved} saved in {calls} calls",
    "not_compressed_short": "No: 500 characters or fewer have little to save",
    "not_compressed_lost": "No, told as written: in a rule something was lost or added: {detail}",
    "not_compressed_unanswered": "No, told as written: the model left a rule out: {detail}",
    "not_compressed_judged": "No, told as written: by the model’s own judgement a rule no longer"
    " said the same: {detail}",
    "not_compressed_saves_nothing": "No, told as written: there was too little to save",
    "not_compressed_provider": "No, told as written: the model could not be asked: {detail}",
    "compression_took": "{spent} tokens taken by trying",
}
