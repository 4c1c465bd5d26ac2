#!/bin/sh
# Installs Chromium's headless shell if that is one command: tests start it
# instead of the whole browser, and a short run costs half. Without it tests
# use the browser that a run finds.
set -eu

command -v chromium-headless-shell >/dev/null && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0
# Not every system with apt-get has the package.
DEBIAN_FRONTEND=noninteractive apt-get install -y -q chromium-headless-shell >&2 || true
