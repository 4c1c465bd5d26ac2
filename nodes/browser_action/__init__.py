"""``browser_action``: one action on the page. Each action is a class, so that each accepts only its own fields."""

from typing import get_args

from nodes.browser_action.base import BrowserAction as BrowserAction
from nodes.browser_action.fields import Check, Fill, Press, Select, Type, Uncheck
from nodes.browser_action.files import Download, Pdf, Screenshot, Upload
from nodes.browser_action.mouse import Click, DoubleClick, Drag, Draw, Hover, Scroll, Tap, Wheel
from nodes.browser_action.navigation import Back, CloseTab, Dialog, Forward, Goto, OpenTab, Reload, SwitchTab, Wait
from nodes.browser_action.sessions import LoadSession, SaveSession
from nodes.browser_action.text import Copy, Paste, SelectText

VARIANTS = (
    *(Goto, Back, Forward, Reload, Click, DoubleClick, Tap, Fill, Type, Press, Check, Uncheck, Select, Hover, Drag),
    *(Draw, Wheel, Scroll, SelectText, Copy, Paste, Upload, Download, Dialog, Wait, OpenTab, SwitchTab, CloseTab),
    *(Screenshot, Pdf, SaveSession, LoadSession),
)
"""The actions, selected by ``action``."""

LEAVING_THE_PAGE = frozenset(
    get_args(each.model_fields["action"].annotation)[0] for each in VARIANTS if each.effect_default == "read"
)
"""Actions that leave the page as it was."""
