"""The pause with which a run asks a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodes.errors import Paused

REASON = "question"  # the reason of a pause that waits for answers; other pauses wait for a decision
Question = Mapping[str, Any]  # A question as data: `question`, `type`, and optional `choices` and `default`


def pause(path: str, questions: Mapping[str, Question]) -> Paused:
    asked = [each["question"] for each in questions.values()]
    return Paused(
        REASON,
        asked[0] if len(asked) == 1 else f"{len(asked)} questions: {' '.join(asked)}",
        fix=f"answer with `NAME=VALUE` for {', '.join(f'`{name}`' for name in questions)}",
        evidence={"questions": {name: dict(each) for name, each in questions.items()}},
    ).located(path)
