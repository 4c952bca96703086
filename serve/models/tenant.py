"""Whose request a model of the cluster is asked to answer.

Invariant: a client cannot say so itself: the gateway writes it over whatever is there.
"""

from __future__ import annotations

from typing import Final

TENANT: Final = "fupan_tenant"
"""The key of a chat's body that names the tenant, "" where there are no keys. What is kept of one
tenant's requests is of use to that one alone; without this key they are one more tenant's."""
