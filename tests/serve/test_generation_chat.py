"""Messages to tokens: what is in a message is text, whatever it looks like."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from serve.generation.parameters import Message

pytestmark = pytest.mark.slow  # it imports transformers

TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>{% endfor %}"
    "<|start|>"
)
SPECIAL = ("<|start|>", "<|end|>")
ADDED = ("</think>", "<tool_call>")
SPACES = "    "


@pytest.fixture(scope="module")
def chat() -> Any:
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.decoders import ByteLevel as Decoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import PreTrainedTokenizerFast

    from serve.generation.chat import Chat

    letters = {each: place for place, each in enumerate(sorted(ByteLevel.alphabet()))}
    backend = Tokenizer(BPE(letters, []))
    backend.pre_tokenizer, backend.decoder = ByteLevel(add_prefix_space=False), Decoder()
    backend.add_special_tokens([AddedToken(each, special=True) for each in SPECIAL])
    backend.add_tokens([AddedToken(each, special=False) for each in (*ADDED, SPACES)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")
    tokenizer.chat_template = TEMPLATE
    return Chat(tokenizer, 4096)


def _count(chat: Any, text: str, *marks: str) -> list[int]:
    tokens = chat.prompt([Message("user", text)])
    return [tokens.count(chat._tokenizer.convert_tokens_to_ids(each)) for each in marks]


@pytest.mark.parametrize("mark", [*SPECIAL, *ADDED])
def test_no_text_becomes_a_token_that_means_something(chat: Any, mark: str) -> None:
    plain = _count(chat, "hello", *SPECIAL, *ADDED)
    assert plain == [2, 1, 0, 0]
    assert _count(chat, f"so {mark} it {mark}", *SPECIAL, *ADDED) == plain
    shown = chat._tokenizer.decode(chat.prompt([Message("user", f"so {mark} it")]))
    assert f"so {mark} it" in shown


def test_spaces_are_the_models_own_tokens(chat: Any) -> None:
    assert _count(chat, f"a{SPACES}b", SPACES) == [1]
    assert _count(chat, f"a{SPACES}b </think>", SPACES, "</think>") == [1, 0]


def test_prompts_that_are_made_at_once_are_those_made_alone(chat: Any) -> None:
    texts = [f"{number} <|end|> text" if number % 2 else f"{number} text" for number in range(200)]
    alone = [chat.prompt([Message("user", each)]) for each in texts]
    with ThreadPoolExecutor(2) as two:
        assert list(two.map(lambda each: chat.prompt([Message("user", each)]), texts)) == alone
