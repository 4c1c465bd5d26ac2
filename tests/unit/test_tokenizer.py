"""Estimates held against the real tokenizer, whose tables come in a package: texts of the kinds that requests are made of, and windows with a hard limit."""

from __future__ import annotations

import base64
import functools
import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.context import window
from runtime.messages import estimates, tokens
from runtime.messages.messages import Request
from tests.windows import Asked, Talk, request, tool

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((Path(__file__).parent / "golden" / "tokens.json").read_text(encoding="utf-8"))


@functools.cache
def encoding() -> Any:
    """The tokenizer of all of OpenAI's models since 2024."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        import bpe_openai  # it opens its tables in a way that Python means to take away

        return bpe_openai.get_encoding("o200k_base")


@functools.lru_cache(maxsize=1 << 14)
def real(text: str) -> int:
    """Tokens of a text, as OpenAI's models read it."""
    return len(encoding().encode_ordinary(text))


def files(*patterns: str) -> str:
    """Some of the texts of this project, one behind the other."""
    found = sorted(each for pattern in patterns for each in ROOT.glob(pattern))
    assert found, patterns
    return "\n".join(each.read_text(encoding="utf-8") for each in found)[:60_000]


CHINESE = (
    "订单一千零七没有付款因为按钮被对话框挡住了。请先关闭对话框。然后再次点击付款按钮。"
    "所有未付款的订单都在列表中。金额以欧元计算。发货地址必须填写完整。"
)

TEXTS: dict[str, Callable[[], str]] = {
    "HTML": lambda: files("tests/**/*.html"),
    "JSON": lambda: json.dumps(
        [{"number": 1000 + n, "name": f"Order {n}", "paid": n % 3 == 0, "total": n * 7.25} for n in range(400)],
        indent=1,
    ),
    "code": lambda: files("runtime/*.py"),
    "Markdown": lambda: files("docs/*.md"),
    "workflows": lambda: files("workflows/*.yaml"),
    "Chinese": lambda: CHINESE * 20,
    "base64": lambda: base64.b64encode(random.Random(7).randbytes(9_000)).decode(),
}

MOST = {"Chinese": 1.5}
"""How far above the truth an estimate may lie; 1.17 where nothing is said."""


@pytest.mark.parametrize("sample", GOLDEN["samples"], ids=[each["of"] for each in GOLDEN["samples"]])
def test_the_package_counts_as_the_tokenizer_does(sample: dict[str, Any]) -> None:
    """Every sample has as many tokens by it as when it was counted."""
    assert real(sample["text"]) == sample["tokens"]


@pytest.mark.parametrize("kind", TEXTS)
def test_what_requests_are_made_of_is_counted_closely(kind: str) -> None:
    """Never fewer than there are, whole or in pieces, and not many more."""
    text = TEXTS[kind]()
    assert len(text) > 1_000
    assert real(text) <= tokens.count(text) <= real(text) * MOST.get(kind, 1.17)
    for begin in range(0, len(text), 997):
        assert real(text[begin : begin + 997]) <= tokens.count(text[begin : begin + 997])


@given(st.text() | st.text("ab {}\":,\n\t\\/<>=01'é茶"))
def test_no_text_has_more_tokens_than_it_is_counted_for(text: str) -> None:
    """Whatever it is."""
    assert real(text) <= tokens.count(text)


CONVERSATIONS = 200
LONG = 60
"""Things that are said in a conversation."""


@functools.cache
def snippets() -> tuple[str, ...]:
    """Pieces of every kind of text, short and long."""
    chance = random.Random(1)
    found: list[str] = []
    for make in TEXTS.values():
        text = make()
        for _number in range(12):
            begin = chance.randrange(len(text))
            found.append(text[begin : begin + chance.choice([20, 80, 300, 1_200, 6_000])])
    return tuple(found)


def conversation(chance: random.Random) -> Talk:
    """Words, answers, calls with outputs, errors, events and summaries, in no order."""
    talk = Talk()
    pick = functools.partial(chance.choice, snippets())
    for _number in range(LONG):
        action = chance.random()
        if action < 0.35:
            talk.says(pick()[: chance.choice([20, 100, 1_500])])
        elif action < 0.55:
            talk.answers(pick()[:2_000])
        elif action < 0.85:
            calls = [
                Asked("read_state", json.dumps({"path": pick()[:40]}), pick()) for _ in range(chance.choice([1, 3]))
            ]
            talk.answers(pick()[:100] if chance.random() < 0.3 else "", calls)
        elif action < 0.92:
            talk.fails("model-timeout", pick()[:500])
        elif action < 0.98:
            talk.happens(f"/set total={chance.random()}")
        else:
            talk.sums_up(pick()[:800], talk.writer.history.last_seq)
    talk.says(pick()[:900])
    return talk


def around(chance: random.Random) -> window.RequestFrame:
    """What stands around it: rules, more tools than there is room for, and state or knowledge."""
    picked = chance.sample(snippets(), 4)
    return window.RequestFrame(
        prefix=(window.Part("rules", picked[0][:300]),),
        tools=tuple(tool(f"tool_{number}", picked[1][:200]) for number in range(chance.choice([0, 2, 14]))),
        state=tuple(window.Part(name, text) for name, text in zip(("plan", "variables"), picked[2:], strict=True))
        if chance.random() < 0.6
        else (),
        knowledge=lambda asked: [window.Part("known", f"{asked[:40]}\n{picked[0]}\n{picked[3]}")],
    )


def test_a_hard_limit_holds_by_the_real_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 long conversations with all that stands around them: no request has more than 1,500 tokens, and most of them use what they have."""
    monkeypatch.setattr(tokens, "count", functools.lru_cache(maxsize=1 << 14)(tokens.count))
    strict = window.Limits(hard_limit=window.STRICT)
    requests: list[Request] = []
    for seed in range(CONVERSATIONS):
        chance = random.Random(seed)
        talk = conversation(chance)
        requests.append(request(window.build(talk.items, around(chance), strict)))
    monkeypatch.setattr(tokens, "count", real)
    counted = sorted(estimates.tokens(each) for each in requests)
    assert counted[-1] <= window.STRICT
    assert counted[len(counted) // 2] > 800
