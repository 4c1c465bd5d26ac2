"""Actions that save and load a signed-in state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from nodes.browser_action.base import BrowserAction
from nodes.errors import SiteError
from nodes.part import EffectClass
from nodes.template import Ref, Unfit, to_text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.ports import LeafContext


def to_name(value: Json) -> str:
    text = to_text(value)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}", text):
        raise Unfit("is no name: letters, digits, `_`, `-` and dots, at most 80, beginning with a letter or a digit")
    return text


class Session(BrowserAction):
    """A signed-in state by name."""

    effect_default: ClassVar[EffectClass] = "idempotent"

    name: Annotated[str, AfterValidator(to_name), Ref(to_name)]
    """Name of the state, such as ``shop-admin``. All workflows of a project share these names."""

    def summary(self) -> str:
        return f"{getattr(self, 'action', 'session')} {self.name}"


class SaveSession(Session):
    """Saves the signed-in state: cookies, local storage and IndexedDB of the origins that the workflow allows. Value: ``{name, saved_at}``.

    It is stored in the private part of ``.runops``, is readable by its owner only, and is never shown. ``load_session`` loads it, in this
    workflow or another.
    """

    action: Literal["save_session"]
    """Save the signed-in state."""

    async def run(self, ctx: LeafContext) -> Json:
        await ctx.act()
        saved_at = await ctx.sessions.save(self.name, await ctx.page.signed_in())
        return {"name": self.name, "saved_at": saved_at}


class LoadSession(Session):
    """Loads a signed-in state saved by ``save_session``, in place of the browser's. Value: ``{name, saved_at}``.

    Only data of origins that the workflow allows is loaded. Open pages keep what they show until they are reloaded, and lose their
    connection to IndexedDB. Errors: ``session-not-found`` for a missing state, ``session-expired`` for one older than ``max_age``, or
    without a valid cookie that can sign in. A ``handle`` around this and the first page catches them, and signs in.
    """

    action: Literal["load_session"]
    """Load a signed-in state."""
    max_age: float | None = Field(default=None, gt=0)
    """Seconds after which a state is too old; by default it never is."""

    async def run(self, ctx: LeafContext) -> Json:
        state = await ctx.sessions.load(self.name)
        if state is None:
            raise self._unusable("session-not-found", "there is none", None)
        if self.max_age is not None and state.age > self.max_age:
            why = f"it is {state.age:.0f} s old, and may be {self.max_age:g}"
            raise self._unusable("session-expired", why, state.saved_at)
        await ctx.act()
        await ctx.page.sign_in(state.content)
        return {"name": self.name, "saved_at": state.saved_at}

    def _unusable(self, code: str, why: str, saved_at: str | None) -> SiteError:
        return SiteError(
            code,
            f"no signed-in state `{self.name}` can be loaded: {why}",
            fix="sign in and keep the state with `save_session`, in the `catch` of a `handle` around this node",
            evidence={"name": self.name, "saved_at": saved_at},
        )
