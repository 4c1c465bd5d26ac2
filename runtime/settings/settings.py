"""Settings of a machine and a project: flags > ``RUNOPS_*`` > ``.env`` > ``[tool.runops]`` of pyproject.toml > defaults."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, InitSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

from nodes import budgets
from nodes.budgets import BadBudget, Budget
from nodes.errors import UsageError
from runtime.secrets import hidden_names, sources
from runtime.settings import addresses, places
from runtime.settings import prices as model_prices
from runtime.settings import shares as model_shares
from runtime.settings.homes import find_home
from runtime.settings.places import PREFIX, Place
from runtime.system.engines import Engine

URL = "OPENAI_BASE_URL"
TWELVE_HOURS = 12 * 3600.0
Linger = Annotated[float, Field(ge=0, le=30 * 24 * 3600, allow_inf_nan=False)]


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _program(given: Any) -> Any:
    """Return the path of a program: a bare name is searched on PATH, as in a shell."""
    found = shutil.which(given) if isinstance(given, str) and os.sep not in given else None
    return found or given


def _names(value: Any) -> Any:
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value


def _table(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("it is no JSON") from None


FLAGS = {
    "browser_mode": "--browser",
    "browser_engine": "--engine",
    "browser_url": "--browser-url",
    "headed": "--headed",
    "keep_browser": "--keep-browser",
    "linger": "--linger",
    "model_director": "--model",
    "model_store": "--store",
    "model_calls": "--model-calls",
    "chat_mode": "--mode",
    "chat_knowledge": "--knowledge",
    "session_max_output": "--max-output",
    "delegate_clean_context": "--delegate-clean",
    "window_strategy": "--strategy",
    "window_max_messages": "--max-messages",
    "window_max_chars": "--max-chars",
    "window_tool_results": "--tool-results",
    "window_recent_outputs": "--recent-outputs",
    "window_events": "--events",
    "window_hard_limit": "--hard-limit",
    "window_shares": "--shares",
    "window_overflow": "--overflow",
    "window_min_recent": "--min-recent",
    "window_top_k": "--top-k",
    "window_checkpoint_at": "--checkpoint-at",
    "window_checkpoint_messages": "--checkpoint-messages",
    "window_warn_at": "--warn-at",
    "window_compress_at": "--compress-at",
    "window_compress_to": "--compress-to",
    "reset": "--reset",
    "budget": "--budget",
    "run_timeout": "--run-timeout",
    "trace": "--trace",
    "video": "--video",
}
"""The flag of each setting that has one, on the commands that take it."""


class Settings(BaseModel):
    """Settings of a program. Only the given values count; ``load`` returns the settings of a command."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    home: Annotated[Path, AfterValidator(_absolute)] = Field(default_factory=lambda: _absolute(Path(".runops")))
    """Folder that keeps the runs. By default ``.runops``: for a command the nearest one above, else beside ``pyproject.toml`` or ``.git``, else in
    the current folder."""
    browser: Annotated[Path, AfterValidator(_absolute), BeforeValidator(_program)] | None = None
    """The browser to drive: its path, or its name on PATH. By default RunOps looks for one."""
    browser_mode: Literal["own", "shared"] | None = None
    """``own``: a browser process for each run, which survives a crash of RunOps; ``shared``: an isolated context. By default as in the workflow."""
    browser_engine: Engine | None = None
    """Kind of browser (docs/browser.md#firefox-and-webkit). By default as in the workflow, which defaults to ``chromium``."""
    browser_url: Annotated[str, AfterValidator(addresses.checked_browser)] | None = None
    """DevTools address of a browser that is already open: ``http://HOST:PORT`` or ``ws://…`` (docs/browser.md#a-browser-that-is-already-open). A
    run works in an isolated context there."""
    headed: bool = False
    """Show the browser's window."""
    step_timeout: float | None = Field(default=None, gt=0, le=24 * 3600, allow_inf_nan=False)
    """Seconds that an attempt of a step may take, if neither the step nor its file says it; by default 30."""
    run_timeout: float | None = Field(default=None, gt=0, le=7 * 24 * 3600, allow_inf_nan=False)
    """Seconds that a run may take in one process; it has failed then, and can be resumed. The shorter of this and the file's own counts."""
    keep_browser: bool = False
    """Leave the browser open after the run has ended."""
    linger: Linger = TWELVE_HOURS
    """Seconds for which the browser of a killed run waits for ``runops resume``: 12 hours; for a command 0 where ``CI`` is set."""
    trace: Literal["on", "off", "on-failure"] = "off"
    """Pages after steps and a trace for Playwright's viewer (docs/evidence.md): of the whole run, of none, or of a failed step and those before
    it. For a command by default ``on-failure`` where ``CI`` is set."""
    video: bool = False
    """Keep a video of the run among its files (docs/evidence.md). Needs ``pip install av``."""

    model: str | None = Field(default=None, min_length=1)
    """Model for nodes, by its provider's name. There is no default, because names of models become outdated; a run that needs one ends with exit
    code 3."""
    model_cognition: str | None = Field(default=None, min_length=1)
    """Model of ``cognition`` nodes, if it is another one."""
    model_agent: str | None = Field(default=None, min_length=1)
    """Model of ``agent`` nodes, if it is another one."""
    model_director: str | None = Field(default=None, min_length=1)
    """Model of conversations and builds, if it is another one."""
    model_summary: str | None = Field(default=None, min_length=1)
    """Model that summarises long conversations, if it is another one."""
    model_base_url: Annotated[str, AfterValidator(addresses.checked)] | None = None
    """Address of the provider's Responses API, usually ending with ``/v1``; without user name, password, ``?`` or ``#``; a host beyond ASCII as
    ``xn--…``. By default OpenAI's; for a command ``OPENAI_BASE_URL``, from the environment or ``.env``, where that is set."""
    model_profile: Literal["openai", "azure", "openrouter", "vllm", "ollama", "compatible"] | None = None
    """Abilities of the provider (docs/models.md#providers). By default those known for the address."""
    model_timeout: float = Field(default=60.0, gt=0, le=24 * 3600, allow_inf_nan=False)
    """Seconds that one request to a model may take. A session waits for an answer as long as it may take (20 minutes, in a build an hour), and
    sends nothing twice that the server works on."""
    model_sees: bool | None = None
    """Show pictures to models; by default where the provider's models see (docs/models.md#providers)."""
    model_store: bool = False
    """Let the provider store requests: then a conversation continues from there, and is not sent as a whole."""
    model_background: bool = False
    """Let the provider work on a request without a connection; a run that died fetches the answer. Implies ``model_store``."""
    model_calls: Literal["live", "record", "replay", "none"] = "live"
    """``live``: ask models; ``record``: also write a cassette; ``replay``: use only the cassette; ``none``: refuse files that ask models, as
    ``--frozen`` does."""

    chat_mode: Literal["chat", "agent", "run"] = "chat"
    """Mode of a session (docs/conversation.md#modes): it changes the instructions of the model, and the tools that it may use."""
    chat_knowledge: Annotated[Path, AfterValidator(_absolute)] | None = None
    """Folder of Markdown files; sections that fit a question are sent with it."""
    session_max_output: int | None = Field(default=None, ge=16)
    """Tokens that one answer of a session may have, reasoning included. By default as the provider needs (docs/models.md#providers): 16,000 where
    models reason, else 4,000; in a build at least 16,000. A node has its own ``max_output``."""
    delegate_max_output: int | None = Field(default=None, ge=16)
    """The same for an answer of a delegate."""
    delegate_clean_context: bool = False
    """Start a delegate with only its task, if the call does not say otherwise; else it inherits the conversation."""

    window_strategy: Literal["injected", "clean", "hybrid"] = "hybrid"
    """State sent with each request (docs/conversation.md#what-the-model-is-sent): ``injected``: all; ``clean``: none, each part has a tool;
    ``hybrid``: the plan and a line of status."""
    window_max_messages: int | None = Field(default=None, ge=0)
    """Maximum number of messages of a conversation in a request; by default, and with 0, no limit."""
    window_max_chars: int | None = Field(default=None, ge=0)
    """Maximum number of characters of a conversation in a request; by default, and with 0, no limit."""
    window_tool_results: bool = True
    """Put outputs of tools in a request; if false, only pointers to them."""
    window_recent_outputs: int | None = Field(default=None, ge=0)
    """Tokens of the newest part of a conversation that has tool outputs in full; earlier ones become pointers. 0: all are in full. By default as
    the strategy needs."""
    window_events: bool = True
    """Show the model, in a line each, a person's actions besides talking."""
    window_hard_limit: int = Field(default=0, ge=0)
    """Maximum number of tokens of a whole request; 0: no such limit."""
    window_shares: Annotated[model_shares.Known, NoDecode] = model_shares.Shares()
    """Shares of a hard limit, in percent; what system, state and conversation leave stays free. ``summary`` is of the conversation's share."""
    window_overflow: Literal["prune", "summarize", "summarize-only"] = "summarize"
    """Treatment of the oldest messages if a conversation does not fit: ``prune`` omits them, ``summarize`` replaces them with a summary, or omits
    them if there is none; ``summarize-only`` then sends nothing."""
    window_min_recent: int = Field(default=4, ge=0)
    """Number of newest messages that no summary includes."""
    window_top_k: int = Field(default=3, ge=0)
    """Number of sections of the knowledge that are sent with a question."""
    window_checkpoint_at: int | None = Field(default=None, ge=0)
    """Number of tokens since the last summary at which the next one is made, even if there is room; 0: never. By default as the strategy needs."""
    window_checkpoint_messages: int = Field(default=0, ge=0)
    """Number of messages since the last summary at which the next one is made; 0: never."""
    window_warn_at: int = Field(default=160_000, ge=1)
    """Number of tokens of a request that triggers a warning."""
    window_compress_at: int = Field(default=180_000, ge=1)
    """Maximum number of tokens of a request: before it is exceeded, the conversation is summarised."""
    window_compress_to: int | None = Field(default=None, ge=1)
    """Maximum number of tokens of a summary. By default as the strategy needs."""

    reset: str | None = None
    """Shell command that puts the site's data back before each whole run of a build and of ``runops verify``
    (docs/proofs.md#a-reset-before-each-run); empty: none."""
    reset_timeout: float = Field(default=300.0, gt=0, le=24 * 3600, allow_inf_nan=False)
    """Seconds that this command may take."""

    budget: Annotated[Budget | None, NoDecode, BeforeValidator(budgets.known)] = None
    """What models may cost in one run: ``money=0.50usd,tokens=200k,calls=40,time=5m``, or some of these (docs/models.md#budgets). Each node has
    its own limit besides."""
    prices: Annotated[dict[str, model_prices.Price], NoDecode, BeforeValidator(_table)] = Field(default_factory=dict)
    """Prices of models without a known price, or with another one for you: ``"my-model" = {input = 0.25, cached = 0.025, output = 2.0}`` below
    ``[tool.runops.prices]``, in US dollars per million tokens. In a variable, as JSON."""

    python_modules: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = ()
    """Python modules whose functions a ``transform`` may call (``python: module:function``). In a variable, separated by commas."""
    hidden_names: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = hidden_names.NAMES
    """Names of values that no model sees, whatever the values are (docs/secrets.md#values-that-look-secret-by-their-name): by default
    ``password``, ``token``, ``api_key`` and the like. In a variable, separated by commas."""


