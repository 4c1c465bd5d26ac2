"""Selection of the model server and its key: unusable ones are refused before anything begins, and are not shown."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as checks
from hypothesis import strategies as st

from nodes.errors import RunOpsError, SetupError, UsageError
from runtime.models import selection
from runtime.models.client import client as model_client
from runtime.models.client import profiles
from runtime.settings import addresses, settings
from runtime.workspace import host

FITTING = [
    "https://api.openai.com/v1",
    "http://127.0.0.1:8000/v1",
    "http://[::1]:11434/v1/",
    "HTTP://LOCALHOST/v1",
    "https://a_b.x-y.com./openai/v1",
    "http://xn--mnchen-3ya.test/v1",
    "http://models:/v1",
    "http://[fe80::1%25eth0]/v1",
]

UNFIT = {
    "nonsense": "begins neither",
    "ftp://models.test/v1": "begins neither",
    "http:models.test/v1": "begins neither",
    "http://[::1": "host or its port",
    "http://[::1]x/v1": "its host",
    "http://models.test:abc/v1": "host or its port",
    "http://models.test:99999/v1": "host or its port",
    "http:///v1": "host is invalid",
    "http://models..test/v1": "host is invalid",
    "http://-models.test/v1": "host is invalid",
    f"http://{'a' * 64}.test/v1": "host is invalid",
    "http://1.2.3.999/v1": "host is invalid",
    "http://münchen.../v1": "other characters that no address has",
    "http://models.test/v1\n": "blanks",
    "http://models.test/v 1": "blanks",
    f"http://models.test/{'a' * 2000}": "far too long",
    "http://user:hunter2pass@models.test/v1": "password",
    "http://user:12/hunter2pass@models.test/v1": "password",
    "http://models.test/v1?api-key=hunter2pass": "after a `?`",
    "http://models.test/v1#hunter2pass": "after a `?`",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, a key, and no other setting."""
    for name in ("RUNOPS_MODEL_BASE_URL", settings.URL, *selection.KEYS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(selection.KEY, "key-of-nobody-0123456789")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def server() -> selection.Server:
    """The server to which a command would send requests."""
    return selection.server(settings.load(model="m"), host.ENVIRONMENT)


@pytest.mark.parametrize("source", ["RUNOPS_MODEL_BASE_URL", settings.URL])
@pytest.mark.parametrize("address", FITTING)
def test_a_usable_address_is_taken_unchanged(source: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A usable address is taken unchanged from both places."""
    monkeypatch.setenv(source, address)
    assert server().base_url == address


@pytest.mark.parametrize("source", ["RUNOPS_MODEL_BASE_URL", settings.URL, "pyproject.toml"])
@pytest.mark.parametrize("address", UNFIT)
def test_an_unusable_address_is_refused_and_not_shown(
    source: str, address: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the place, the problem and a fix, and nothing of the address, for it may contain a password."""
    if source == "pyproject.toml":
        escaped = address.replace("\n", "\\n")
        (here / source).write_text(f'[tool.runops]\nmodel_base_url = "{escaped}"\n', encoding="utf-8")
    else:
        monkeypatch.setenv(source, address)
    with pytest.raises(UsageError) as caught:
        server()
    error = caught.value
    assert (error.code, error.exit) == ("bad-setting", 2)
    assert source in error.message
    assert UNFIT[address] in error.message
    assert error.fix
    shown = str(error.as_json())
    assert "hunter2pass" not in shown
    assert address not in shown


PIECES = [
    "[",
    "]",
    "::1",
    "1.2.3.4",
    "1.2.3.999",
    "a",
    "xn--",
    "-",
    ".",
    ":",
    "80",
    "/",
    "%",
    "%25",
    "|",
    "\\",
    "^",
    "é",
    " ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=5).map(lambda each: f"http://{''.join(each)}"))
@example("http://[::1]a/")
@example("http://1.2.3.999/")
@checks(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_client_takes_every_address_that_is_found_fit(address: str) -> None:
    """The client accepts every address that passes the check, and finds its profile."""
    with contextlib.suppress(addresses.BadAddress):
        addresses.checked(address)
        assert model_client.Client(address, "key", profiles.of_url(address)).base_url == address


@pytest.mark.parametrize("name", selection.KEYS)
@pytest.mark.parametrize("key", ["sk-short\n1", "sk-short\n", "sk short 1", "sk-\x001234", "sk-1234é", "sk-1234\t"])
def test_a_key_that_fits_in_no_header_is_refused_and_not_shown(
    name: str, key: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that fits in no header is refused before any request, even one too short to mask; the error shows no part of it."""
    monkeypatch.delenv(selection.KEY)
    # No environment variable can contain the null character.
    lines = key.replace("\n", "\\n").replace("\t", "\\t")
    (here / ".env").write_text(f'{name}="{lines}"\n', encoding="utf-8")
    with pytest.raises(SetupError) as caught:
        server()
    assert (caught.value.code, caught.value.exit) == ("model-key-refused", 3)
    assert "sk" not in str(caught.value.as_json())


def test_a_server_on_this_machine_needs_no_key_and_any_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local server gets a placeholder as its key; any other server without a key is refused."""
    monkeypatch.delenv(selection.KEY)
    monkeypatch.setenv(settings.URL, "http://[::1]:8000/v1")
    assert server().key == selection.NO_KEY
    monkeypatch.setenv(settings.URL, "http://models.test/v1")
    with pytest.raises(RunOpsError) as caught:
        server()
    assert caught.value.code == "model-key-missing"


@pytest.mark.parametrize("key", ["sk-quo'te\"0123", "sk-a+b/c=0123456"])
def test_a_servers_message_shows_the_key_in_no_form(key: str) -> None:
    """The key is masked as it is, quoted by Python, and encoded as in an address."""
    client = model_client.Client("http://127.0.0.1:9/v1", key, profiles.PROFILES["compatible"])
    for shown in (key, repr(key), f"{key.encode()!r}", key.replace("/", "%2F").replace("+", "%2B").replace("=", "%3D")):
        plain = client._plain(f"Illegal value\n{shown}!")
        assert plain.startswith("Illegal value ")
        assert key not in plain
        assert "0123" not in plain


def test_an_address_of_other_programs_breaks_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """`OPENAI_BASE_URL` belongs to every client on the machine: settings load whatever it contains."""
    monkeypatch.setenv(settings.URL, "nonsense")
    assert settings.load().model_base_url == "nonsense"


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", "nonsense"])
def test_the_variables_of_other_clients_count_in_the_env_file_too(address: str, here: Path) -> None:
    """`.env` gives address and key under the clients' names, as it does under ours; ours wins, and an invalid one is refused with its place."""
    (here / ".env").write_text(f"{settings.URL}={address}\nOPENAI_API_KEY=key-of-the-file-1234\n", encoding="utf-8")
    assert settings.load().model_base_url == address
    assert settings.origin("model_base_url") == f"{settings.URL} in .env"
    if address == "nonsense":
        with pytest.raises(UsageError, match=f"{settings.URL} in .*\\.env:1 is no address"):
            server()
    else:
        assert server().base_url == address
    (here / "pyproject.toml").write_text('[tool.runops]\nmodel_base_url = "http://[::1]:8/v1"\n', encoding="utf-8")
    assert server().base_url == "http://[::1]:8/v1"
    assert settings.origin("model_base_url") == "pyproject.toml"
