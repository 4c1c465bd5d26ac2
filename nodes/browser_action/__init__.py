"""``browser_action``: one action on the page. Each action is a class, so that each accepts only its own fields."""

from typing import get_args

from nodes.browser_action.base import BrowserAction as BrowserAction
from nodes.browser_action.dialogs import Dialog
from nodes.browser_action.elements import Drag, Hover, Scroll
from nodes.browser_action.fields import Check, Fill, Select, Uncheck
from nodes.browser_action.files import Download, Pdf, Screenshot, Upload
from nodes.browser_action.keyboard import Press, Type
from nodes.browser_action.navigation import Back, Forward, Goto, Reload, Wait
from nodes.browser_action.pointing import Click, DoubleClick
from nodes.browser_action.sessions import LoadSession, SaveSession
from nodes.browser_action.tabs import CloseTab, OpenTab, SwitchTab

VARIANTS = (
    *(Goto, Back, Forward, Reload, Click, DoubleClick, Fill, Type, Press, Check, Uncheck, Select, Hover, Drag),
    *(Scroll, Upload, Download, Dialog, Wait, OpenTab, SwitchTab, CloseTab, Screenshot, Pdf, SaveSession),
    *(LoadSession,),
)
"""The actions, selected by ``action``."""

LEAVING_THE_PAGE = frozenset(
    get_args(each.model_fields["action"].annotation)[0] for each in VARIANTS if each.effect_default == "read"
)
"""Actions that leave the page as it was."""
