"""Browser options of a workflow. The readers of workflow files import this module, so nothing here needs a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from nodes.part import Part
from nodes.targets import Target
from nodes.template import SecretText, Text
from runtime.browser import devices
from runtime.system.engines import Engine

Mode = Literal["own", "shared"]


Permission = Literal[
    "camera",
    "clipboard-read",
    "clipboard-write",
    "geolocation",
    "local-fonts",
    "microphone",
    "midi",
    "notifications",
    "storage-access",
]


class Viewport(Part):
    """Size of the page area, in CSS pixels."""

    width: int = Field(ge=1, le=16384)
    """Width."""
    height: int = Field(ge=1, le=16384)
    """Height."""


class Geolocation(Part):
    """A place on earth."""

    latitude: float = Field(ge=-90, le=90)
    """Degrees north."""
    longitude: float = Field(ge=-180, le=180)
    """Degrees east."""
    accuracy: float = Field(default=0, ge=0)
    """Metres."""


class HttpCredentials(Part):
    """Name and password for HTTP authentication (basic, digest)."""

    username: SecretText
    """Name; may be a secret."""
    password: SecretText
    """Password; may be a secret."""


class Proxy(Part):
    """Proxy for all traffic."""

    server: Text
    """Address, such as ``http://proxy.example:3128`` or ``socks5://proxy.example:1080``."""
    bypass: list[str] = Field(default_factory=list)
    """Hosts to connect to directly, such as ``.example.test``. Loopback goes through the proxy unless listed here."""
    username: SecretText | None = None
    """Name, if the proxy asks for one; may be a secret."""
    password: SecretText | None = None
    """Password; may be a secret."""


_CHROMIUM_ONLY = ("switches", "http_credentials", "proxy", "bypass_csp", "mobile", "touch")
"""Options whose promise is kept by Chromium's protocol, or that Playwright does not have for the other engines."""


class Overlay(Part):
    """Something that may come over a page at any time, such as a cookie banner, and the click that closes it."""

    target: Target
    """What to look for; of several that are seen, the first."""
    click: Target | None = None
    """What to click; by default the ``target`` itself."""

    @model_validator(mode="after")
    def _one_of_many(self) -> Overlay:
        if any(each.nth is not None for each in _parts(self.target)):
            raise ValueError("the `target` of an overlay takes no `nth`: the first that is seen counts")
        return self


def _parts(target: Target) -> Iterator[Target]:
    yield target
    for each in (*(target.any_of or ()), *([target.within] if target.within else ())):
        yield from _parts(each)


def _known_zone(zone: str) -> str:
    import zoneinfo

    if zone not in zoneinfo.available_timezones():
        raise ValueError(f"`{zone}` is not a time zone; one looks like `Europe/Berlin`")
    return zone


def _known_device(name: str) -> str:
    if devices.find(name) is None:
        raise ValueError(f"`{name}` is no known device; {devices.like(name)}")
    return name


class BrowserOptions(Part):
    """Settings of the run's browser. They hold in every tab and popup, from the first request and script on."""

    engine: Engine = "chromium"
    """Kind of browser. ``firefox`` and ``webkit`` are Playwright's, in mode ``shared`` only; they lack some options and actions."""
    mode: Mode | None = None
    """``own``: separate Chromium that survives the engine. ``shared``: isolated part of a worker's browser. A single run defaults to ``own``."""
    device: Annotated[str, AfterValidator(_known_device)] | None = None
    """Device to appear as, such as ``iPhone 13``: Playwright's name of it. It sets ``viewport``, ``screen``, ``device_scale_factor``,
    ``user_agent``, ``mobile`` and ``touch``, except those that stand here too."""
    viewport: Viewport = Viewport(width=1280, height=720)
    """Size of the page area."""
    screen: Viewport | None = None
    """Size of the screen. Default: that of the page area."""
    device_scale_factor: float | None = Field(default=None, gt=0, le=8)
    """Device pixels for each CSS pixel."""
    locale: str | None = Field(default=None, pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    """Language, such as ``de-DE``. Sites receive it as the preferred language; pages format numbers and dates with it."""
    timezone: Annotated[str, AfterValidator(_known_zone)] | None = None
    """Time zone, such as ``Europe/Berlin``."""
    user_agent: str | None = Field(default=None, pattern=r"^[\x20-\x7e]+$")
    """User agent that the browser sends."""
    color_scheme: Literal["light", "dark"] = "light"
    """Preferred colours, as pages see them."""
    reduced_motion: bool = False
    """True to ask pages to do without animations."""
    geolocation: Geolocation | None = None
    """Position that the browser reports. Pages first ask for the permission ``geolocation``."""
    permissions: list[Permission] = Field(default_factory=list)
    """Permissions that every page has without asking."""
    headers: dict[str, SecretText] = Field(default_factory=dict)
    """Headers added to every request; values may be secrets."""
    http_credentials: HttpCredentials | None = None
    """Name and password for HTTP authentication, sent only to the allowed origins."""
    proxy: Proxy | None = None
    """Proxy for all traffic."""
    ignore_https_errors: bool = False
    """True to load sites with an invalid certificate."""
    java_script: bool = True
    """True if pages may run scripts."""
    bypass_csp: bool = False
    """True to ignore the content security policy of pages."""
    mobile: bool = False
    """True to lay out pages as on a phone."""
    touch: bool = False
    """True if the browser has a touch screen."""
    offline: bool = False
    """True to switch the network off."""
    switches: list[Annotated[str, Field(pattern=r"^--[a-z]")]] = Field(default_factory=list)
    """Further command-line switches for Chromium, such as ``--lang=de``. Runs with other switches do not share a browser."""

    @model_validator(mode="after")
    def _of_engine(self) -> BrowserOptions:
        if (lacking := self.only_in_chromium()) is not None:
            what, fix = lacking
            raise ValueError(f"{self.engine} has no {what}: {fix or 'leave it out'}, or take the engine `chromium`")
        return self

    def only_in_chromium(self) -> tuple[str, str | None] | None:
        """Return what only Chromium has here, and another engine is to have, with its fix if leaving it out is none. None without one."""
        if self.engine == "chromium":
            return None
        if self.mode == "own":
            return "mode `own`", None
        if others := set(self.permissions) - {"geolocation", "notifications"}:
            return f"permission `{min(others)}`", None
        whole = self.resolved()
        lacking = [name for name in _CHROMIUM_ONLY if getattr(whole, name)]
        if own := next((name for name in lacking if name in self.model_fields_set), None):
            return f"`{own}`", None
        if not lacking:
            return None
        fix = " and ".join(f"`{name}: false`" for name in lacking)
        return f"`{lacking[0]}` of the device `{self.device}`", f"write {fix} beside it"

    def resolved(self) -> BrowserOptions:
        """Return the options with those of ``device`` filled in; what the file says itself stays."""
        device = devices.find(self.device) if self.device is not None else None
        if device is None:
            return self
        described: dict[str, Any] = {
            "viewport": Viewport(width=device.viewport[0], height=device.viewport[1]),
            "screen": Viewport(width=device.screen[0], height=device.screen[1]),
            "device_scale_factor": device.scale,
            "user_agent": device.user_agent,
            "mobile": device.mobile,
            "touch": device.touch,
        }
        own = self.model_fields_set
        return self.model_copy(update={name: value for name, value in described.items() if name not in own})
