"""Directus: the newsroom of a small magazine, with its articles and authors."""

from __future__ import annotations

import itertools
import json
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

GOAL = Goal(
    "directus",
    "app",
    "Sign in as desk@example.com and create an article with the given title, author and status; tell me the id that it got.",
    secrets=("DIRECTUS_PASSWORD",),
    inputs={"title": "Night trains are back", "author": "Mara Lindquist", "status": "In review"},
)
SECRETS = {"DIRECTUS_PASSWORD": "Quarry-Lantern-58"}
EMAIL = "desk@example.com"

AUTHORS = (
    *("Adaeze Obi", "Anna Brandt", "Anna Brand", "Ben Okafor", "Carla Mendes", "Chidi Eze", "Dara Quinn", "Elif Kaya"),
    *("Emil Novak", "Emil Nowak", "Farid Haddad", "Greta Olsen", "Hana Sato", "Ines Duarte", "Jon Hale", "John Hale"),
    *("Kofi Mensah", "Lena Fischer", "Lina Fischer", "Mara Lindqvist", "Mara Lindquist", "Marta Lindqvist"),
    *(
        "Noor Rahman",
        "Olek Wrona",
        "Pia Rossi",
        "Quentin Roy",
        "Rosa Delgado",
        "Sami Virtanen",
        "Tomas Ruiz",
        "Uma Iyer",
    ),
)
SUBJECTS = ("Night trains", "City bees", "Old harbours", "Small libraries", "Street markets")
TITLES = [
    f"{subject} {what}"
    for what, subject in itertools.product(
        (
            "are coming back",
            "at dawn",
            "in numbers",
            "and their rivals",
            "in winter",
            "on a budget",
            "by the sea",
            "at 100",
        ),
        SUBJECTS,
    )
]
STATUSES = {"draft": "Draft", "in_review": "In review", "published": "Published", "archived": "Archived"}


def install(home: Path) -> None:
    """Install Directus from npm: the newest version whose packages are all in the registry."""
    programs.node_packages(home, "directus@12.4.0")


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    """Start it; at the first time with a new database, that gets its collections and rows."""
    program = str(programs.node_packages(home, "directus@12.4.0") / "directus")
    environment = {
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "DB_CLIENT": "sqlite3",
        "DB_FILENAME": str(home / "data.db"),
        "SECRET": "made-up-for-builds-on-this-machine-only",
        "ADMIN_EMAIL": EMAIL,
        "ADMIN_PASSWORD": SECRETS["DIRECTUS_PASSWORD"],
        "TELEMETRY": "false",
        "PROJECT_OWNER_ENABLED": "false",
        "NO_UPDATE_NOTIFIER": "1",
    }
    new = not (home / "begin.db").exists()
    if new:
        (home / "data.db").unlink(missing_ok=True)
        (home / "uploads").mkdir(exist_ok=True)
        programs.ran([program, "bootstrap"], home, **environment)
    process = programs.started([program, "start"], home / "directus.log", home, **environment)
    url = f"http://127.0.0.1:{port}"
    try:
        programs.until_it_answers(f"{url}/server/ping")
        if new:
            _filled(url)
            programs.copied(home / "data.db", home / "begin.db")
    except BaseException:
        programs.ended([process])
        raise
    return [process]


def reset(home: Path, port: int) -> None:
    """Copy the first database over the one in use."""
    del port
    programs.copied(home / "begin.db", home / "data.db")


def state(home: Path, port: int) -> Json:
    """Every article and every author."""
    del port
    query = "select a.id, title, status, name as author, body from articles a left join authors b on b.id = a.author order by a.id"
    return {
        "articles": programs.rows(home / "data.db", query),
        "authors": programs.rows(home / "data.db", "select id, name from authors order by id"),
    }


