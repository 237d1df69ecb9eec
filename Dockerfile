# One image for all roles, for amd64 and arm64: Node, PostgreSQL, ClamAV, libyara, the models and the console. A start
# installs and converts nothing; it downloads only ClamAV's signatures. See docs/packaging.md.
# A tag can move, a digest cannot: `docker buildx imagetools inspect` prints that of a newer version.
ARG DEBIAN=debian:12.15-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171
ARG NODE=node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

# This stage keeps only the files that determine node_modules, so that a change of code does not reinstall packages.
FROM --platform=${BUILDPLATFORM} ${DEBIAN} AS manifests
WORKDIR /all
COPY . .
RUN find . -type f ! -name package.json ! -name package-lock.json ! -name .npmrc -delete

# The stages that run npm use the platform of the build machine, without emulation, whatever the target is.
FROM --platform=${BUILDPLATFORM} ${NODE} AS npm
WORKDIR /opt/assay
COPY --from=manifests /all/ ./

# The packages of the image and their list, for the target platform, without development dependencies.
FROM npm AS modules
ARG TARGETARCH
COPY packaging/install-modules.sh /usr/local/bin/
RUN install-modules.sh "$(echo "${TARGETARCH:-$(uname -m)}" | sed 's/amd64/x64/; s/x86_64/x64/; s/aarch64/arm64/')"

# The models and the console are the same bytes on each architecture.
FROM npm AS built
RUN npm ci
COPY tsconfig.json ./
COPY docs/test-images/ docs/test-images/
COPY packages/ packages/
COPY scripts/ scripts/
# fp32 adds 107 MB: docker build --build-arg PRECISIONS="int8 uint8 fp32"
ARG PRECISIONS="int8 uint8"
RUN npm run build:console \
  && npm run models \
  && mkdir /models \
  && for precision in ${PRECISIONS}; do cp packages/server/models/built/*."$precision".onnx /models/; done \
  && cp node_modules/nsfwjs/LICENSE /models/LICENSE

FROM ${DEBIAN} AS assay
RUN apt-get update \
  && apt-get upgrade -y \
  && apt-get install -y --no-install-recommends ca-certificates clamav-daemon clamav-freshclam libyara9 tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* \
  && useradd --system --uid 10001 --user-group --no-create-home --home-dir /var/lib/assay --shell /usr/sbin/nologin assay \
  && install -d -o assay -g assay -m 0711 /var/lib/assay
WORKDIR /opt/assay
COPY --from=modules /opt/assay/ ./
COPY LICENSE NOTICE ./
COPY packages/contract/ packages/contract/
COPY packages/server/ packages/server/
COPY --from=built /models/ packages/server/models/built/
COPY --from=built /opt/assay/packages/console/dist/ packages/console/dist/
COPY --chmod=0755 packaging/assay packaging/assay
RUN ln -s /opt/assay/packaging/assay /usr/local/bin/assay \
  && ln -s /opt/assay/node_modules/.bin/node /usr/local/bin/node \
  && assay --version

ENV NODE_ENV=production \
  ASSAY_HOST=0.0.0.0 \
  ASSAY_DATA_DIR=/var/lib/assay \
  ASSAY_CLAMAV_INSTALL=never
USER 10001:10001
VOLUME /var/lib/assay
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --retries=3 CMD ["assay", "health"]
# PID 1 must reap the orphaned processes of the engines, which Node does not do.
ENTRYPOINT ["tini", "--", "assay"]
CMD ["serve"]
