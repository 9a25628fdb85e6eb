#!/usr/bin/env bash
# Chromium and its driver, from Debian's packages unless they are there; fails if there is no way.
set -euo pipefail
has_both() { command -v chromium >/dev/null && command -v chromedriver >/dev/null; }
has_both && exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get install --yes --no-install-recommends chromium chromium-driver >/dev/null 2>&1 ||
        { apt-get update >/dev/null 2>&1 &&
            apt-get install --yes --no-install-recommends chromium chromium-driver >/dev/null 2>&1; } ||
        true
fi
has_both || {
    echo "Chromium and chromedriver are needed: apt-get install chromium chromium-driver" >&2
    exit 1
}
