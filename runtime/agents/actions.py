"""Actions that a model requests on elements of a page, as fields of a node. Agents and the Director's scout use the same."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Sequence

from nodes.errors import OriginRefused, SiteError
from nodes.values import Json
from runtime.agents import secret_checks
from runtime.browser import origins
from runtime.browser.elements import targets
from runtime.browser.elements.facts import Facts
from runtime.observation.finding import Element
from runtime.secrets.masking import Masker


def usable(masker: Masker) -> Callable[[str], bool]:
    """Return a function that is true for texts that a target may contain."""
    return lambda text: secret_checks.refusal(text, masker) is None


async def target_of(pointed: targets.Pointed, element: Element, masker: Masker) -> Json:
    """Return a target that finds only this element. Raises SiteError ``no-target``."""
    target = await targets.target_of(pointed, element.role, element.name, usable(masker))
    return target.model_dump(mode="json", exclude_unset=True, by_alias=True)


def clicked(facts: Facts) -> str:
    """Return the action of a click: ``check`` or ``uncheck`` for a checkbox or radio button, else ``click``."""
    if facts.type not in ("radio", "checkbox"):
        return "click"
    return "uncheck" if facts.type == "checkbox" and facts.checked else "check"


def answered(dialog: str | None, text: Json, *, accept: bool) -> dict[str, Json]:
    """Return the answer to the dialog that the page shows. Raises SiteError ``no-dialog``."""
    if dialog is None:
        raise SiteError("no-dialog", "the page shows no dialog", fix="continue without one")
    if not accept:
        return {"action": "dialog", "answer": "dismiss"}
    return {"action": "dialog", "answer": "accept", **({} if text is None else {"value": text})}


def address(url: str, here: str, allowed: Sequence[str]) -> str:
    """Return the whole address. Raises OriginRefused for `data:`, `javascript:` and the like: a page could persuade a model to open one."""
    whole = urllib.parse.urljoin(here, url) if url.startswith(("/", "?")) else url
    if origins.origin(whole) is not None:
        return whole
    message = f"`{url[:100]}` is no complete address of a web site"
    fix = f"give it with https:// or http://, or from / on; {', '.join(allowed) or 'no site'} may be opened"
    scheme = f"{url.partition(':')[0]}:"[:40]
    evidence: dict[str, Json] = {"origin": scheme, "allowed": list[Json](allowed), "kind": "main frame"}
    raise OriginRefused("origin-refused", message, fix=fix, evidence=evidence)


def gone(ref: str, why: str = "", page: str = "the page") -> SiteError:
    """Return the error for an element that is not on the ``page``, or whose ref now means another one."""
    return SiteError(
        "ref-gone",
        f"{page} has no element {ref[:40]} now{why}",
        fix="take the ref that the element has now; look again if you were not shown it",
    )
