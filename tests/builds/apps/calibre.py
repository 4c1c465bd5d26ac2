"""Calibre's server with a library of made-up books: change one of them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from bisect import insort
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

GOAL = Goal(
    "calibre",
    "app",
    "Add the given tag to the book with the given title by the given author in our library, leave everything else of it as it is, and tell me the series it belongs to and its number in that series.",
    inputs={"title": "The Salt Road", "author": "Ines Falk", "tag": "Book club"},
)
SECRETS: dict[str, str] = {}
SERIES = {
    "Harbour Lights": (
        "Ines Falk",
        "The Glass Pier",
        "A Lantern for Nora",
        "The Salt Road",
        "Low Water",
        "The Salt Roads",
    ),
    "Harbour Nights": ("Tomas Lindqvist", "Night Ferry", "The Last Crane", "Fog Signal", "Ballast"),
    "The Miller Cases": ("Jonas Reed", "Flour and Blood", "The Salt Road", "Dead Reckoning", "Cold Millstone"),
    "Orbit": ("Keiko Arden", "First Burn", "Second Burn", "The Long Coast", "Docking", "Drift"),
    "Kitchen Table": ("Marta Oliveira", "Bread", "Soup", "Bread and Butter", "Salt"),
    "The Weaver Trilogy": ("Ines Falk", "Warp", "Weft", "Selvedge"),
}
"""Their authors, and their books."""
AUTHORS = ("Ines Falk", "Ingrid Falk", "Jonas Reed", "John Reed", "Amal Haddad", "Pavel Novotny", "Keiko Arden")
NOUNS = (
    "Garden",
    "Clock",
    "Bridge",
    "Winter",
    "Orchard",
    "Letter",
    "Station",
    "Island",
    "Mirror",
    "Tower",
    "Map",
    "Fox",
)
ROMAN = ("", "I", "II", "III", "IV", "V")
"""How the server writes the numbers of books in series, except where they are changed."""
TAGS = (
    "Fiction",
    "Crime",
    "Travel",
    "Science fiction",
    "Cooking",
    "History",
    "Reading group",
    "Book fair",
    "Book club",
)
FILL = """
import json, sys
from datetime import datetime, timezone
from calibre.ebooks.covers import generate_cover
from calibre.ebooks.metadata.book.base import Metadata
from calibre.library import db

api = db(sys.argv[-1]).new_api
for book in json.load(sys.stdin):
    made = Metadata(book["title"], [book["author"]])
    made.tags, made.rating, made.publisher, made.languages = book["tags"], book["rating"], book["publisher"], ["eng"]
    made.series, made.series_index = book["series"], book["index"]
    made.pubdate = datetime(book["year"], 3, 1, tzinfo=timezone.utc)
    api.set_cover({api.create_book_entry(made): generate_cover(made)})
api.close()
"""
SERVE = """
while rm -rf library config; cp -r first library
do
    CALIBRE_CONFIG_DIRECTORY="$PWD/config" calibre-server --port "$PORT" --listen-on 127.0.0.1 \
        --enable-local-write --disable-use-bonjour library & echo $! > pid; wait
