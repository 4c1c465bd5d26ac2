"""Python functions of a project: only configured modules may be called, and failures are explained."""

import asyncio
import importlib
import sys
import threading
from pathlib import Path

import pytest

from nodes.errors import AuthorError, RunOpsError, UsageError
from runtime.cli import app
from runtime.language import reader
from runtime.language.diagnostics import WorkflowInvalid
from runtime.runs import start
from runtime.secrets import masking
from runtime.services import functions as services_functions
from runtime.settings import settings
from runtime.workspace import host
from tests.rig import Rig

RULES = """
import datetime
import decimal
import os.path
import threading
from os.path import basename

gate = threading.Event()
print("imported")

def price(total, rate=decimal.Decimal("0.10")):
    print("computing")
    return {"due": datetime.date(2026, 1, 31), "price": decimal.Decimal(total) * rate}

def fails(total):
    raise ValueError(f"{total} is too much")

def says(text):
    print(text)
    return text

def has_said(text):
    thread = threading.Thread(target=print, args=(text,))
    thread.start()
    thread.join()
    return text

def leaves():
    raise SystemExit(0)

def waits():
    gate.wait()

def thing():
    return object()

async def later():
    return 1

class Rules:
    pass
"""

ALLOWED = ("shop_rules", "broken_rules", "no_rules")

WORKFLOW = """
version: 1
nodes:
  - {id: due, type: transform, python: "shop_rules:price", args: {total: "{{ 20 * 2 }}"}}
output: "{{ due }}"
"""

OVERLAP = """
import threading

go = {"first": threading.Event(), "second": threading.Event()}
both = threading.Event()
here = []

def waits(name):
    here.append(name)
    if len(here) == 2:
        both.set()
    go[name].wait(20)
    return name
"""

CALLS = """
version: 1
nodes:
  - {{id: waited, type: transform, python: "overlap:waits", args: {{name: {}}}}}
output: "{{{{ waited }}}}"
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the module `shop_rules` in its folder."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "shop_rules.py").write_text(RULES)
    (tmp_path / "broken_rules.py").write_text("import no_such_thing_at_all\n")
    monkeypatch.delenv("RUNOPS_PYTHON_MODULES", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("shop_rules", "broken_rules", "overlap"):
        sys.modules.pop(name, None)
    return tmp_path


async def test_a_function_makes_the_value(tmp_path: Path) -> None:
    """Keyword arguments go in and JSON comes out; printed text is not part of the value."""
    rig = Rig(tmp_path / "runs", WORKFLOW, settings=settings.load(python_modules=ALLOWED))
    assert (await rig.start()).output == {"due": "2026-01-31", "price": 4}


async def test_runs_that_overlap_leave_stdout_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two overlapping runs that call functions do not replace the program's stdout, during or after the runs."""
    (tmp_path / "overlap.py").write_text(OVERLAP)
    sys.path.append(str(tmp_path))
    overlap = importlib.import_module("overlap")
    chosen, stdout = settings.load(python_modules=("overlap",)), sys.stdout
    one, two = (Rig(tmp_path / name, CALLS.format(name), settings=chosen) for name in ("first", "second"))
    task = asyncio.create_task(two.start())
    ended = asyncio.create_task(one.start())
    assert await asyncio.to_thread(overlap.both.wait, 20)
    sys.stdout.write("the program says this\n")
    assert sys.stdout is stdout
    overlap.go["first"].set()
    assert (await ended).output == "first"
    assert sys.stdout is stdout
    overlap.go["second"].set()
    assert (await task).output == "second"
    assert sys.stdout is stdout
    printed = capsys.readouterr()
    assert "the program says this\n" in printed.out
    assert printed.err == ""


async def test_settings_that_a_program_gives_are_enough(tmp_path: Path) -> None:
    """Modules allowed in the program's call need no environment variable or pyproject.toml."""
    (tmp_path / "shop.yaml").write_text(WORKFLOW)
    chosen = settings.load(home=tmp_path / "runs", python_modules=("shop_rules",))
    ended = await start.start(tmp_path / "shop.yaml", {}, host.of_command(chosen))
    assert (ended.status, ended.output) == ("passed", {"due": "2026-01-31", "price": 4})


