#!/bin/sh
# Installs the packages that an installation of Assay needs into the working directory, for the processor `x64` or
# `arm64`, without running anything of that platform, and lists them in sbom.cdx.json. The working directory has only
# the files that determine node_modules: package.json, package-lock.json and .npmrc. The Dockerfile and
# `npm run release` use it.
set -eu
cpu=$1
npm ci --os=linux --libc=glibc --cpu="$cpu" --omit=dev --workspace=packages/server --include-workspace-root
rm -rf node_modules/node-linux-*/include node_modules/node-linux-*/share
# Packages that contain several platforms keep only this one.
find node_modules/onnxruntime-node/bin -mindepth 3 -maxdepth 3 -type d ! -path "*/linux/$cpu" -exec rm -rf {} +
find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.cts' -o -name '*.d.mts' \) -delete

# npm compares the tree with what package.json asks for, so the parts that were not installed are taken out of it first.
cp package.json package.json.whole
cp packages/server/package.json packages/server/package.json.whole
npm pkg delete devDependencies
npm pkg delete devDependencies --workspace=packages/server
npm pkg set --json 'workspaces=["packages/contract","packages/server"]'
npm sbom --sbom-format=cyclonedx >sbom.cdx.json
mv package.json.whole package.json
mv packages/server/package.json.whole packages/server/package.json
