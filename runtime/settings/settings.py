"""What a machine and a project set: flags > ``RUNOPS_*`` > ``.env`` > ``[tool.runops]`` of pyproject.toml > defaults."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, InitSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

from nodes import budgets
from nodes.budgets import BadBudget, Budget
from nodes.errors import UsageError
from runtime.secrets import sources
from runtime.settings import addresses
from runtime.settings import prices as model_prices
from runtime.system import regular_files

PREFIX = "RUNOPS_"
URL = "OPENAI_BASE_URL"
TWELVE_HOURS = 12 * 3600.0


def find_home(start: Path | None = None) -> Path:
    """Where runs are kept: the nearest ``.runops`` of ``start`` (the current folder) or a folder above.

    Else ``.runops`` beside the nearest pyproject.toml or ``.git``, else in ``start``. One that belongs to somebody else is passed by.
    Nothing is made.
    """
    start = (start or Path.cwd()).absolute()
    folders = [start, *start.parents]
    for folder in folders:
        if (folder / ".runops").is_dir() and os.getuid() in (0, (folder / ".runops").stat().st_uid):
            return folder / ".runops"
    for folder in folders:
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return folder / ".runops"
    return start / ".runops"


def _default_linger() -> float:
    return 0.0 if os.environ.get("CI") else TWELVE_HOURS


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _program(given: Any) -> Any:
    """A bare name is that of a program on PATH, as in a shell; everything else is a path."""
    found = shutil.which(given) if isinstance(given, str) and os.sep not in given else None
    return found or given


def _names(value: Any) -> Any:
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value


def _prices(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise model_prices.BadPrice("it is no JSON") from None
    return model_prices.table(value)


class Settings(BaseModel):
    """The settings of a program. Nothing but what it is given counts: ``load`` makes those of a command."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    home: Annotated[Path, AfterValidator(_absolute)] = Field(default_factory=lambda: _absolute(Path(".runops")))
    """Folder that keeps runs; by default ``.runops``, for a command found by walking up."""
    browser: Annotated[Path, AfterValidator(_absolute), BeforeValidator(_program)] | None = None
    """Path of the browser to drive, or its name on PATH; by default one is looked for."""
    browser_mode: Literal["own", "shared"] | None = None
    """``own``: a browser process for each run, which survives the engine; ``shared``: an isolated context. By default what the workflow says."""
    headed: bool = False
    """Whether the browser shows its window."""
    keep_browser: bool = False
    """Whether the browser stays open when the run has ended."""
    linger: Annotated[float, Field(ge=0, le=30 * 24 * 3600, allow_inf_nan=False)] = TWELVE_HOURS
    """Seconds for which a browser waits for ``resume`` after its engine was killed: 12 hours; for a command 0 where ``CI`` is set."""

    model: str | None = Field(default=None, min_length=1)
    """The model that nodes ask, as its provider names it. There is no default: names of models go stale."""
    model_cognition: str | None = Field(default=None, min_length=1)
    """The model of ``cognition`` nodes, where it is another one."""
    model_agent: str | None = Field(default=None, min_length=1)
    """The model of ``agent`` nodes, where it is another one."""
    model_director: str | None = Field(default=None, min_length=1)
    """The model of the Director, where it is another one."""
    model_summary: str | None = Field(default=None, min_length=1)
    """The model that sums up long conversations, where it is another one."""
    model_base_url: Annotated[str, AfterValidator(addresses.checked)] | None = None
    """Where the provider's Responses API is, usually ending with ``/v1``; by default OpenAI's own, for a command that of ``OPENAI_BASE_URL``."""
    model_profile: Literal["openai", "azure", "openrouter", "vllm", "ollama", "compatible"] | None = None
    """What the provider can do (docs/models.md); by default what is known of the address."""
    model_timeout: float = Field(default=60.0, gt=0, le=24 * 3600, allow_inf_nan=False)
    """Seconds that one request to a model may take."""
    model_store: bool = False
    """Whether the provider may keep what it is sent: then a conversation goes on from there, and is not sent as a whole."""
    model_background: bool = False
    """Whether the provider works on a request while nobody is connected; a run that died fetches the answer. Implies ``model_store``."""
    model_calls: Literal["live", "record", "replay", "none"] = "live"
    """``live``: models are asked; ``record``: and a cassette is written; ``replay``: the cassette answers, no model is asked; ``none``: a file that would ask is refused."""

    chat_mode: Literal["chat", "agent", "run"] = "chat"
    """How a session goes on: it changes what the model is told of itself, and which tools it may use."""
    chat_knowledge: Annotated[Path, AfterValidator(_absolute)] | None = None
    """A folder of Markdown files; sections that fit a question are told with it (docs/conversation.md)."""
    delegate_clean_context: bool = False
    """Whether a delegate begins with nothing but its task, where the call does not say so itself; else it inherits the conversation."""

    window_strategy: Literal["injected", "clean", "hybrid"] = "hybrid"
    """What of the state is told with each request: all of it; nothing, for each part has a tool; or the plan and a line of status."""
    window_max_messages: int | None = Field(default=None, ge=0)
    """Messages of a conversation that a request holds; 0: no limit. Without it what the strategy has (docs/conversation.md), as with all of these that are None."""
    window_max_chars: int | None = Field(default=None, ge=0)
    """Characters of a conversation that a request holds; 0: no limit."""
    window_tool_results: bool = True
    """Whether outputs of tools stand in a request, or only pointers to them."""
    window_recent_outputs: int | None = Field(default=None, ge=0)
    """Tokens of the newest part of a conversation in which outputs of tools stand whole; before it stand pointers to them. 0: all are whole."""
    window_events: bool = True
    """Whether what a person did beside talking is told, in a line."""
    window_hard_limit: int = Field(default=0, ge=0)
    """Tokens of everything that a request holds, never more; 0: no such limit."""
    window_overflow: Literal["prune", "summarize"] = "summarize"
    """What becomes of the oldest, where a conversation does not fit: it is left out, or a summary stands for it."""
    window_min_recent: int = Field(default=4, ge=1)
    """How many of the newest messages no summary takes in."""
    window_top_k: int = Field(default=3, ge=0)
    """Sections of the knowledge that are told with a question."""
    window_checkpoint_at: int | None = Field(default=None, ge=0)
    """Tokens said since the last summary at which the next one is made, though there is room; 0: none is."""
    window_warn_at: int = Field(default=160_000, ge=1)
    """Tokens of a request from which on there is a warning."""
    window_compress_at: int = Field(default=180_000, ge=1)
    """Tokens that a request never exceeds: before that the conversation is summed up."""
    window_compress_to: int | None = Field(default=None, ge=1)
    """Tokens of a summary, at the most."""

    budget: Annotated[Budget | None, NoDecode, BeforeValidator(budgets.known)] = None
    """What the steps of one run may spend on models together: ``money=0.50usd,tokens=200k,calls=40,time=5m``, or some of these."""
    prices: Annotated[dict[str, model_prices.Price], NoDecode, BeforeValidator(_prices)] = Field(default_factory=dict)
    """What models cost whose price is not known, or is not yours: ``"my-model" = {input = 0.25, cached = 0.025, output = 2.0}`` below
    ``[tool.runops.prices]``, in US dollars per million tokens. In a variable, as JSON."""

    python_modules: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)] = ()
    """Python modules whose functions a workflow may call (``python: module:function``); by default none. In a variable, separated by commas."""


