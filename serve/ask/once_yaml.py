"""YAML in which no key may stand twice: of two, the first would be lost without a word.

Invariant: what is read is plain values, whatever the text holds.
"""

from __future__ import annotations

from typing import Any

import yaml

_IN_C: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Several times as fast, where there is one."""


class DoubledKey(yaml.MarkedYAMLError):
    """A mapping holds a key twice; the mark is where the second one stands."""


class _Once:
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                problem = f"{key.value!r} stands twice, in line {seen[key.value]} already"
                raise DoubledKey(problem=problem, problem_mark=key.start_mark)
            seen[key.value] = key.start_mark.line + 1
        return super().construct_mapping(node, deep)  # type: ignore[misc]


class _Quick(_Once, _IN_C):  # type: ignore[misc]
    pass


class _Exact(_Once, yaml.SafeLoader):
    pass


def load_yaml(text: str) -> Any:
    """The value that `text` holds. Raises yaml.YAMLError, DoubledKey among them, and ValueError for
    a date that does not exist."""
    try:
        return yaml.load(text, _Quick)  # noqa: S506  a safe loader too
    except DoubledKey:
        raise
    except yaml.YAMLError:
        return yaml.load(text, _Exact)  # noqa: S506  it says better what is wrong, and where