@pytest.mark.parametrize("where", ["environment", "pyproject.toml"])
async def test_the_environment_does_not_widen_the_settings_of_a_call(
    where: str, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a variable nor pyproject.toml adds modules to the settings of the call, before and during a run."""
    if where == "environment":
        monkeypatch.setenv("RUNOPS_PYTHON_MODULES", "shop_rules")
    else:
        (project / "pyproject.toml").write_text('[tool.runops]\npython_modules = ["shop_rules"]\n')
    (tmp_path / "shop.yaml").write_text(WORKFLOW)
    chosen = settings.load(home=tmp_path / "runs", python_modules=())
    with pytest.raises(WorkflowInvalid):
        await start.start(tmp_path / "shop.yaml", {}, host.of_command(chosen))
    ended = await Rig(tmp_path / "more", WORKFLOW, settings=chosen).start()
    assert ended.error is not None
    assert ended.error["code"] == "python-not-allowed"
    assert "shop_rules" not in sys.modules


@pytest.mark.parametrize(
    ("function", "args", "code", "message"),
    [
        ("fails", {"total": 3}, "python-failed", "`shop_rules:fails` failed"),
        ("leaves", {}, "python-failed", "`shop_rules:leaves` failed"),
        ("thing", {}, "python-failed", "cannot be kept"),
        ("price", {"rate": 1}, "python-failed", "missing a required argument: 'total'"),
        ("price", {"total": 1, "more": 1}, "python-failed", "'more'"),
        ("prices", {}, "python-not-found", "no function `prices`"),
        ("basename", {"p": "x"}, "python-not-found", "no function `basename` of its own"),
        ("Rules", {}, "python-not-found", "no function `Rules`"),
        ("gate", {}, "python-not-found", "no function `gate`"),
        ("later", {}, "python-not-found", "async"),
    ],
)
async def test_a_failing_function_is_the_authors_error(
    function: str, args: dict[str, object], code: str, message: str
) -> None:
    """A function that fails, is missing, is not callable, or belongs to another module is reported with a fix."""
    with pytest.raises(AuthorError) as caught:
        await services_functions.Functions(ALLOWED, 10, masking.Masker({})).call(f"shop_rules:{function}", args)
    assert caught.value.code == code
    assert message in caught.value.message
    assert caught.value.fix
    assert "Traceback" not in str(caught.value.as_json())


async def test_printed_text_of_a_function_is_masked(capsys: pytest.CaptureFixture[str]) -> None:
    """In a command a function prints to stderr with secrets masked, and the command keeps stdout."""
    functions = services_functions.Functions(ALLOWED, 10, masking.Masker({"KEY": "hunter22"}))
    with app.functions_on_stderr():
        for name in ("says", "has_said"):
            assert await functions.call(f"shop_rules:{name}", {"text": "it is hunter22"}) == "it is hunter22"
        sys.stdout.write("the result\n")
    printed = capsys.readouterr()
    assert printed.out == "the result\n"
    assert printed.err.splitlines() == ["imported", *[f"it is {masking.MASK}"] * 2]


async def test_a_failure_shows_its_exception_and_place() -> None:
    """The error has the exception and its line in the module."""
    with pytest.raises(AuthorError) as caught:
        await services_functions.Functions(ALLOWED, 10, masking.Masker({})).call("shop_rules:fails", {"total": 3})
    line = RULES.splitlines().index('    raise ValueError(f"{total} is too much")') + 1
    assert caught.value.evidence["error"] == "ValueError: 3 is too much"
    assert str(caught.value.evidence["place"]).endswith(f"shop_rules.py:{line}")


async def test_a_function_that_does_not_end_fails_the_step() -> None:
    """After the node's timeout the call fails, and its daemon thread remains."""
    with pytest.raises(AuthorError, match=r"longer than 0\.2 s"):
        await services_functions.Functions(ALLOWED, 0.2, masking.Masker({})).call("shop_rules:waits", {})
    left = [each for each in threading.enumerate() if each.name == "shop_rules:waits"]
    assert all(each.daemon for each in left)
    sys.modules["shop_rules"].gate.set()
    for each in left:
        each.join()


@pytest.mark.parametrize(
    ("module", "message"), [("no_rules", "there is no Python module"), ("broken_rules", "cannot be imported")]
)
async def test_a_module_that_is_missing_or_broken_is_named(module: str, message: str) -> None:
    """Missing and broken modules have different errors, and a broken one has the cause."""
    with pytest.raises(AuthorError, match=message) as caught:
        await services_functions.Functions(ALLOWED, 10, masking.Masker({})).call(f"{module}:price", {})
    assert caught.value.code == "python-not-found"
    assert ("no_such_thing_at_all" in str(caught.value.evidence)) == (module == "broken_rules")


def test_a_module_that_is_not_allowed_keeps_the_run_from_starting() -> None:
    """The error (exit 2) has the place in the file, and the setting or the nearest allowed module."""
    with pytest.raises(WorkflowInvalid) as caught:
        services_functions.check(reader.parse(WORKFLOW, "shop.yaml"), ())
    (problem,) = caught.value.diagnostics
    assert (caught.value.exit, problem.code) == (2, "python-not-allowed")
    assert problem.mark is not None
    assert (problem.mark.line, problem.mark.column) == (4, 40)
    assert 'python_modules = ["shop_rules"]' in problem.help[0]
    with pytest.raises(WorkflowInvalid) as caught:
        services_functions.check(reader.parse(WORKFLOW, "shop.yaml"), ["shop_rule"])
    assert caught.value.diagnostics[0].help == ("did you mean `shop_rule`?",)


async def test_the_configuration_is_checked_at_each_call() -> None:
    """Each call checks the allowed modules, so a resumed run follows the current settings."""
    with pytest.raises(UsageError) as caught:
        await services_functions.Functions((), 10, masking.Masker({})).call("shop_rules:price", {"total": 1})
    assert caught.value.code == "python-not-allowed"
    assert "shop_rules" not in sys.modules


def test_the_variable_names_modules_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    """`RUNOPS_PYTHON_MODULES=a.b,c` is a list of two; a number in pyproject.toml is refused."""
    monkeypatch.setenv("RUNOPS_PYTHON_MODULES", "a.b, c")
    assert settings.load().python_modules == ("a.b", "c")
    monkeypatch.delenv("RUNOPS_PYTHON_MODULES")
    Path("pyproject.toml").write_text("[tool.runops]\npython_modules = 3\n")
    with pytest.raises(RunOpsError) as caught:
        settings.load()
    assert caught.value.code == "bad-setting"
