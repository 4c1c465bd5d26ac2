"""``runops config``: the settings, their values, and where each comes from."""

from __future__ import annotations

from typing import Annotated, Any

from nodes.values import Json
from runtime.browser import origins
from runtime.cli import console, flags
from runtime.display import escapes
from runtime.models import selection
from runtime.settings import places, reference, settings
from runtime.settings.places import Place

KEY = "model_key"  # no setting of the model, and shown as one: never its value
COMMANDS = frozenset({"reset"})  # a command of a shell may hold a password
ADDRESSES = frozenset({"browser_url", "model_base_url"})
SET = "(set, and not shown)"


def config(
    name: Annotated[str | None, flags.argument("SETTING", "One setting; by default all.")] = None,
    origin: Annotated[bool, flags.option("--origin", "Where each value comes from, with file and line.")] = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Print the settings that hold here, as a command without flags has them.

    A value comes from the environment, from `.env`, from pyproject.toml, or is the default. Keys, commands and passwords in addresses are
    never shown. With a SETTING only its value is printed. With `--json`, each setting has what it takes and what it does.
    """
    wanted = [reference.find(name).name] if name is not None and name != KEY else [name] if name else None
    config = settings.load()
    rows = [each for each in _rows(config) if wanted is None or each["name"] in wanted]
    if as_json:
        ignored: list[Json] = [{"name": each.name, "origin": str(each)} for each in _strange()]
        console.result(console.as_json(settings=[*rows], ignored=ignored))
        return
    if wanted is not None and not origin:
        console.result("\n".join(_shown(each["value"]) for each in rows))
        return
    lines = [[str(each["name"]), *([str(each["origin"])] if origin else []), _shown(each["value"])] for each in rows]
    console.result("\n".join(console.table(lines)))
    for each in _strange() if wanted is None else []:
        console.say(
            f"{escapes.line(each.named)} is no setting, and has no effect unless a workflow names it as a secret"
        )


def _strange() -> list[Place]:
    return places.strange(settings.Settings.model_fields)


def _rows(config: settings.Settings) -> list[dict[str, Json]]:
    rows: list[dict[str, Json]] = []
    for each in reference.every():
        value, place = getattr(config, each.name), settings.place_of(each.name)
        default = "default in CI" if reference.in_ci(each.name, value) else "default"
        rows.append(
            {
                "name": each.name,
                "value": _value(each.name, value),
                "origin": default if place.kind == "default" else str(place),
                "default": each.default,
                "variable": each.variable,
                "flag": each.flag,
                "takes": each.takes,
                "text": each.text,
            }
        )
    return [*rows, _key()]


def _key() -> dict[str, Json]:
    found = [place for variable in selection.KEYS for place, _ in places.given(variable)]
    return {
        "name": KEY,
        "value": SET if found else None,
        "origin": str(found[0]) if found else "default",
        "default": None,
        "variable": selection.KEY,
        "flag": None,
        "takes": "text",
        "text": f"The key for the server of models: only {' or '.join(selection.KEYS)}, from the environment or `.env`.",
    }


def _value(name: str, value: Any) -> Json:
    if name in COMMANDS:
        return SET if value else None
    if name in ADDRESSES and value:
        # Whatever may be a password in it is left out; what the provider's own variable holds is not checked.
        return origins.place(value) if name == "browser_url" or "@" in value or "?" in value else value
    return reference.as_json(value)


def _shown(value: Json) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case str():
            return escapes.line(value)
        case list():
            return ", ".join(map(_shown, value)) or "–"
        case dict():
            return escapes.as_json(value) if value else "–"
        case _:
            return str(value)
