"""Writes a workflow as a file of plain tests for pytest and pytest-playwright."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from nodes.base import Leaf
from nodes.browser_action import sessions
from nodes.values import Json
from runtime.browser.options import BrowserOptions, Overlay
from runtime.export import expressions, helpers, layout, locators
from runtime.export.code import NotCarried
from runtime.export.function import Function
from runtime.export.variables import Known, safe, snake
from runtime.language.inputs import Input
from runtime.language.workflow import Loaded


@dataclasses.dataclass(frozen=True, slots=True)
class Lost:
    """Something that an exported file does not have."""

    place: str
    """The step; empty for the file itself."""
    what: str


@dataclasses.dataclass(frozen=True, slots=True)
class Exported:
    name: str
    """The name of the file."""
    text: str
    lost: list[Lost]


def export(loaded: Loaded) -> Exported:
    """Return a workflow as plain Python."""
    file = _File(loaded)
    text = file.text()
    return Exported(f"{_test_name(loaded)}.py", text, list(dict.fromkeys(file.lost_parts)))


def _test_name(loaded: Loaded) -> str:
    name = "".join(each if each.isalnum() else "_" for each in snake(loaded.path.stem)).strip("_")
    return name if name.startswith("test_") else f"test_{name}"


class _File:
    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._needs: set[str] = set()
        self._stubs: dict[str, list[str]] = {}
        self._of_stub: dict[str, str] = {}  # the node that each stub is for
        self._functions: dict[Path, tuple[str, list[str]]] = {}
        self.lost_parts: list[Lost] = []

    # What functions ask of the file.

    def need(self, name: str) -> str:
        self._needs.add(name)
        return name

    def lost(self, place: str, what: str) -> None:
        self.lost_parts.append(Lost(place, what.rstrip(".")))

    def stub(self, node: Leaf, name: str, parameters: list[str], why: str) -> str:
        used = f"{id(node)}"
        numbered = (name, *(f"{name}_{number}" for number in range(2, 99)))
        name = next(each for each in numbered if self._of_stub.setdefault(each, used) == used)
        instruction = getattr(node, "instruction", None) or getattr(node, "goal", None) or node.description
        texts = [f"Left out: {why}. Do it here, and return its value.", *([str(instruction)] if instruction else [])]
        head = layout.function_head(0, name, parameters)
        reason = layout.quoted(f"{node.id} was left out: write {name}()")
        # Whoever handles a missing state signs in anew.
        fails = isinstance(node, sessions.LoadSession)
        code = f"raise AssertionError({reason})" if fails else f"{self.need('pytest')}.skip({reason})"
        self._stubs[name] = [*head, *layout.docstring(1, texts), *layout.statement(1, code)]
        return name

    def names(self) -> frozenset[str]:
        """Return the names that the file has outside of functions."""
        used = set(self._needs)
        for each in self._needs & helpers.HELPERS.keys():
            used |= helpers.needs(each)
        return frozenset({*used, *self._stubs, *(name for name, _lines in self._functions.values()), "expect"})

    def function(self, loaded: Loaded) -> tuple[str, list[str]]:
        if loaded.path not in self._functions:
            name = safe(loaded.path.stem)
            taken = {each for each, _lines in self._functions.values()} | helpers.HELPERS.keys()
            while name in taken:
                name += "_"
            self._functions[loaded.path] = (name, [])
            self._functions[loaded.path] = (name, self._used(loaded, name))
        name, lines = self._functions[loaded.path]
        return name, ["tmp_path"] * any("tmp_path" in line for line in lines)

    # The parts of the file.

    def text(self) -> str:
        test = self._test()
        options = self._options()
        parts = [*self._helpers(), *self._stubs.values(), *(lines for _name, lines in self._functions.values())]
        parts = [options, *self._helpers(), *self._stubs.values(), *(each for _name, each in self._functions.values())]
        parts = [self._settings(), *parts, test]
        used = set(re.findall(r"\w+", "\n".join(line for part in parts for line in part)))
        parts[0] = [*self._docstring(), "", *self._imports(used), "", *parts[0]]
        return "\n\n\n".join("\n".join(each) for each in parts if each) + "\n"

    def _written(self, loaded: Loaded, where: str) -> tuple[Function, str | None]:
        """Write the statements of a function until no variable is assigned that nothing reads, and return its end too."""
        known = Known()
        while True:
            parts = len(self.lost_parts)
            before = set(self._needs), dict(self._stubs), dict(self._functions)
            function = Function(self, loaded, known, where)
            function.begin_none("")
            for overlay in loaded.workflow.dismiss:
                self._overlay(function, overlay)
            function.block(loaded.workflow.nodes)
            output = self._output(function, loaded)
            function.found.names = self.names()
            if function.found == known:
                return function, output
            known = function.found
            del self.lost_parts[parts:]
            self._needs, self._stubs, self._functions = before

    def _overlay(self, function: Function, overlay: Overlay) -> None:
        find = locators.Locators(function)
        try:
            found = "".join([*find.of("page", overlay.target), ".first"])
            click = "found.click()" if overlay.click is None else f"{''.join(find.of('page', overlay.click))}.click()"
        except NotCarried as error:
            self.lost("dismiss", str(error))
        else:
            function.line(f"page.add_locator_handler({found}, lambda found: {click})")

    def _output(self, function: Function, loaded: Loaded) -> str | None:
        """Return the code of the output, without the parts that are left out."""
        output = loaded.workflow.output
        if not isinstance(output, dict):
            return None if output is None else self._part_of_output(function, "output", output)
        parts = {name: self._part_of_output(function, f"output.{name}", each) for name, each in output.items()}
        return f"{{{', '.join(f'{layout.quoted(name)}: {code}' for name, code in parts.items() if code is not None)}}}"

    def _part_of_output(self, function: Function, name: str, value: Json) -> str | None:
        try:
            return expressions.of(value, function)
        except NotCarried as error:
            function.comment(f"Left out: {name} ({error}).")
            self.lost(name, str(error))
            return None

    def _test(self) -> list[str]:
        loaded = self._loaded
        function, output = self._written(loaded, "")
        inputs = self._inputs(function, loaded)
        body = [*inputs, *([""] if inputs else []), *function.lines]
        if output:
            self.need("json")
            body = [*_trimmed(body), ""]
            function.lines = body
            function.line(f"output = {output}")
            function.line("print(json.dumps(output, ensure_ascii=False, indent=2))")
            body = function.lines
        if not any(line.strip() and not line.strip().startswith("#") for line in body):
            body = [*body, f"{layout.STEP}pass"]
        fixtures = ["page: Page", *(["tmp_path: Path"] if "tmp_path" in self._needs else [])]
        self.need("Page")
        if "tmp_path" in self._needs:
            self.need("Path")
        return [f"def {_test_name(loaded)}({', '.join(fixtures)}) -> None:", *_trimmed(body)]

    def _inputs(self, function: Function, loaded: Loaded) -> list[str]:
        lines: list[str] = []
        for name, given in loaded.workflow.inputs.items():
            if ("input", name) not in function.found.read:
                continue
            if given.required:
                code = f"{self.need('required')}({layout.quoted(name)}, {layout.quoted(given.type)})"
            else:
                code = f"{self.need('setting')}({layout.quoted(name)}, {layout.literal(given.default)})"
            lines += layout.statement(1, f"{function.name(('input', name))} = {code}")
        return lines + self._secrets(function, loaded)

    def _secrets(self, function: Function, loaded: Loaded) -> list[str]:
        lines: list[str] = []
        for name in loaded.workflow.secrets:
            if ("secret", name) in function.found.read:
                code = f"{self.need('secret')}({layout.quoted(name)})"
                lines += layout.statement(1, f"{function.name(('secret', name))} = {code}")
        return lines

    def _used(self, loaded: Loaded, name: str) -> list[str]:
        function, output = self._written(loaded, f"{name}/")
        folder = ["tmp_path: Path"] if any("tmp_path" in line for line in function.lines) else []
        parameters = ["page: Page", *folder]
        for each, given in loaded.workflow.inputs.items():
            parameters.append(f"{safe(each)}{_default(given)}")
        if loaded.workflow.inputs:
            parameters.insert(1 + len(folder), "*")
        if folder:
            self.need("Path")
        self.need("Page")
        begin = [
            line
            for each in loaded.workflow.inputs
            if ("input", each) in function.found.read and function.name(("input", each)) != safe(each)
            for line in layout.statement(1, f"{function.name(('input', each))} = {safe(each)}")
        ]
        begin += self._secrets(function, loaded)
        body = [*begin, *function.lines]
        if output:
            function.lines = _trimmed(body)
            function.line(f"return {output}")
            body = function.lines
        doc = loaded.workflow.description or loaded.workflow.name
        lines = layout.function_head(0, name, parameters, "" if output else "None")
        return [*lines, *(layout.docstring(1, [doc]) if doc else []), *_trimmed(body)]

    def _docstring(self) -> list[str]:
        loaded, work = self._loaded, self._loaded.workflow
        paragraphs = [f"{work.name or loaded.path.stem}.", *([work.description] if work.description else [])]
        paragraphs[0] = paragraphs[0].replace("..", ".")
        secrets = "".join(f"{each}=… " for each in work.secrets)
        paragraphs.append(
            f"Exported from {loaded.path.name} by RunOps, and independent of it:\n\n"
            f"    pip install pytest-playwright\n    {secrets}pytest {_test_name(loaded)}.py"
        )
        if self.lost_parts:
            listed = "\n".join(
                f"  - {each.place}: {each.what}" if each.place else f"  - {each.what}"
                for each in dict.fromkeys(self.lost_parts)
            )
            paragraphs.append(f"Left out:\n{listed}")
        return layout.docstring(0, paragraphs)

    def _imports(self, written: set[str]) -> list[str]:
        used = self.names() & written
        standard = [line for name, line in helpers.IMPORTS.items() if name in used and name != "pytest"]
        plain = sorted(line for line in standard if line.startswith("import"))
        names = ", ".join(name for name in helpers.PLAYWRIGHT if name in used)
        imported: dict[str, list[str]] = {}
        for line in sorted(set(standard) - set(plain)):
            module, _, name = line.partition(" import ")
            imported.setdefault(module, []).append(name)
        lines = [*plain, *(f"{module} import {', '.join(found)}" for module, found in imported.items())]
        pytest = ["import pytest"] if "pytest" in used else []
        return [*lines, *([""] if lines else []), *pytest, f"from playwright.sync_api import {names}"]

    def _settings(self) -> list[str]:
        seconds = self._loaded.workflow.timeout or 30
        lines = [f"expect.set_options(timeout={round(seconds * 1000):_})"]
        return [*lines, "", helpers.HELPERS["FAILURES"]] if "FAILURES" in self._needs else lines

    def _helpers(self) -> list[list[str]]:
        used = self.names()
        return [text.strip().splitlines() for name, text in helpers.HELPERS.items() if name in used - {"FAILURES"}]

    def _options(self) -> list[str]:
        """Return the fixture with the browser's options, if the workflow has any."""
        options = self._loaded.workflow.browser
        self.lost("", "resuming after a crash, and the log of a run with its evidence")
        self.lost("", "the guard of `allowed_origins`, and masking of secrets in traces and screenshots")
        if options is None:
            return []
        given = _context_options(options)
        for name in options.model_fields_set - _CARRIED.keys() - {"mode"}:
            self.lost("browser", f"`{name}`")
        if not given:
            return []
        self.need("pytest")
        lines = ['@pytest.fixture(scope="session")', "def browser_context_args(browser_context_args):"]
        body = ", ".join(
            [
                "**browser_context_args",
                *(f"{layout.quoted(name)}: {layout.literal(each)}" for name, each in given.items()),
            ]
        )
        return [*lines, *layout.statement(1, f"return {{{body}}}")]


_CARRIED = {
    "viewport": "viewport",
    "screen": "screen",
    "device_scale_factor": "device_scale_factor",
    "locale": "locale",
    "timezone": "timezone_id",
    "user_agent": "user_agent",
    "color_scheme": "color_scheme",
    "geolocation": "geolocation",
    "permissions": "permissions",
    "ignore_https_errors": "ignore_https_errors",
    "java_script": "java_script_enabled",
    "bypass_csp": "bypass_csp",
    "mobile": "is_mobile",
    "touch": "has_touch",
    "offline": "offline",
}
"""The options of a browser that Playwright's contexts have too, by name."""


def _context_options(options: BrowserOptions) -> dict[str, Json]:
    given = options.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return {_CARRIED[name]: value for name, value in given.items() if name in _CARRIED}


def _default(given: Input) -> str:
    return "" if given.required else f"={layout.literal(given.default)}"


def _trimmed(lines: list[str]) -> list[str]:
    """Return lines without blank ones at the ends, and never two in a row."""
    found: list[str] = []
    for line in lines:
        if line or (found and found[-1]):
            found.append(line)
    while found and not found[-1]:
        found.pop()
    return found
