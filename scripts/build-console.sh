#!/bin/sh
# Builds the console unless nothing is newer than the last build. Starting Node to find that out would take longer.
cd "$(dirname "$0")/../packages" || exit
stamp=console/dist/.built-from
newer() {
  find console/src console/public console/index.html console/vite.config.ts contract/src \
    ../docs/test-images -newer "$stamp" -print -quit
}
[ -f "$stamp" ] && [ -z "$(newer)" ] && exit 0
exec node ../scripts/build-console.ts
