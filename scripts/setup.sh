#!/bin/sh
# Makes .venv: the packages of requirements.lock, pages for tests
# (tests/miniwob.lock), and RunOps itself as an editable install. Ends at once
# if .venv was made for the current locks, project file and path of the
# checkout.
#
# PYTHON names the interpreter; by default the first suitable one on PATH.
set -eu
cd "$(dirname "$0")/.."

# Written last, so that an interrupted setup starts over.
stamp=.venv/.runops-setup

# A virtual environment contains its absolute path: if moved or copied, its
# commands would run the old one.
place() {
    pwd -P
}

state() {
    place
    cksum requirements.lock tests/miniwob.lock pyproject.toml
}

usable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

can_make_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# Version managers leave names on PATH that only print an error, so each
# candidate is run.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3.14 python3.13 python3.12 python3.11 python3
    fi
    incomplete=
    for name; do
        usable "$name" || continue
        if can_make_venv "$name"; then
            echo "$name"
            return
        fi
        incomplete=$name
    done
    if [ -n "$incomplete" ]; then
        echo "setup: $incomplete cannot make a virtual environment: it has no ensurepip" >&2
        echo "  on Debian and Ubuntu:  sudo apt install python3-venv" >&2
    else
        echo "setup: found no Python 3.11 or later as $*" >&2
        echo "  install one, or name yours:  make setup PYTHON=/path/to/python3" >&2
    fi
    return 3
}

if [ -f "$stamp" ] && usable .venv/bin/python; then
    if [ "$(cat "$stamp")" = "$(state)" ]; then
        exit 0
    fi
    [ "$(head -n 1 "$stamp")" = "$(place)" ] && keep=yes || keep=no
else
    keep=no
fi

if [ "$keep" = no ]; then
    python=$(find_python)
    echo "setup: making .venv with $("$python" --version)" >&2
    "$python" -m venv --clear .venv
fi
rm -f "$stamp"

echo "setup: installing the packages of requirements.lock" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
# Only its pages are used, so its dependencies are not needed.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r tests/miniwob.lock
# Without isolation and dependencies nothing outside the lock is fetched.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
state >"$stamp"
