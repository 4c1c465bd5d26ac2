import asyncio
from typing import Literal

from nodes.base import Leaf
from nodes.targets import Target


class FullMinute(Leaf):
    """Waits until a clock on the page shows a full minute. Value: the time it shows."""

    touches_page = True
    effect_default = "read"

    type: Literal["acme.full_minute"] = "acme.full_minute"
    target: Target
    """The clock."""

    async def run(self, ctx):
        target = await ctx.located(self.target)
        await ctx.act()
        while not (shown := await ctx.page.text(target)).endswith(":00"):
            await asyncio.sleep(0.2)
        return shown
