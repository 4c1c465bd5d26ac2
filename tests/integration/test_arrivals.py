"""A page behind an action is shown when it has drawn itself, or is marked as still loading."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from director.bench import tools as bench_tools
from director.scouting import observer, tools
from director.tools.build_context import BuildContext
from nodes.values import Json
from runtime.observation.observation import LOADING
from tests import build_contexts, site

pytestmark = [pytest.mark.anyio, pytest.mark.drawn(share=0.2, of="arrivals")]

PARTS = ("one", "two", "three", "four", "five", "six")
LINKS = "".join(f"<button onclick=\"go('{name}')\">Part {name}</button>" for name in PARTS)

APP = """<!doctype html><title>App</title><style>main { transition: opacity .4s } .leaves { opacity: 0 }</style>
<div><div>LINKS</div><main>Beginning</main></div><script>
const main = document.querySelector('main');
const draw = (name, text) => { document.title = name; main.innerHTML = `<h1>${name}</h1><p>${text}</p><button>Save ${name}</button>`; };
const go = async (name) => {
  history.pushState({}, '', `/app/${name}`);
  if (name === 'two') {
    // It fades before it asks for what is next.
    main.className = 'leaves';
    await new Promise((done) => main.addEventListener('transitionend', done, {once: true}));
    main.className = '';
  }
  const answer = await fetch(`/data/${name}`);
  setTimeout(async () => draw(name, await answer.text()), 20);
};
</script>""".replace("LINKS", LINKS)

DRAFT = """version: 1
nodes:
  - {id: open, type: browser_action, action: goto, url: "ORIGIN/app"}
  - {id: three, type: browser_action, action: click, target: {role: button, name: Part three}, effect: read}
  - {id: long, type: browser_action, action: goto, url: "ORIGIN/long"}
"""


def late(seconds: float) -> site.Handler:
    """An answer that takes a while."""

    def answer(_request: site.Request) -> site.Answer:
        time.sleep(seconds)
        return site.Answer("Here it is", headers={"content-type": "text/plain"})

    return answer


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """An application of one document, whose parts come at different speeds."""
    with site.serve() as served:
        served.page("/app", APP)
        # Only an element with a ref lets a later look know that the document is the same.
        chapters = "".join(f"<h2>Chapter {number} of what there is to read</h2>" for number in range(90))
        served.page("/long", f"<button>Contents</button>{chapters}")
        for name, seconds in (("one", 0.7), ("two", 0.3), ("three", 0.7), ("four", 4.5)):
            served.answer(f"/data/{name}", late(seconds))
        yield served


@pytest.fixture(scope="module")
async def build(served: site.Site, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BuildContext]:
    """One build context for all tests here."""
    text = DRAFT.replace("ORIGIN", served.origin)
    made = build_contexts.opened(tmp_path_factory.mktemp("build"), f"{served.origin}/app", text)
    yield made
    await made.close()


async def call(build: BuildContext, tool: str, **arguments: Json) -> str:
    """The text of a tool; arguments not given are null."""
    toolsets = [*tools.toolsets(build), bench_tools.Execute(build, bench_tools.EXECUTE)]
    fields = next(each.tool for each in toolsets if each.tool.name == tool).parameters["properties"]
    given = {each: "to look around" if each == "reason" else None for each in fields}
    return (await build_contexts.call(build, tool, toolsets, **{**given, **arguments})).text


async def press(build: BuildContext, name: str) -> str:
    """Opens the application, and presses one of its buttons."""
    await call(build, "debug_navigate", url="/app")
    return await call(build, "debug_action", action="click", ref=f"{{role: button, name: Part {name}, exact: true}}")


@pytest.mark.parametrize("name", ["one", "two"])
async def test_what_an_action_leads_to_is_shown_once_it_is_drawn(build: BuildContext, name: str) -> None:
    """The next page of an application is shown with all that it fetched, also if it fades first, and its row of links in one line."""
    text = await press(build, name)
    assert f'page "{name}" /app/{name}' in text
    assert '"Here it is"' in text
    assert f'button "Save {name}" [ref=' in text
    assert "part of 6 buttons [ref=" in text
    assert "Beginning" not in text
    assert LOADING not in text


async def test_the_bench_shows_what_a_node_leads_to_once_it_is_drawn(build: BuildContext) -> None:
    """After nodes the page is shown with all that it fetched."""
    text = await call(build, "execute_nodes", nodes="open,three")
    assert "all done" in text
    assert 'button "Save three" [ref=' in text


async def test_a_page_that_nodes_showed_in_part_is_shown_whole_when_asked_for(build: BuildContext) -> None:
    """Of a page that does not fit into the report of nodes the next look shows all, and not that nothing changed."""
    text = await call(build, "execute_nodes", nodes="long")
    assert "Chapter 89" not in text
    assert "Chapter 89" in await call(build, "inspect_tab", tab="bench")


async def test_a_page_that_does_not_arrive_is_marked(build: BuildContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that waits for an answer for too long is shown with the doubt; once it has drawn itself, that is gone."""
    monkeypatch.setattr(observer, "ARRIVES_SECONDS", 0.8)
    text = await press(build, "four")
    assert re.search(rf'^page "App" /app/four\n{LOADING}$', text, re.MULTILINE)
    monkeypatch.setattr(observer, "ARRIVES_SECONDS", 20)
    text = await call(build, "inspect_tab", tab="scout")
    assert 'button "Save four"' in text
    assert LOADING not in text


async def test_a_page_that_asks_for_nothing_is_not_waited_for(build: BuildContext) -> None:
    """Looks at a page at rest wait for nothing."""
    await call(build, "debug_navigate", url="/app")
    sees = build.observer
    assert isinstance(sees, observer.PageObserver)
    page = sees.page("scout")
    began = time.monotonic()
    for _look in range(5):
        await sees.look_at(page)
    assert time.monotonic() - began < 5 * 0.4
