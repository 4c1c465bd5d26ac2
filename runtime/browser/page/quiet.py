"""Tells whether a page is still at work. On one that is not, a rule does not come true by waiting."""

from __future__ import annotations

from playwright.async_api import Page

from runtime.browser import in_flight, isolated_world
from runtime.browser.page import changes
from runtime.browser.site_answers import Answers

MOMENT = 0.5  # seconds after which a quiet page has drawn what it had

_QUIET = isolated_world.Script[bool](
    "(quiet) => {"
    + changes.OBSERVED
    + """
  const waits = Array.prototype.some.call(document.querySelectorAll('[aria-busy=true], [role=progressbar], progress'),
    (each) => each.checkVisibility({visibilityProperty: true}));
  // What turns for ever tells a person to wait.
  const turns = document.getAnimations().some(({playState, effect}) =>
    playState === 'running' && effect?.getComputedTiming().endTime === Infinity);
  return document.readyState === 'complete' && performance.now() - rest.changed >= quiet && !waits && !turns;
}""",
    bool,
)


async def since(page: Page, answers: Answers, seconds: float) -> bool:
    """Return whether the page has asked for nothing, changed nothing and shown no sign of work for so long, since the first question."""
    quiet = [await _QUIET.on(frame, 1000 * seconds) for frame in page.frames]
    return all(quiet) and not answers.open_requests and in_flight.of(page.context).rests(page, seconds)
