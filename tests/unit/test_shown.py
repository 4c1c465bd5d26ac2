"""What a model was shown is not shown again: rows of links, whole pages, complaints of pages."""

from __future__ import annotations

from director.scouting import shown
from runtime.observation.observation import LOADING, Observation
from runtime.observation.wanted import wanted

NAMES = ("Dashboard", "Runs", "Flows", "Deployments", "Variables", "Settings")
LINKS = [f'    - button "{name}" [ref=e{number}] [cursor=pointer]' for number, name in enumerate(NAMES, 11)]
FRAME = ["- generic [ref=e1]:", "  - generic [ref=e2]:", *LINKS, "  - generic [ref=e3]:"]
PART = "part of 6 buttons [ref=e2]: as before"


def page(path: str, *lines: str, frame: list[str] = FRAME, prefix: str = "") -> Observation:
    """A page of an application that draws its links in no landmark."""
    text = "\n".join([*frame, *(f"    {line}" for line in lines)])
    return Observation.read(text.replace("[ref=", f"[ref={prefix}"), path, "Prefect")


def show(told: shown.Shown, view: Observation, budget: int = 5_000) -> str:
    """Shows the whole page, and records it."""
    text = told.page(view, budget)
    told.note(view, text, budget)
    return text


CONTENT = (
    '- heading "Flows" [level=1] [ref=e20]',
    '- link "one" [ref=e21]',
    "- paragraph [ref=e22]: Flows are Python functions",
)
FLOWS = page("/flows", *CONTENT)


def test_a_row_of_links_that_was_shown_takes_one_line() -> None:
    """Links outside of landmarks that were shown on another page are one line with the ref of what is around them; what is new beside them is shown."""
    told = shown.Shown()
    assert 'button "Variables" [ref=e15]' in show(told, FLOWS)
    runs = page("/runs", '- textbox "Search" [ref=e30]', '- button "Runs" [ref=e31]')
    assert show(told, runs).split("\n") == [
        'page "Prefect" /runs', PART, 'textbox "Search" [ref=e30]', 'button "Runs" [ref=e31]',
    ]  # fmt: skip
    assert 'button "Variables" [ref=e15]' in runs.subtree("e2")
    changed = [line.replace('"Runs"', '"Runs" [pressed]') for line in FRAME]
    assert "as before" not in show(told, page("/runs", frame=changed))


def test_a_landmark_without_a_ref_is_known_by_what_is_in_it() -> None:
    """A side bar that the snapshot gives no ref is folded all the same, with the ref of its only content."""
    bar = ["- complementary:", "  - list [ref=e5]:", *(f"  {line}" for line in LINKS)]
    told = shown.Shown()
    show(told, page("/one", frame=bar))
    assert "\ncomplementary [ref=e5]: as before" in show(told, page("/two", frame=bar))


def test_data_takes_no_part_in_a_row_of_links() -> None:
    """Rows, fields and boxes that were shown on another page are shown again: they are what a page is about."""
    table = ["- table [ref=t]:", *(f'  - row "{n} | Ada | open since yesterday" [ref=r{n}]' for n in range(7))]
    fields = ["- generic [ref=g]:", *(f'  - textbox "Field with a long name {n}" [ref=f{n}]' for n in range(7))]
    told = shown.Shown()
    show(told, page("/all", *table, *fields))
    text = show(told, page("/open", *table, *fields, "- paragraph [ref=p]: Open ones"))
    assert text.count("as before") == 1
    assert text.count("Ada") == text.count("Field with") == 7


def test_a_page_that_was_shown_is_not_shown_again() -> None:
    """The same page is told by a line, with its refs where they are others; a page with another value is shown."""
    told = shown.Shown()
    whole = show(told, FLOWS)
    assert told.page(FLOWS, 5_000) == told.page(FLOWS, 3_000) == 'page "Prefect" /flows\nas shown before'
    again = page("/flows", *CONTENT, prefix="f1")
    assert show(told, again).split("\n")[1] == "as shown before, with other refs: f1e11 for e11, and so on"
    other = page("/flows", *CONTENT[:1], CONTENT[1].replace("e21", "e99"), CONTENT[2], prefix="f1")
    assert show(told, other).split("\n")[1] == "as shown before, but with refs f1e99 for f1e21"
    assert shown.AS_BEFORE not in told.page(page("/flows", *CONTENT[:2], "- paragraph [ref=e22]: None"), 5_000)
    assert not shown.reminds(whole)
    assert not shown.reminds(page("/flows", "- text: as shown before").render())


