"""What a run wrote with a secret in it is taken away at its end: files become private, the log and its values are painted over."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from nodes.errors import RunOpsError
from nodes.values import Json
from runtime.runs import start
from runtime.secrets.masking import Masker
from runtime.settings.settings import Settings
from runtime.workspace import host
from tests.fakes import FakeSite
from tests.rig import Rig

SECRET = "correct-horse 7"
READ = "{id: echo, type: browser_query, query: text, target: {css: h1}}"
SAVE = "{id: save, type: browser_action, action: download, target: {css: a}}"


def rig(home: Path, *nodes: str, text: str = "", secret: str = SECRET) -> Rig:
    """A run of these nodes on a page with this text, and a file with the same content."""
    lines = "".join(f"  - {each}\n" for each in nodes)
    site = FakeSite(texts={"css=h1": text, "css=a": text})
    return Rig(home, f"version: 1\nsecrets: [KEY]\nnodes:\n{lines}", secrets={"KEY": secret}, site=site)


def unmasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off masking."""
    monkeypatch.setattr(Masker, "json", lambda _self, value: value)
    monkeypatch.setattr(Masker, "text", lambda _self, text: text)


def written(home: Path, *, private: bool = False) -> dict[str, bytes]:
    """The files below the home by name: those that a person may hand on, or the private ones."""
    files = [each for each in home.rglob("*") if each.is_file() and ("private" in each.parts) is private]
    return {each.name: each.read_bytes() for each in files}


def evidence(ended: Any) -> list[dict[str, Any]]:
    """What the error of the run says of its leaks."""
    assert (ended.status, ended.error["code"]) == ("failed", "secret-leaked")
    assert SECRET not in str(ended.error)
    return ended.error["evidence"]["files"]


@pytest.mark.parametrize("packed", [False, True])
async def test_a_file_with_a_secret_becomes_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    """A file with the secret, packed too, is moved into the private folder of the run with its name; the error says where it is."""
    one = rig(tmp_path, SAVE, text=f"the key is {SECRET}")
    data = gzip.compress(f"the key is {SECRET}".encode()) if packed else f"the key is {SECRET}".encode()
    put = Rig.newly_begun

    async def packing(self: Rig) -> Any:
        writer = await put(self)
        monkeypatch.setattr(writer.conversation, "put_file", _storing(writer.conversation.put_file, data))
        return writer

    monkeypatch.setattr(Rig, "newly_begun", packing)
    (leak,) = evidence(await one.start())
    assert (leak["kind"], leak["secrets"], leak["inside"]) == ("file", ["KEY"], ["gzip"] if packed else [])
    assert not [name for name, each in written(tmp_path).items() if data in each]
    assert Path(leak["now"]).read_bytes() == data
    assert Path(leak["now"]).name == Path(leak["file"]).name
    assert Path(leak["now"]).is_relative_to(tmp_path / "private" / one.id / "leaked")


def _storing(put: Any, data: bytes) -> Any:
    async def put_file(name: str, _data: bytes | Path, *, private: bool = False) -> Any:
        return await put(name, data, private=private)

    return put_file


async def test_the_log_is_painted_over_and_can_still_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret in lines of the log is painted over in place: every entry still reads, as long as it was."""
    unmasked(monkeypatch)
    one = rig(tmp_path, READ, text=f'you typed "{SECRET}", ü {SECRET}')
    (leak,) = evidence(await one.start())
    assert (leak["kind"], leak["now"]) == ("log", "painted over")
    assert not [name for name, each in written(tmp_path).items() if SECRET.encode() in each]
    (attempt,) = one.history.attempts["echo"]
    assert attempt.result is not None
    stars = "*" * len(SECRET)
    assert attempt.result.value == f'you typed "{stars}", ü {stars}'


@pytest.mark.parametrize("secret", ['correct "horse"', "it's 'so'", "back\\slash 7", "a\nline 7", "ünd mehr"])
async def test_any_secret_is_painted_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    """Entries still read after a secret with quotes, escapes or line breaks was painted over."""
    unmasked(monkeypatch)
    one = rig(tmp_path, READ, text=secret, secret=secret)
    (leak,) = evidence(await one.start())
    assert leak["now"] == "painted over"
    assert one.history.attempts["echo"][0].result is not None
    assert set(str(one.history.attempts["echo"][0].result.value)) == {"*"}


async def test_a_number_stays_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that the log has as a number is painted over with another number."""
    unmasked(monkeypatch)
    count = '{id: n, type: transform, expr: "{{ 84729129 + 1 }}"}'
    one = rig(tmp_path, count, secret="84729130")
    (leak,) = evidence(await one.start())
    assert leak["now"] == "painted over"
    assert one.history.attempts["n"][0].result is not None
    assert one.history.attempts["n"][0].result.value == 11111111


async def test_a_large_value_is_painted_over_and_can_still_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log names the painted value, which fits its hash; the one with the secret is private."""
    unmasked(monkeypatch)
    one = rig(tmp_path, READ, text=f"{'long ' * 1000}{SECRET}")
    leaks = evidence(await one.start())
    assert [each["kind"] for each in leaks] == ["value"]
    assert not [name for name, each in written(tmp_path).items() if SECRET.encode() in each]
    (attempt,) = one.history.attempts["echo"]
    assert attempt.result is not None
    value: Json = one.reader.blob(attempt.result.blob.sha256) if attempt.result.blob is not None else None
    assert value == f'"{"long " * 1000}{"*" * len(SECRET)}"'.encode()
    assert SECRET.encode() in b"".join(written(tmp_path, private=True).values())


async def test_values_of_a_killed_process_are_searched_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that ends the run finds the secret in a large value that an earlier process wrote."""
    one = rig(tmp_path, READ, "{id: go, type: browser_action, action: click, target: {css: go}}")
    one.site.texts["css=h1"] = f"{'long ' * 1000}{SECRET}"

    async def die(_target: str, _page: object) -> None:
        raise KeyboardInterrupt

    one.site.before_click = die
    with monkeypatch.context() as patch:
        unmasked(patch)
        with pytest.raises(KeyboardInterrupt):
            await one.start()
    one.die()
    one.site.before_click = None
    assert [each["kind"] for each in evidence(await one.resume())] == ["value"]


async def test_a_run_that_leaked_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A painted value is none to continue with: the run is refused."""
    unmasked(monkeypatch)
    one = rig(tmp_path, READ, text=SECRET)
    evidence(await one.start())
    with pytest.raises(RunOpsError) as refused:
        await start.resume_run(one.id, host.given(Settings(home=tmp_path), None, {"KEY": SECRET}, "own"))
    assert refused.value.code == "run-leaked"
