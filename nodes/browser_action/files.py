"""Actions with files: uploading, downloading, screenshots and PDFs."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, model_validator

from nodes.browser_action.base import BrowserAction, OnElement
from nodes.errors import AuthorError
from nodes.part import EffectClass
from nodes.targets import Target
from nodes.template import Condition, Ref, Text, Unfit, to_text
from nodes.values import Json

if TYPE_CHECKING:
    from nodes.pages import ElementAction
    from nodes.ports import LeafContext


def to_paths(value: Json) -> list[str]:
    paths = value if isinstance(value, list) else [value]
    if not paths:
        raise Unfit("is an empty list, and at least one file is wanted")
    return [to_path(path) for path in paths]


def to_path(value: Json) -> str:
    return to_text(value["path"] if isinstance(value, dict) and "path" in value else value)


def some_files(files: str | list[str]) -> str | list[str]:
    if not files:
        raise ValueError("`files` is empty, and at least one file is wanted")
    return files


class Upload(OnElement):
    """Gives files to a file field, or to a button that opens a file chooser. Value: the names of the files.

    Class *effect* unless ``effect`` overrides it, because many pages send a file as soon as it is chosen. If yours only shows its name until
    the form is sent, write ``effect: idempotent``.
    """

    takes_up_input: ClassVar[bool] = False
    does: ClassVar[ElementAction] = "upload"

    action: Literal["upload"]
    """Choose files."""
    files: Annotated[str | list[str], AfterValidator(some_files), Ref(to_paths, item=to_path)]
    """Path of the file, or a list. A path is relative to the folder of the workflow file, or names a file that a step of this run has kept:
    ``{{ invoice.path }}``, or just ``{{ invoice }}``. The file must be in the workflow's project. Neither it nor a folder on its path may
    have a name with a leading dot (``.env``, ``.git``)."""

    async def run(self, ctx: LeafContext) -> Json:
        """Find the files first, so that a wrong path fails before anything changes."""
        for path in self.paths:
            ctx.artifacts.find(path)
        return await super().run(ctx)

    async def do(self, ctx: LeafContext, target: Target) -> Json:
        files = [ctx.artifacts.find(path) for path in self.paths]
        await ctx.page.upload(target, files)
        return [file.name for file in files]

    @property
    def paths(self) -> list[str]:
        return [self.files] if isinstance(self.files, str) else self.files


class Download(BrowserAction):
    """Downloads a file: clicks ``target`` and waits for the file, or loads ``url``.

    Value: ``{name, path, size, sha256, type}`` of the file, which is kept with the run. Class *idempotent*: fetching a file twice gives two
    files and changes nothing. If the click itself does something (it makes an invoice, it counts), write ``effect: effect``.
    """

    effect_default: ClassVar[EffectClass] = "idempotent"
    takes_up_input: ClassVar[bool] = False
    does: ClassVar[ElementAction] = "download"

    action: Literal["download"]
    """Download a file."""
    target: Target | None = None
    """The link or button that gives the file."""
    url: Text | None = None
    """The address of the file; the workflow must allow its origin."""
    save_as: Text | None = None
    """Name of the file; by default the site's name for it."""

    @model_validator(mode="after")
    def _one_source(self) -> Download:
        if (self.target is None) == (self.url is None):
            raise ValueError("`download` needs `target` or `url`, one of them")
        return self

    def summary(self) -> str:
        return f"download {self.url or self.target}"

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target) if self.target else None
        if target is not None and self.effect_class == "effect":
            await ctx.page.ready(target, self.does)
        await ctx.act()
        async with ctx.page.download(target, self.url) as file:
            return await ctx.artifacts.keep(self.save_as or file.name, file.path)


class Screenshot(BrowserAction):
    """Takes a picture (PNG) of the page or of an element. Value: ``{name, path, size, sha256, type}`` of the file, kept with the run.

    Secrets of the workflow are painted over.
    """

    effect_default: ClassVar[EffectClass] = "read"

    action: Literal["screenshot"]
    """Take a picture."""
    target: Target | None = None
    """The element; without it the part of the page that the window shows."""
    full_page: Condition = False
    """True to show the whole page, with the parts that need scrolling."""
    save_as: Text | None = None
    """Name of the file; by default the id of the node, with ``.png``."""

    @model_validator(mode="after")
    def _page_or_element(self) -> Screenshot:
        if self.target is not None and self.full_page:
            raise ValueError("`full_page` goes without `target`")
        return self

    def summary(self) -> str:
        return f"screenshot of {self.target or 'the page'}"

    async def run(self, ctx: LeafContext) -> Json:
        target = await ctx.located(self.target) if self.target else None
        await ctx.act()
        picture = await ctx.page.screenshot(target, full_page=self.full_page, hide=ctx.holds_secret)
        return await ctx.artifacts.keep(named(self.save_as or self.id, ".png"), picture)


class Pdf(BrowserAction):
    """Prints the page to a PDF. Value: ``{name, path, size, sha256, type}`` of the file, kept with the run."""

    effect_default: ClassVar[EffectClass] = "read"

    action: Literal["pdf"]
    """Print to a PDF."""
    landscape: Condition = False
    """True for landscape paper."""
    save_as: Text | None = None
    """Name of the file; by default the id of the node, with ``.pdf``."""

    def summary(self) -> str:
        return "print the page to a PDF"

    async def run(self, ctx: LeafContext) -> Json:
        """Print the page, then keep it. Nothing can be painted over in a PDF, so a page that shows a secret is not printed."""
        await ctx.act()
        if await ctx.page.shows(ctx.holds_secret):
            raise AuthorError(
                "secret-on-page",
                "the page shows a secret of the workflow, and a PDF would keep it",
                fix="print before the secret is filled in or shown, or take a `screenshot`, where it is painted over",
            )
        return await ctx.artifacts.keep(named(self.save_as or self.id, ".pdf"), await ctx.page.pdf(self.landscape))


def named(name: str, ending: str) -> str:
    """Return ``name`` with ``ending``, unless it has one."""
    return name if PurePath(name).suffix else f"{name}{ending}"