class _OfCommand(BaseSettings, Settings):
    """The settings of one command, from everything that a person may have set."""

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
    linger: Annotated[float, Field(ge=0, le=30 * 24 * 3600, allow_inf_nan=False)] = Field(
        default_factory=_default_linger
    )
    model_base_url: Annotated[str, AfterValidator(addresses.checked)] | None = Field(
        # What the provider's own clients read. It is found fit where a model is asked: whoever asks none may have any.
        default_factory=lambda: os.environ.get(URL) or None
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
        """Strongest first."""
        return init_settings, env_settings, dotenv_settings, InitSettingsSource(settings_cls, _project_table())


def load(**flags: Any) -> Settings:
    """The settings, with ``flags`` (None where a flag was not given) before everything else.

    Raises UsageError ``bad-setting`` for a value that cannot be used, or for an unknown name in ``[tool.runops]``, naming its place, and
    ``bad-budget`` for a budget; SetupError ``env-file-unreadable``.
    """
    sources.read_env_file(Path(".env"))
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return _OfCommand(**given)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = str(problem["loc"][0])
        place, seen = _place_of(name, given)
        message = str(problem["msg"]).removeprefix("Value error, ")
        cause = problem.get("ctx", {}).get("error")
        if isinstance(cause, addresses.BadAddress):
            raise no_address(place, cause) from None
        if isinstance(cause, BadBudget):
            raise UsageError("bad-budget", f"{place} cannot be {seen!r}: {message}", fix=cause.fix) from None
        raise UsageError(
            "bad-setting",
            f"{place} cannot be {seen!r}: {message[0].lower()}{message[1:]}",
            fix=f"set it to what `{name}` takes (see docs/command.md), or take it away",
        ) from None


def no_address(place: str, wrong: addresses.BadAddress) -> UsageError:
    """What stands at ``place`` is no address of a server. It is not shown: it may hold a password."""
    return UsageError("bad-setting", f"{place} is no address of a server: {wrong}", fix=wrong.fix)


def _place_of(name: str, flags: dict[str, Any]) -> tuple[str, object]:
    """Where the value of a setting came from, and the value."""
    if name in flags:
        flag = name.removeprefix("window_").removeprefix("chat_").replace("_", "-")
        return f"--{flag}", str(flags[name])
    variable = f"{PREFIX}{name}".upper()
    for place, values in (
        (variable, dict(os.environ)),
        (f"{variable} in {Path('.env').absolute()}", sources.read_env_file(Path(".env"))),
    ):
        found = next((value for key, value in values.items() if key.upper() == variable and value), None)
        if found is not None:
            return place, found
    return f"`{name}` of [tool.runops] in {_project_file()}", _project_table().get(name)


def _project_file() -> Path | None:
    """The nearest pyproject.toml of the current folder or one above."""
    here = Path.cwd()
    files = [folder / "pyproject.toml" for folder in (here, *here.parents)]
    return next((file for file in files if file.exists() and not file.is_dir()), None)


def project_folder() -> Path | None:
    """The folder of the nearest pyproject.toml, where there is one."""
    file = _project_file()
    return file.parent if file is not None else None


def _project_table() -> dict[str, Any]:
    """``[tool.runops]``; paths in it are relative to their file."""
    file = _project_file()
    if file is None:
        return {}
    try:
        table = tomllib.loads(regular_files.read_text(file)).get("tool", {}).get("runops", {})
    except (OSError, ValueError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        fix = regular_files.fix(error) or "fix the file"
        raise UsageError("bad-setting", f"{file} cannot be read: {reason}", fix=fix) from None
    if not isinstance(table, dict):
        raise UsageError("bad-setting", f"`tool.runops` in {file} is not a table", fix="write it as `[tool.runops]`")
    values: dict[str, Any] = {**table}
    for name in values:
        if name not in Settings.model_fields:
            near = difflib.get_close_matches(name, Settings.model_fields, 1)
            raise UsageError(
                "bad-setting",
                f"[tool.runops] in {file} has an unknown setting `{name}`",
                fix=f"did you mean `{near[0]}`?" if near else f"known settings: {', '.join(Settings.model_fields)}",
            )
    for name in ("home", "browser", "chat_knowledge"):
        given = _program(values.get(name)) if name == "browser" else values.get(name)
        if isinstance(given, str):
            values[name] = file.parent / Path(given).expanduser()
    return values