class _OfCommand(BaseSettings, Settings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        env_ignore_empty=True,
        dotenv_filtering="only_existing",
        extra="forbid",
        frozen=True,
        validate_default=False,
    )

    home: Annotated[Path, AfterValidator(_absolute)] = Field(default_factory=find_home)
    linger: Linger = Field(default_factory=lambda: 0.0 if os.environ.get("CI") else TWELVE_HOURS)
    trace: Literal["on", "off", "on-failure"] = Field(
        default_factory=lambda: "on-failure" if os.environ.get("CI") else "off"
    )
    model_base_url: Annotated[str, AfterValidator(addresses.checked)] | None = Field(
        # The variable belongs to the provider's clients: it is checked only when a model is asked, so other commands accept any.
        default_factory=lambda: next((value for _, value in places.given(URL)), None)
    )

    @override
    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, dotenv_settings, InitSettingsSource(settings_cls, _project_table())


def load(**flags: Any) -> Settings:
    """Return the settings; ``flags`` override everything else.

    Raises UsageError ``bad-setting`` with the place, ``bad-budget``; SetupError ``env-file-unreadable``.
    """
    for place, meant in misspelt():
        raise UsageError(
            "bad-setting",
            f"{place.named} is no setting, so it would have no effect",
            fix=f"did you mean {meant}? (A secret takes another name.)",
        )
    return read(**flags)