done
"""
"""Begins with the first data each time; so a reset only ends the server."""


def install(home: Path) -> None:
    programs.debian_packages("calibre", program="calibre-server")
    if not (home / "first" / "metadata.db").exists():
        shutil.rmtree(home / "first", ignore_errors=True)
        books = json.dumps(_books())
        programs.ran(
            ["calibre-debug", "-c", FILL, "--", str(home / "new")],
            given=books,
            CALIBRE_CONFIG_DIRECTORY=str(home / "config"),
            QT_QPA_PLATFORM="offscreen",
        )
        (home / "new").rename(home / "first")


def _books() -> list[dict[str, Any]]:
    drawn = random.Random(11)
    named = [
        (name, index, title, author)
        for name, (author, *titles) in SERIES.items()
        for index, title in enumerate(titles, 1)
    ]
    alone = [
        (None, 1, f"The {noun} {end}", drawn.choice(AUTHORS))
        for noun in NOUNS
        for end in ("Keeper", "at Dawn", "of Sand")
    ]
    books = [
        {
            "title": title,
            "author": author,
            "series": series,
            "index": index,
            "tags": sorted(
                drawn.sample(TAGS[:-1], drawn.randint(1, 3)) + ([TAGS[-1]] if drawn.random() < 0.15 else [])
            ),
            "rating": drawn.randint(2, 5) * 2,
            "publisher": drawn.choice(("Quay Press", "Northfield", "Amber & Sons")),
            "year": drawn.randint(1998, 2025),
        }
        for series, index, title, author in named + alone
    ]
    for book in books:
        if (book["title"], book["author"]) == (GOAL.inputs["title"], GOAL.inputs["author"]):
            book["tags"] = ["Fiction", "Travel"]
    drawn.shuffle(books)
    return books


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    serving = [programs.started(["sh", "-c", SERVE], home / "log.txt", home, PORT=str(port))]
    try:
        programs.until_it_answers(f"http://127.0.0.1:{port}/ajax/search")
    except BaseException:
        programs.ended(serving)
        raise
    return serving


def reset(home: Path, port: int) -> None:
    url, pid = f"http://127.0.0.1:{port}/ajax/search", home / "pid"
    programs.until_it_answers(url, 60)
    old = pid.read_text()
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(old), signal.SIGKILL)
    while pid.read_text() in ("", old):
        time.sleep(0.1)
    programs.until_it_answers(url)


def state(home: Path, port: int) -> Json:
    database = home / "library" / "metadata.db"
    parts = {
        "authors": "SELECT book, name FROM books_authors_link JOIN authors ON authors.id = author",
        "tags": "SELECT book, name FROM books_tags_link JOIN tags ON tags.id = tag",
        "series": "SELECT book, name FROM books_series_link JOIN series ON series.id = series",
        "rating": "SELECT book, ratings.rating AS name FROM books_ratings_link JOIN ratings ON ratings.id = books_ratings_link.rating",
        "publisher": "SELECT book, name FROM books_publishers_link JOIN publishers ON publishers.id = publisher",
        "languages": "SELECT book, books_languages_link.lang_code AS name FROM books_languages_link",
        "comments": "SELECT book, text AS name FROM comments",
        "formats": "SELECT book, format AS name FROM data",
    }
    books = programs.rows(
        database, "SELECT id, title, sort, author_sort, series_index, pubdate, has_cover FROM books ORDER BY id"
    )
    by_id = {book["id"]: book for book in books}
    for part, query in parts.items():
        for book in books:
            book[part] = []
        for row in programs.rows(database, query):
            insort(by_id[row["book"]][part], row["name"])
    return {"books": books}


def judged(before: Json, after: Json, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    wanted: list[dict[str, Any]] = []
    said: dict[str, Any] | None = None
    for book in before["books"]:
        right = book["title"] == inputs["title"] and book["authors"] == [inputs["author"]]
        said = book if right else said
        wanted.append({**book, "tags": sorted({*book["tags"], inputs["tag"]})} if right else book)
    now = {book["id"]: book for book in after["books"]}
    for book in wanted:
        other = now.pop(book["id"], None)
        if other != book:
            yield f"{book['title']} by {book['authors']} is not as it should be: {other}"
    if now:
        yield f"there are {len(now)} more books"
    texts = programs.texts(output)
    if said and said["series"]:
        if not any(said["series"][0] in each for each in texts):
            yield f"the output does not hold the series {said['series'][0]}"
        number = int(said["series_index"])
        either = rf"(?<![\d.]){number}(\.0+)?(?!\d|\.\d)|\b{ROMAN[number]}\b"
        if not any(re.search(either, each) for each in texts):
            yield f"the output does not hold the number {number}"
