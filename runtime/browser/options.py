"""How a workflow wants its browser. Imported by whoever reads files, so nothing here needs a browser."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from nodes.part import Part
from nodes.template import SecretText, Text

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

ONLY_SHARED = frozenset({"bypass_csp", "mobile", "offline", "touch"})
"""What mode *own* cannot do: these belong to a browser context of Playwright's making."""

ONLY_OWN = frozenset({"switches"})
"""What mode *shared* cannot do: these belong to the whole process, and a worker's browser serves several runs."""


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
    """The name; may be a secret."""
    password: SecretText
    """The password; may be a secret."""


class Proxy(Part):
    """The proxy through which everything goes."""

    server: Text
    """Address, such as ``http://proxy.example:3128`` or ``socks5://proxy.example:1080``."""
    bypass: list[str] = Field(default_factory=list)
    """Hosts that are reached directly, such as ``.example.test``; loopback is one only if it is named."""
    username: SecretText | None = None
    """Name, where the proxy asks for one; may be a secret."""
    password: SecretText | None = None
    """Password; may be a secret."""


def _known_zone(zone: str) -> str:
    import zoneinfo

    if zone not in zoneinfo.available_timezones():
        raise ValueError(f"`{zone}` is not a time zone; one looks like `Europe/Berlin`")
    return zone


class BrowserOptions(Part):
    """How the browser of a run is made. What is set here holds in every tab and popup, from its first request and script on."""

    mode: Mode | None = None
    """``own``: a Chromium of the run's own, which survives the engine. ``shared``: an isolated part of a worker's browser.
    By default ``own`` for one run."""
    viewport: Viewport = Viewport(width=1280, height=720)
    """Size of the page area."""
    device_scale_factor: float | None = Field(default=None, gt=0, le=8)
    """Device pixels for each CSS pixel."""
    locale: str | None = Field(default=None, pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    """Language, such as ``de-DE``: what pages are asked for, and how they write numbers and dates."""
    timezone: Annotated[str, AfterValidator(_known_zone)] | None = None
    """Time zone, such as ``Europe/Berlin``."""
    user_agent: str | None = Field(default=None, pattern=r"^[\x20-\x7e]+$")
    """What the browser calls itself."""
    color_scheme: Literal["light", "dark"] = "light"
    """What pages see as the preferred colours."""
    reduced_motion: bool = False
    """Whether pages are asked to do without animations."""
    geolocation: Geolocation | None = None
    """Where the browser says it is; pages ask for the permission ``geolocation`` first."""
    permissions: list[Permission] = Field(default_factory=list)
    """What every page may do without asking."""
    headers: dict[str, SecretText] = Field(default_factory=dict)
    """Headers that go with every request; values may be secrets."""
    http_credentials: HttpCredentials | None = None
    """Name and password for HTTP authentication, given only to the allowed origins."""
    proxy: Proxy | None = None
    """The proxy through which everything goes."""
    ignore_https_errors: bool = False
    """Whether sites with a wrong certificate are loaded all the same."""
    java_script: bool = True
    """Whether pages may run scripts."""
    bypass_csp: bool = False
    """Whether the content security policy of pages is ignored. Mode *shared* only."""
    mobile: bool = False
    """Whether pages are laid out as on a phone. Mode *shared* only."""
    touch: bool = False
    """Whether the browser has a touch screen. Mode *shared* only."""
    offline: bool = False
    """Whether the network is off. Mode *shared* only."""
    switches: list[Annotated[str, Field(pattern=r"^--[a-z]")]] = Field(default_factory=list)
    """Further command-line switches for Chromium, such as ``--lang=de``. Mode *own* only."""

    @model_validator(mode="after")
    def _fits_mode(self) -> BrowserOptions:
        if message := self.unfit(self.mode or "own"):
            raise ValueError(message)
        return self

    def unfit(self, mode: Mode) -> str | None:
        """What ``mode`` cannot do of this, as a sentence that names the other mode; None if it can do everything."""
        beyond, other = (ONLY_SHARED, "shared") if mode == "own" else (ONLY_OWN, "own")
        asked = sorted(name for name in beyond & self.model_fields_set if getattr(self, name))
        if not asked:
            return None
        return f"mode `{mode}` has no {', '.join(f'`{name}`' for name in asked)}: take mode `{other}`"
