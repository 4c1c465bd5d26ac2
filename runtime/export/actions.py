"""Actions on pages as plain Playwright."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from pathlib import PurePath
from typing import Any

from nodes.base import Leaf
from nodes.browser_action import fields, files, mouse, navigation
from nodes.browser_action import text as texts
from nodes.template import Template
from nodes.values import Json
from runtime.export import expressions
from runtime.export.code import NotCarried
from runtime.export.layout import STEP, quoted
from runtime.export.step import Body, Step, Value, amount, milliseconds, pair, spot, string


def _goto(body: Body, node: navigation.Goto) -> Value:
    step = Step(body, node)
    body.line(f"{step.page}{step.call('goto', step.of(node.url))}")
    return f"{step.page}.url"


def _on_page(name: str) -> Callable[[Body, Any], Value]:
    def translate(body: Body, node: Any) -> Value:
        step = Step(body, node)
        body.line(f"{step.page}{step.call(name)}")
        return f"{step.page}.url"

    return translate


def _wait(body: Body, node: navigation.Wait) -> Value:
    return f"{body.page_of(node.tab)}.url"


def _fill(body: Body, node: fields.Fill) -> Value:
    step = Step(body, node)
    step.act(node.target, step.call("fill", string(step, node.value)))
    return None


def _check(body: Body, node: fields.Check) -> Value:
    step = Step(body, node)
    if node.checked is True:
        step.act(node.target, step.call("check"))
    elif node.checked is False:
        step.act(node.target, step.call("uncheck"))
    else:
        step.act(node.target, step.call("set_checked", step.of(node.checked)))
    return None


def _uncheck(body: Body, node: fields.Uncheck) -> Value:
    step = Step(body, node)
    step.act(node.target, step.call("uncheck"))
    return None


def _select(body: Body, node: fields.Select) -> Value:
    step = Step(body, node)
    many = [string(step, each) for each in node.value] if isinstance(node.value, list) else []
    options = f"[{', '.join(many)}]" if isinstance(node.value, list) else step.of(node.value)
    call = step.call("select_option", options)
    return f"{step.reach(node.target, len(call))}{call}"


def _type(body: Body, node: fields.Type) -> Value:
    step = Step(body, node)
    more = [f"delay={node.delay:g}"] if node.delay else []
    step.act(node.target, step.call("clear"))
    step.act(node.target, step.call("press_sequentially", string(step, node.value), *more))
    return None


def _press(body: Body, node: fields.Press) -> Value:
    step = Step(body, node)
    if isinstance(node.key, Template):
        raise NotCarried("a key that is computed")
    delay = [f"delay={milliseconds(step, node.hold)}"] if node.hold else []
    calls = [f"press({', '.join([quoted(key), *delay])})" for key in node.keys]
    keyboard = f"{step.page}.keyboard"
    found = step.reach(node.target, max(map(len, calls)) + 4) if node.target is not None else keyboard
    with opening(step, node.opens):
        often = node.count != 1
        if often:
            body.line(f"for _ in range({step.of(node.count)}):")
            body.depth += 1
        for call in calls:
            body.line(f"{found}.{call}")
        body.depth -= often
    return f"{step.page}.url"


@contextlib.contextmanager
def opening(step: Step, opens: str | None) -> Generator[None]:
    """Wait for the tab that an action opens, if it opens one."""
    if opens is None:
        yield
        return
    info = step.body.local("popup")
    step.body.line(f"with {step.page}.expect_popup() as {info}:")
    step.body.depth += 1
    try:
        yield
    finally:
        step.body.depth -= 1
    step.body.line(f"{step.body.open_tab(opens)} = {info}.value")


def _click(body: Body, node: mouse.Click | mouse.DoubleClick) -> Value:
    step = Step(body, node)
    count = getattr(node, "count", 1)
    more = [f"click_count={step.of(count)}"] if count != 1 else []
    name = "dblclick" if isinstance(node, mouse.DoubleClick) else "click"
    call = step.call(name, *more, *step.stroke())
    found = step.reach(node.target, len(call) + (len(STEP) if node.opens else 0))
    with opening(step, node.opens):
        body.line(f"{found}{call}")
    return f"{step.page}.url"


def _tap(body: Body, node: mouse.Tap) -> Value:
    step = Step(body, node)
    step.act(node.target, step.call("tap", *step.stroke()))
    return f"{step.page}.url"


def _hover(body: Body, node: mouse.Hover) -> Value:
    step = Step(body, node)
    step.act(node.target, step.call("hover", *step.stroke(hold=False)))
    if node.hold:
        body.line(f"{step.page}.wait_for_timeout({milliseconds(step, node.hold)})")
    return None


def _drag(body: Body, node: mouse.Drag) -> Value:
    step = Step(body, node)
    if node.target is None:
        raise NotCarried("it drops files")
    if node.to is not None:
        more = [f"source_position={spot(step, node.from_at)}"] if node.from_at is not None else []
        more += [f"target_position={spot(step, node.at)}"] if node.at is not None else []
        step.act(node.target, step.call("drag_to", step.find(node.to), *more))
    elif node.by is not None and node.from_at is None:
        drag_by = body.need("drag_by")
        body.line(f"{drag_by}({step.find(node.target)}, {amount(step, node.by.x)}, {amount(step, node.by.y)})")
    elif node.from_at is not None and node.path is not None:
        places = ", ".join(pair(step, each) for each in (node.from_at, *node.path))
        body.line(f"{body.need('move_pressed')}({step.find(node.target)}, [{places}])")
    else:
        raise NotCarried("a drag along a path from the middle")
    return None


def _draw(body: Body, node: mouse.Draw) -> Value:
    step = Step(body, node)
    places = ", ".join(pair(step, each) for each in node.path)
    body.line(f"{body.need('move_pressed')}({step.find(node.target)}, [{places}])")
    return None


def _wheel(body: Body, node: mouse.Wheel) -> Value:
    step = Step(body, node)
    if node.modifiers:
        raise NotCarried("a wheel with keys held down")
    if node.target is not None:
        step.act(node.target, step.call("hover", *step.stroke(hold=False)))
    body.line(f"{step.page}.mouse.wheel({amount(step, node.by.x)}, {amount(step, node.by.y)})")
    return None


def _scroll(body: Body, node: mouse.Scroll) -> Value:
    step = Step(body, node)
    if node.target is not None and node.to is None and node.by is None:
        step.act(node.target, step.call("scroll_into_view_if_needed"))
        return None
    if node.by is not None or isinstance(node.to, Template):
        raise NotCarried("scrolling by a distance")
    found = step.find(node.target) if node.target is not None else "None"
    place = "0" if node.to == "top" else "10**9"
    body.line(f"{body.need('scroll_to')}({step.page}, {found}, 0, {place})")
    return None


def _dialog(body: Body, node: navigation.Dialog) -> Value:
    """Read the text of a dialog that ``expect_dialog`` has prepared to answer."""
    if node.id not in body.answered:
        raise NotCarried("it is not directly after the step that opens the dialog")
    step = Step(body, node)
    said = body.local("said")
    contains = f", {string(step, node.text)}" if node.text is not None else ""
    return f"{body.need('dialog_text')}({step.page}, {said}{contains})"


def expect_dialog(body: Body, node: navigation.Dialog) -> None:
    """Write what answers the dialog that the next step opens: Playwright waits for nothing while a dialog is open."""
    step = Step(body, node)
    more = [f"contains={string(step, node.text)}"] if node.text is not None else []
    more += [f"answer={string(step, node.value)}"] if node.value is not None else []
    accept = f"accept={node.answer == 'accept'}"
    arguments = ", ".join([step.page, accept, *more])
    body.line(f"{body.local('said')} = {body.need('answer_dialog')}({arguments})")
    body.answered.add(node.id)


def _open_tab(body: Body, node: navigation.OpenTab) -> Value:
    page = body.open_tab(node.tab)
    body.line(f"{page} = {body.page_of(None)}.context.new_page()")
    body.tab = page
    if node.url is not None:
        body.line(f"{page}.goto({expressions.of(node.url, body)})")
    return f"{page}.url"


def _switch_tab(body: Body, node: navigation.SwitchTab) -> Value:
    body.tab = body.page_of(node.tab)
    return f"{body.tab}.url"


def _close_tab(body: Body, node: navigation.CloseTab) -> Value:
    page = body.page_of(node.tab)
    body.line(f"{page}.close()")
    body.tab = "page" if page == body.tab else body.tab
    return f"{body.tab}.url"


def _upload(body: Body, node: files.Upload) -> Value:
    step = Step(body, node)
    given = [node.files] if isinstance(node.files, str) else node.files
    paths = [_path(step, each) for each in given]
    those = paths[0] if len(paths) == 1 else f"[{', '.join(paths)}]"
    if node.target.role == "button":
        chooser = body.local("chooser")
        body.line(f"with {step.page}.expect_file_chooser() as {chooser}:")
        body.depth += 1
        step.act(node.target, step.call("click"))
        body.depth -= 1
        body.line(f"{chooser}.value.set_files({those})")
    else:
        step.act(node.target, step.call("set_input_files", those))
    body.need("Path")
    return f"[Path(path).name for path in [{', '.join(paths)}]]"


def _path(step: Step, file: str) -> str:
    if isinstance(file, Template):
        return f'{step.of(file)}["path"]' if step.body.is_file(file) else step.of(file)
    step.body.need("Path")
    return f"Path(__file__).parent / {quoted(file)}"


def _download(body: Body, node: files.Download) -> Value:
    step = Step(body, node)
    if node.target is None:
        raise NotCarried("a download by its address")
    info = body.local("download_info")
    found = step.reach(node.target, len(".click()") + len(STEP))
    body.line(f"with {step.page}.expect_download() as {info}:")
    body.depth += 1
    body.line(f"{found}{step.call('click')}")
    body.depth -= 1
    name = f", {string(step, node.save_as)}" if node.save_as is not None else ""
    return f"{body.need('download')}({info}.value, {body.need('tmp_path')}{name})"


def _screenshot(body: Body, node: files.Screenshot) -> Value:
    step = Step(body, node)
    path = kept_at(step, node.save_as, f"{node.id}.png")
    whole = [] if node.full_page is False else [f"full_page={step.of(node.full_page)}"]
    found = step.page if node.target is None else step.find(node.target)
    body.line(f"{found}{step.call('screenshot', f'path={path}', *whole)}")
    return f"{body.need('kept')}({path})"


def _pdf(body: Body, node: files.Pdf) -> Value:
    step = Step(body, node)
    path = kept_at(step, node.save_as, f"{node.id}.pdf")
    more = [] if node.landscape is False else [f"landscape={step.of(node.landscape)}"]
    body.line(f"{step.page}.pdf({', '.join([f'path={path}', *more])})")
    return f"{body.need('kept')}({path})"


def kept_at(step: Step, name: Json, default: str) -> str:
    if isinstance(name, Template):
        return f"{step.body.need('tmp_path')} / {string(step, name)}"
    given = name or default
    return f"{step.body.need('tmp_path')} / {quoted(given if PurePath(given).suffix else given + PurePath(default).suffix)}"


def _paste(body: Body, node: texts.Paste) -> Value:
    step = Step(body, node)
    if node.target is not None:
        step.act(node.target, step.call("focus"))
    body.line(f"{step.page}.keyboard.insert_text({string(step, node.value)})")
    return None


ACTIONS: dict[type[Leaf], Callable[[Any, Any], Value]] = {
    navigation.Goto: _goto,
    navigation.Back: _on_page("go_back"),
    navigation.Forward: _on_page("go_forward"),
    navigation.Reload: _on_page("reload"),
    navigation.Wait: _wait,
    navigation.Dialog: _dialog,
    navigation.OpenTab: _open_tab,
    navigation.SwitchTab: _switch_tab,
    navigation.CloseTab: _close_tab,
    fields.Fill: _fill,
    fields.Check: _check,
    fields.Uncheck: _uncheck,
    fields.Select: _select,
    fields.Type: _type,
    fields.Press: _press,
    mouse.Click: _click,
    mouse.DoubleClick: _click,
    mouse.Tap: _tap,
    mouse.Hover: _hover,
    mouse.Drag: _drag,
    mouse.Draw: _draw,
    mouse.Wheel: _wheel,
    mouse.Scroll: _scroll,
    files.Upload: _upload,
    files.Download: _download,
    files.Screenshot: _screenshot,
    files.Pdf: _pdf,
    texts.Paste: _paste,
}