def judged(before: Any, after: Any, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    """One article more, as it was wanted, and its id said."""
    old = {each["id"] for each in before["articles"]}
    new = [each for each in after["articles"] if each["id"] not in old]
    if [each for each in after["articles"] if each["id"] in old] != before["articles"]:
        yield "articles changed that were there before"
    if after["authors"] != before["authors"]:
        yield "the authors changed"
    if len(new) != 1:
        yield f"it made {len(new)} articles"
        return
    article = {**new[0], "status": STATUSES.get(new[0]["status"])}
    if wrong := {name: article[name] for name in inputs if article[name] != inputs[name]}:
        yield f"the article stands there with {wrong}"
    if article["body"]:
        yield f"it wrote the text {article['body']!r}"
    if str(article["id"]) not in programs.texts(output):
        yield f"the id is {article['id']}, and it says {output}"


def _filled(url: str) -> None:
    password = SECRETS["DIRECTUS_PASSWORD"]
    session = programs.asked(f"{url}/auth/login", {"email": EMAIL, "password": password})["data"]["access_token"]

    def post(path: str, body: Any, method: str = "POST") -> Any:
        return programs.asked(f"{url}/{path}", body, method, {"Authorization": f"Bearer {session}"})

    # As the dialog for licences does where the free plan is chosen. The picture stands for a shader, slow without a GPU.
    picture = _uploaded(f"{url}/files", session)
    post("settings", {"project_usage": "personal", "public_background": picture}, "PATCH")

    key: dict[str, Any] = {
        "field": "id",
        "type": "integer",
        "schema": {"is_primary_key": True, "has_auto_increment": True},
    }
    key["meta"] = {"interface": "input", "readonly": True, "hidden": True}
    name = {"field": "name", "type": "string", "meta": {"interface": "input", "required": True}, "schema": {}}
    authors = {"icon": "person", "display_template": "{{name}}"}
    post("collections", {"collection": "authors", "meta": authors, "schema": {}, "fields": [key, name]})
    choices = [{"text": text, "value": value} for value, text in STATUSES.items()]
    shown = {"interface": "select-dropdown", "display": "labels", "options": {"choices": choices}}
    shown["display_options"] = {"choices": choices}
    by = {"interface": "select-dropdown-m2o", "special": ["m2o"], "options": {"template": "{{name}}"}}
    by |= {"display": "related-values", "display_options": {"template": "{{name}}"}}
    fields = [
        key,
        {"field": "title", "type": "string", "meta": {"interface": "input", "required": True}, "schema": {}},
        {"field": "status", "type": "string", "meta": shown, "schema": {"default_value": "draft"}},
        {"field": "author", "type": "integer", "meta": by, "schema": {}},
        {"field": "body", "type": "text", "meta": {"interface": "input-multiline"}, "schema": {}},
    ]
    articles = {"icon": "article", "display_template": "{{title}}", "archive_field": "status"}
    articles |= {"archive_value": "archived", "unarchive_value": "draft"}
    post("collections", {"collection": "articles", "meta": articles, "schema": {}, "fields": fields})
    post("relations", {"collection": "articles", "field": "author", "related_collection": "authors"})
    ids = [each["id"] for each in post("items/authors", [{"name": each} for each in AUTHORS])["data"]]
    values = list(STATUSES)
    rows = [
        {"title": title, "status": values[place * 7 % 4], "author": ids[place * 11 % len(ids)], "body": f"{title}."}
        for place, title in enumerate(TITLES)
    ]
    post("items/articles", rows)
    table = {"fields": ["id", "title", "status", "author"], "sort": ["title"]}
    post("presets", {"collection": "articles", "layout": "tabular", "layout_query": {"tabular": table}})


def _uploaded(url: str, session: str) -> str:
    """The id of a plain picture."""
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="#246"/></svg>'
    )
    head = 'Content-Disposition: form-data; name="file"; filename="sea.svg"\r\nContent-Type: image/svg+xml'
    body = f"--part\r\n{head}\r\n\r\n{picture}\r\n--part--\r\n"
    headers = {"Authorization": f"Bearer {session}", "Content-Type": "multipart/form-data; boundary=part"}
    with urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers), timeout=30) as answer:
        return json.load(answer)["data"]["id"]
