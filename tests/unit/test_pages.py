"""The comparison of a command's output with its page, and the parsing of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import pages

PAGE = """\
# A page

```yaml
# flow.yaml
version: 1
```

```console
$ runops run flow.yaml   # a remark
passed  …
$ runops runs \\
>   --json
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page with a file and two commands."""
    file = tmp_path / "page.md"
    file.write_text(PAGE)
    return file


def test_a_page_is_parsed_by_line(page: Path) -> None:
    """Blocks have their language, file and line; commands have their expected output and its first line."""
    file, console = pages.blocks(page)
    assert (file.language, file.file, file.line) == ("yaml", "flow.yaml", 4)
    first, second = console.commands()
    assert (first.text, first.wanted, first.line) == ("runops run flow.yaml   # a remark", "passed  …\n", 10)
    assert (second.text, second.wanted) == ("runops runs \\\n  --json", "")


@pytest.mark.parametrize(
    ("wanted", "printed"),
    [
        ("", ""),
        ("ok  open  …\n", "ok  open  0.1 s\n"),
        ("…\n", ""),
        ("first\n…\nlast\n", "first\none\ntwo\nlast\n"),
        ("…\nlast\n…\n", "one\nlast\nlast\n"),
        ("a [b] (c)\n", "a [b] (c)  \n"),
    ],
)
def test_dots_stand_for_what_varies(wanted: str, printed: str) -> None:
    """`…` matches anything on its line, and on a separate line any lines; any other extra text is a difference."""
    assert pages.difference(wanted, printed) is None


@pytest.mark.parametrize(
    ("wanted", "printed", "line"),
    [
        ("", "surprise\n", 0),
        ("ok\n", "", 0),
        ("ok\npassed\n", "ok\nfailed\n", 1),
        ("first\n…\nlast\n", "first\none\n", 2),
        ("ok  …\n", "ok\nmore\n", 0),
    ],
)
def test_a_difference_is_named_by_its_line(wanted: str, printed: str, line: int) -> None:
    """A difference has the first line of the page that was not printed, and both texts from there on."""
    found = pages.difference(wanted, printed)
    assert found is not None
    assert found[0] == line
    assert all(f"+ {each}" in found[1] for each in printed.splitlines()[-1:])
