"""Lists that a page shows in parts are read whole: by scrolling, and page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime import Runtime, Settings
from tests import site

pytestmark = [pytest.mark.full_browser, pytest.mark.anyio, pytest.mark.drawn(share=0.15, of="whole lists")]

VIRTUAL = """<!doctype html><title>Virtual</title>
<div id=box style="height:300px;overflow-y:auto"><div id=all style="position:relative"></div></div>
<script>
const COUNT = 200, HEIGHT = 24;
all.style.height = `${COUNT * HEIGHT}px`;
const draw = () => {
  const first = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - 2), rows = [];
  for (let n = first; n < Math.min(COUNT, first + 18); n++)
    rows.push(`<p class=row style="position:absolute;margin:0;height:${HEIGHT}px;top:${n * HEIGHT}px"><b>n-${n}</b> <i>item ${n}</i></p>`);
  all.innerHTML = rows.join('');
};
box.onscroll = () => setTimeout(draw, 60);
box.scrollTop = 5000;
draw();
</script>"""

ENDLESS = """<!doctype html><title>Endless</title><ul id=list></ul><footer style="height:80px">The end</footer>
<script>
let count = 0, busy = false;
const more = () => {
  for (let end = Math.min(count + 20, 95); count < end; count++) list.insertAdjacentHTML('beforeend', `<li class=row style="height:40px"><b>n-${count}</b> <i>item ${count}</i></li>`);
  busy = false;
};
addEventListener('scroll', () => {
  if (!busy && innerHeight + scrollY > document.body.scrollHeight - 100) { busy = true; setTimeout(more, 250); }
});
more();
</script>"""

PAGED = """<!doctype html><title>Paged</title>
<table><thead><tr><th>Number<th>Item</thead><tbody id=body></tbody></table>
<button id=next>Next</button>
<script>
let page = 0;
const draw = () => {
  body.innerHTML = Array.from({length: page === 4 ? 3 : 10}, (_, n) => `<tr><td>n-${page * 10 + n}<td>item ${page * 10 + n}`).join('');
  next.disabled = page === 4;
};
next.onclick = () => { page++; setTimeout(draw, 120); };
draw();
</script>"""

FILLING = """<!doctype html><title>Filling</title><ul id=list></ul><button id=next>Next</button>
<script>
let page = 0;
const row = (n) => list.insertAdjacentHTML('beforeend', `<li class=row><b>n-${n}</b> <i>item ${n}</i></li>`);
const draw = (wait) => {
  list.innerHTML = '';
  for (let n = 0; n < 5; n++) setTimeout(row, wait * n, page * 5 + n);
  next.disabled = page === 2;
};
next.onclick = () => { page++; setTimeout(draw, 100, 100); };
draw(100);
</script>"""

MIXED = """<!doctype html><title>Mixed</title><ul id=list></ul><button id=next>Next</button>
<script>
let page = 0;
const row = (n) => `<li class=row><b>n-${n}</b> <i>item ${n}</i></li>`;
const draw = () => {
  list.innerHTML = [0, 1, 2, 3, 4].map((n) => row(page * 5 + n)).join('');
  next.disabled = page === 2;
};
next.onclick = () => { page++; list.insertAdjacentHTML('beforeend', row(page * 5)); setTimeout(draw, 200); };
draw();
</script>"""

ROUGH = (
    VIRTUAL.replace("COUNT = 200", "COUNT = 60")
    .replace("const draw = () =>", "const draw = (whole = true) =>")
    .replace("    rows.push(", "    if (whole || n % 3) rows.push(")
    .replace("setTimeout(draw, 60)", "(setTimeout(draw, 0, false), setTimeout(draw, 200))")
)
"""A list that renders a part of its rows at first, and the others a moment later."""

STUCK = "<!doctype html><p class=row><b>n-0</b> <i>item 0</i></p><button>Next</button>"

ROWS = "query: extract, target: {css: .row}, fields: {number: b, item: i}, key: number"


@pytest.fixture(scope="module")
def served() -> Iterator[site.Site]:
    """A site with lists that show only a part of themselves."""
    with site.serve() as served:
        for name, page in (
            ("virtual", VIRTUAL),
            ("endless", ENDLESS),
            ("paged", PAGED),
            ("stuck", STUCK),
            ("filling", FILLING),
            ("mixed", MIXED),
            ("rough", ROUGH),
        ):
            served.page(f"/{name}", page)
        yield served


async def ran(served: site.Site, folder: Path, page: str, query: str) -> Any:
    """The end of a run that reads the list of a page."""
    file = folder / "list.yaml"
    file.write_text(
        f"version: 1\nnodes:\n"
        f"  - {{id: open, type: browser_action, action: goto, url: {json.dumps(f'{served.origin}/{page}')}}}\n"
        f"  - {{id: rows, type: browser_query, {query}}}\noutput: '{{{{ rows }}}}'\n"
    )
    async with Runtime(settings=Settings(home=folder / "home", browser_mode="shared")) as runs:
        run = await runs.start(file)
        return await run.wait()


def whole(count: int, number: str, item: str) -> list[dict[str, str]]:
    """The rows of a list, all of them and in order."""
    return [{number: f"n-{each}", item: f"item {each}"} for each in range(count)]


@pytest.mark.parametrize(
    ("page", "query", "rows"),
    [
        ("virtual", f"{ROWS}, scroll: until_end", whole(200, "number", "item")),
        ("rough", f"{ROWS}, scroll: until_end", whole(60, "number", "item")),
        ("endless", f"{ROWS}, scroll: until_end", whole(95, "number", "item")),
        (
            "paged",
            "query: table, target: {css: table}, key: Number, next: {role: button, name: Next}",
            whole(43, "Number", "Item"),
        ),
        ("filling", f"{ROWS}, next: {{role: button, name: Next}}", whole(15, "number", "item")),
        ("mixed", f"{ROWS}, next: {{role: button, name: Next}}", whole(15, "number", "item")),
    ],
    ids=["virtual", "rough", "endless", "paged", "filling", "mixed"],
)
async def test_a_list_is_read_whole(
    page: str, query: str, rows: list[dict[str, str]], served: site.Site, tmp_path: Path
) -> None:
    """A list that renders only what is seen, one that grows at its end and one of several pages, also if they fill bit by bit, give each row once, in order."""
    ended = await ran(served, tmp_path, page, query)
    assert ended.error is None
    assert ended.output == rows


async def test_a_list_has_a_limit(served: site.Site, tmp_path: Path) -> None:
    """A longer list is cut, and the step says so."""
    ended = await ran(served, tmp_path, "virtual", f"{ROWS}, scroll: until_end, limit: 50")
    assert ended.output == whole(50, "number", "item")
    (flag,) = ended.flags
    assert flag["code"] == "list-cut"


@pytest.mark.parametrize(
    ("page", "query", "code"),
    [
        ("stuck", f"{ROWS}, next: {{role: button, name: Next}}, timeout: 3", "list-stays"),
        ("stuck", f"{ROWS.replace('item: i', 'item: i, no: {css: u, optional: true}').replace('key: number', 'key: no')}, scroll: until_end", "key-missing"),
    ],
    ids=["stays", "no key"],
)  # fmt: skip
async def test_a_list_that_cannot_be_read_whole_is_an_error(
    page: str, query: str, code: str, served: site.Site, tmp_path: Path
) -> None:
    """A `next` that changes nothing, and rows without a key, are no list that was read to its end."""
    ended = await ran(served, tmp_path, page, query)
    assert ended.error is not None
    assert ended.error["code"] == code