def misspelt() -> list[tuple[Place, str]]:
    """Return the variables, of the environment and of ``.env``, that are nearly those of a setting, each with the intended one."""
    return places.misspelt(Settings.model_fields)


def read(**flags: Any) -> Settings:
    """Return the settings, whatever is misspelt in the environment; else as ``load``."""
    sources.read_env_file(Path(".env"))
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return _OfCommand(**given)
    except ValidationError as error:
        # Report an unknown name first: it explains a missing one.
        problem = min(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
        name = str(problem["loc"][0])
        place, seen = _seen(name, given)
        message = str(problem["msg"]).removeprefix("Value error, ")
        part = ".".join(map(str, problem["loc"][1:]))
        within = f"`{part}`: " if part else ""
        cause = problem.get("ctx", {}).get("error")
        if isinstance(cause, addresses.BadAddress):
            raise no_address(place, cause) from None
        if isinstance(cause, BadBudget):
            raise UsageError("bad-budget", f"{place} cannot be {seen!r}: {message}", fix=cause.fix) from None
        raise UsageError(
            "bad-setting",
            f"{place} cannot be {seen!r}: {within}{message[0].lower()}{message[1:]}",
            fix=f"set it to what `{name}` takes (see docs/command.md), or take it away",
        ) from None


def place_of(name: str) -> Place:
    """Return where the value of a setting comes from, flags aside."""
    for place, _ in places.given(f"{PREFIX}{name}".upper()):
        return place
    if name in _project_table():
        return places.in_project(name)
    if name == "model_base_url":
        for place, _ in places.given(URL):
            return place
    return Place("default")


def origin(name: str) -> str:
    """Return the same in a word: the variable, ``.env``, ``pyproject.toml``, or ``default``."""
    place = place_of(name)
    if place.name.upper() == URL and place.kind == ".env":
        return f"{URL} in .env"
    return place.name.upper() if place.kind == "environment" else place.kind


def no_client_address(wrong: addresses.BadAddress) -> UsageError:
    """Return the error for an invalid address in the variable of the provider's clients."""
    return no_address(next((place.named for place, _ in places.given(URL)), URL), wrong)


def no_address(place: str, wrong: addresses.BadAddress) -> UsageError:
    """Return the error for an invalid server address at ``place``, without the address, which may contain a password."""
    return UsageError("bad-setting", f"{place} is no address of a server: {wrong}", fix=wrong.fix)


def _seen(name: str, flags: dict[str, Any]) -> tuple[str, object]:
    """Return the place of a setting in words, and its value there."""
    if name in flags:
        return FLAGS.get(name, f"--{name.replace('_', '-')}"), str(flags[name])
    for place, found in places.given(f"{PREFIX}{name}".upper()):
        return place.named, found
    return places.in_project(name).named, _project_table().get(name)


def project_folder() -> Path | None:
    file = places.project_file()
    return file.parent if file is not None else None


def _project_table() -> dict[str, Any]:
    """Return ``[tool.runops]``; paths in it are relative to their file."""
    values = places.project_table(Settings.model_fields)
    folder = project_folder()
    for name in ("home", "browser", "chat_knowledge"):
        given = _program(values.get(name)) if name == "browser" else values.get(name)
        if isinstance(given, str) and folder is not None:
            values[name] = folder / Path(given).expanduser()
    return values
