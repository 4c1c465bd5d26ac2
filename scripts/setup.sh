#!/bin/sh
# Makes .venv with exactly what requirements.lock names, and RunOps itself in
# editable form. Does nothing when .venv already stands for the present lock,
# project file, and place of the checkout.
set -eu
cd "$(dirname "$0")/.."

stamp=.venv/.runops-setup

# A virtual environment holds absolute paths, hence the place in the state.
state() {
    pwd -P
    cksum requirements.lock pyproject.toml
}

usable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

can_make_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# A name on PATH proves little: version managers leave names there that only
# print an error. So each candidate is run.
find_python() {
    seen=
    for name in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        if usable "$name"; then
            if can_make_venv "$name"; then
                echo "$name"
                return
            fi
            seen=$name
        fi
    done
    if [ -n "$seen" ]; then
        echo "setup: $seen has no venv module" >&2
        echo "  On Debian and Ubuntu:  sudo apt install python3-venv" >&2
    else
        echo "setup: no Python 3.11 or later among: ${PYTHON:-python3.13 python3.12 python3.11 python3}" >&2
        echo "  Install one, or name yours:  make setup PYTHON=/path/to/python3" >&2
    fi
    return 3
}

if [ -f "$stamp" ] && usable .venv/bin/python && [ "$(cat "$stamp")" = "$(state)" ]; then
    exit 0
fi

rm -f "$stamp"
if ! { [ -x .venv/bin/pip ] && usable .venv/bin/python && .venv/bin/pip --version >/dev/null 2>&1; }; then
    python=$(find_python)
    echo "setup: .venv with $("$python" --version 2>&1)" >&2
    "$python" -m venv --clear .venv
fi

echo "setup: the packages of requirements.lock" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
state >"$stamp"
