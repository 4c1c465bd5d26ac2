"""The form of 50 steps as a workflow, and the record that either variant must leave in the shop."""

from __future__ import annotations

from typing import Any

from nodes.values import Json
from workflows.shop import form


def steps() -> list[dict[str, Any]]:
    """One node for each of the 50 fields: 20 fill, 10 select, 10 check, 5 radio, 4 read, 1 click."""
    made = [_step(number, field) for number, field in enumerate(form.FIELDS, start=1)]
    assert len(made) == 50, len(made)
    return made


def _step(number: int, field: form.Field) -> dict[str, Any]:
    action: dict[str, Any] = {"id": f"s{number}", "type": "browser_action"}
    match field.kind:
        case "text":
            return {
                **action,
                "action": "fill",
                "target": {"label": field.label},
                "value": f"{field.label} {{{{ inputs.n }}}}",
            }
        case "select":
            return {**action, "action": "select", "target": {"label": field.label}, "value": field.options[-1]}
        case "checkbox":
            return {**action, "action": "check", "target": {"label": field.label}}
        case "radio":
            return {**action, "action": "check", "target": {"label": field.options[-1]}}
        case "read":
            return {"id": f"s{number}", "type": "browser_query", "query": "text", "target": {"test_id": field.name}}
        case "submit":
            target = {"role": "button", "name": field.label}
            return {**action, "action": "click", "target": target, "verify": [{"url": "**/form/record/*"}]}


def workflow() -> dict[str, Any]:
    """The workflow, as the data of a file."""
    return {
        "version": 1,
        "name": "Fill the form",
        "inputs": {"base_url": {"type": "string"}, "n": {"type": "string"}},
        "nodes": [
            {"id": "open", "type": "browser_action", "action": "goto", "url": "{{ inputs.base_url }}/form"},
            *steps(),
        ],
        "output": "{{ s50 }}",
    }


def record() -> dict[str, Json]:
    """The record that the shop must have."""
    wanted: dict[str, Json] = {}
    for field in form.FIELDS:
        match field.kind:
            case "text":
                wanted[field.name] = f"{field.label} 1"
            case "select" | "radio":
                wanted[field.name] = field.options[-1]
            case "checkbox":
                wanted[field.name] = True
            case _:
                pass
    return wanted
