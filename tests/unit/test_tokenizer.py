"""Token estimates compared with the real tokenizer, for the texts of requests and for windows with a hard limit."""

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
    """The tokenizer of all OpenAI models since 2024."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        import bpe_openai  # it opens its tables by a deprecated API

        return bpe_openai.get_encoding("o200k_base")


@functools.lru_cache(maxsize=1 << 14)
def real(text: str) -> int:
    """The tokens of a text, as OpenAI's models count them."""
    return len(encoding().encode_ordinary(text))


def files(*patterns: str) -> str:
    """Some texts of this project, joined."""
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
"""The highest ratio of estimate to truth; 1.17 by default."""


@pytest.mark.parametrize("sample", GOLDEN["samples"], ids=[each["of"] for each in GOLDEN["samples"]])
def test_the_package_counts_as_the_tokenizer_does(sample: dict[str, Any]) -> None:
    """Every sample has the same number of tokens as when it was recorded."""
    assert real(sample["text"]) == sample["tokens"]


@pytest.mark.parametrize("kind", TEXTS)
def test_request_texts_are_estimated_closely(kind: str) -> None:
    """The estimate is never below the truth, whole or in parts, and not far above it."""
    text = TEXTS[kind]()
    assert len(text) > 1_000
    assert real(text) <= tokens.count(text) <= real(text) * MOST.get(kind, 1.17)
    for begin in range(0, len(text), 997):
        assert real(text[begin : begin + 997]) <= tokens.count(text[begin : begin + 997])


@given(st.text() | st.text("ab {}\":,\n\t\\/<>=01'é茶"))
def test_no_estimate_is_below_the_truth(text: str) -> None:
    """The estimate of any text is at least its real number of tokens."""
    assert real(text) <= tokens.count(text)


CONVERSATIONS = 200
LONG = 60
"""Entries of a conversation."""


@functools.cache
def snippets() -> tuple[str, ...]:
    """Excerpts of every kind of text, short and long."""
    chance = random.Random(1)
    found: list[str] = []
    for make in TEXTS.values():
        text = make()
        for _number in range(12):
            begin = chance.randrange(len(text))
            found.append(text[begin : begin + chance.choice([20, 80, 300, 1_200, 6_000])])
    return tuple(found)


def conversation(chance: random.Random) -> Talk:
    """Messages, answers, calls with outputs, errors, events and summaries, in random order."""
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
    """The request frame: rules, sometimes more tools than fit, state and knowledge."""
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
    """No request of 200 long conversations exceeds 1,500 real tokens, and their median is above 800."""
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