def test_a_page_is_shown_again_when_it_may_be_forgotten() -> None:
    """After many other texts a model is sent the first ones no more, so the page is shown again, also if it was reminded of the page meanwhile; one that was shown in part never counts."""
    told = shown.Shown()
    told.note(FLOWS, FLOWS.render(), 0)
    assert shown.AS_BEFORE not in show(told, FLOWS)
    told.note(FLOWS, "x" * (shown.RECENT - 200), 0)
    assert shown.AS_BEFORE in show(told, FLOWS)
    told.note(FLOWS, "x" * 200, 0)
    assert shown.AS_BEFORE not in told.page(FLOWS, 5_000)


def test_a_page_is_shown_for_a_goal() -> None:
    """A row of a long list that has a word of the goal is shown; another such row that comes is no page shown before."""
    links = [
        f'- link "Invoice of the month number {number}, not paid yet" [ref=e{number}]' for number in range(100, 180)
    ]
    told = shown.Shown()
    told.goal = wanted("Pay the invoice of Ada Lovelace")
    assert "…" in show(told, page("/all", *links))
    renamed = [each.replace("number 140", "for Lovelace") for each in links]
    assert 'link "Invoice of the month for Lovelace, not paid yet" [ref=e140]' in show(told, page("/all", *renamed))


def test_a_site_frame_is_shown_again_when_it_may_be_forgotten() -> None:
    """A row of links that takes one line is shown whole once a model is sent the texts with it no more, also if it was reminded of it meanwhile."""
    told = shown.Shown()
    show(told, FLOWS)
    left = shown.RECENT - 400
    told.note(FLOWS, "x" * left, 0)
    assert PART in show(told, page("/runs", '- textbox "Search" [ref=e30]'))
    told.note(FLOWS, "x" * 400, 0)
    again = page("/blocks", '- textbox "Name" [ref=e40]')
    assert 'button "Variables" [ref=e15]' in show(told, again)
    assert PART in show(told, page("/work", '- textbox "Pool" [ref=e50]'))


def test_a_page_complains_once() -> None:
    """A complaint is told once, whatever its count, and again where an action failed."""
    told = shown.Shown()
    assert told.new(["console: no font (6 times)", "script error: x"], failed=False) == [
        "console: no font (6 times)",
        "script error: x",
    ]
    assert told.new(["console: no font (5 times)", "script error: y"], failed=False) == ["script error: y"]
    assert told.new(["console: no font"], failed=True) == ["console: no font"]


def test_a_page_that_still_loads_says_so() -> None:
    """The doubt stands below the page's head, in the whole and in the changes, and is kept by masks and parts."""
    late = FLOWS.doubted(LOADING).masked(str)
    assert late.render().split("\n")[1] == LOADING
    assert late.since(FLOWS) == LOADING
    assert late.part("e2").render().split("\n")[1] == LOADING


def test_how_to_see_more_names_the_tool_of_a_build() -> None:
    """Folds and what is behind a dialog name `inspect_tab`, for the bench with its tab; a text of the page stays as it is."""
    page = '… 2 items: look(ref=e61)\nbehind the dialog: 13 buttons: look(ref=e3)\n… 4 more changes: look()\n"see: look(ref=e1)"'
    assert shown.by_tool(page, " tab=bench").split("\n") == [
        "… 2 items: inspect_tab tab=bench ref=e61",
        "behind the dialog: 13 buttons: inspect_tab tab=bench ref=e3",
        "… 4 more changes: inspect_tab tab=bench",
        '"see: look(ref=e1)"',
    ]
