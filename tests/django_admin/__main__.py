"""`python -m tests.django_admin FOLDER PASSWORD`: the admin on a free port of loopback, until standard input closes.

Its first line on standard output is its address. Everything it keeps lies in FOLDER: `db.sqlite3`, and uploads in `media`.
A folder that was used before continues with its data.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import django
from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler


def configure(folder: Path) -> None:
    """Django's settings: what `startproject` writes, and what differs from it here."""
    settings.configure(
        # As in production. The pages are the same in debug mode, only errors are not.
        DEBUG=False,
        SECRET_KEY="made up for tests",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF="tests.django_admin.urls",
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "django.contrib.staticfiles",
            "tests.django_admin.apps.Billing",
        ],
        MIDDLEWARE=[
            "django.middleware.security.SecurityMiddleware",
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
            "django.middleware.clickjacking.XFrameOptionsMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": folder / "db.sqlite3",
                "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
            }
        },
        # The real ones take half a second of a processor for each password, on purpose.
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        TIME_ZONE="UTC",
        USE_THOUSAND_SEPARATOR=True,
        STATIC_URL="/static/",
        MEDIA_ROOT=folder / "media",
        MEDIA_URL="/media/",
    )


def main() -> None:
    """Make the database where there is none, then serve."""
    folder, password = Path(sys.argv[1]).absolute(), sys.argv[2]
    new = not (folder / "db.sqlite3").exists()
    configure(folder)
    django.setup()
    if new:
        from tests.django_admin import seed

        call_command("migrate", run_syncdb=True, verbosity=0)
        seed.fill(password)
    server = ThreadedWSGIServer(("127.0.0.1", 0), WSGIRequestHandler)
    # Django's type for it takes its asynchronous handler in, too.
    server.set_app(StaticFilesHandler(WSGIHandler()))  # pyright: ignore[reportArgumentType]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    # Whoever started it holds the other end: it ends also when they are killed.
    while os.read(0, 4096):
        pass


if __name__ == "__main__":
    main()
