import { blobsPlace } from './blobs-reader.ts'
import { knob } from './knob.ts'

import { limitKnobs } from './limit-knobs.ts'

import {
  clamdAddress,
  credential,
  duration,
  httpOrigin,
  httpUrl,
  key256,
  listenAddress,
  listOf,
  network,
  oneOf,
  port,
  postgresUrl,
  proxyUrl,
  regionName,
  roles,
  text,
  wholeNumber,
} from './readers.ts'

/** Every setting there is. Documentation, `assay config` and the reading itself are made from these rows. */
export const knobs = {
  host: knob({ env: 'ASSAY_HOST', read: text, fallback: '127.0.0.1', about: 'Address to listen on.' }),
  port: knob({ env: 'ASSAY_PORT', read: port, fallback: '8080', about: 'Port to listen on; 0 picks a free one.' }),
  dataDir: knob({
    env: 'ASSAY_DATA_DIR',
    read: text,
    fallback: './data',
    about: 'Where everything that must survive lives.',
  }),
  roles: knob({
    env: 'ASSAY_ROLES',
    read: roles,
    fallback: 'api,worker',
    about: 'What this node does: answer requests (api), scan and deliver (worker), or both.',
  }),
  databaseUrl: knob({
    env: 'ASSAY_DATABASE_URL',
    read: postgresUrl,
    secret: true,
    about: 'PostgreSQL 15 or newer. Unset: Assay runs its own under the data directory.',
  }),
  databaseConnections: knob({
    env: 'ASSAY_DATABASE_CONNECTIONS',
    read: wholeNumber(2, 200),
    fallback: '8',
    about: 'Connections to PostgreSQL that this process may hold.',
  }),
  blobs: knob({
    env: 'ASSAY_BLOBS',
    read: blobsPlace,
    fallback: 'disk',
    about: 'Where content of background jobs lies: disk, or s3://bucket/prefix?endpoint=https://host:9000&region=name.',
  }),
  s3AccessKey: knob({
    env: 'ASSAY_S3_ACCESS_KEY',
    read: text,
    secret: true,
    about: 'Access key for S3. Unset: taken from the environment, profile or instance, as other programs for AWS do.',
  }),
  s3SecretKey: knob({
    env: 'ASSAY_S3_SECRET_KEY',
    read: text,
    secret: true,
    about: 'Secret key that belongs to the access key.',
  }),
  region: knob({
    env: 'ASSAY_REGION',
    read: regionName,
    fallback: 'local',
    about: 'Name of this region, stamped on answers, scans, logs and metrics.',
  }),
  publicUrl: knob({
    env: 'ASSAY_PUBLIC_URL',
    read: httpOrigin,
    about: 'Origin that clients use, behind a proxy. Unset: taken from the Host header of each request.',
  }),
  tlsCert: knob({
    env: 'ASSAY_TLS_CERT',
    read: text,
    about: 'PEM file with the certificate chain; HTTPS when set. Read again when it changes.',
  }),
  tlsKey: knob({ env: 'ASSAY_TLS_KEY', read: text, about: 'PEM file with the private key of the certificate.' }),
  metricsPort: knob({
    env: 'ASSAY_METRICS_PORT',
    read: port,
    about: 'Port for Prometheus. Unset: ASSAY_PORT + 1000.',
  }),
  metricsHost: knob({
    env: 'ASSAY_METRICS_HOST',
    read: text,
    fallback: '127.0.0.1',
    about: 'Address to listen on for Prometheus. What is there is for operators, not for callers.',
  }),
  creditGate: knob({
    env: 'ASSAY_CREDIT_GATE',
    read: oneOf('all', 'scans'),
    fallback: 'all',
    about: 'What an account without credits is refused: all requests, or scans alone.',
  }),
  corsOrigins: knob({
    env: 'ASSAY_CORS_ORIGINS',
    read: listOf(httpOrigin),
    fallback: '',
    about: 'Browser origins that may call the interface, separated by commas. Empty: none.',
  }),
  outboundAllow: knob({
    env: 'ASSAY_OUTBOUND_ALLOW',
    read: listOf(network),
    fallback: '',
    about: 'Networks that are not public but may be called all the same, such as 10.1.0.0/16.',
  }),
  outboundProxy: knob({
    env: 'ASSAY_OUTBOUND_PROXY',
    read: proxyUrl,
    secret: true,
    about: 'HTTP proxy that downloads and webhooks go through, http://host:port. Addresses are still checked here.',
  }),
  webhookRetries: knob({
    env: 'ASSAY_WEBHOOK_RETRIES',
    read: listOf(duration),
    fallback: '5s,5m,30m,2h,5h,10h,10h',
    about: 'Pauses before a webhook is tried again, separated by commas; after the last one it is given up.',
  }),
  clamd: knob({
    env: 'ASSAY_CLAMD',
    read: clamdAddress,
    about: 'Socket or host:port of a clamd that you run. Unset: Assay runs its own.',
  }),
  clamavInstall: knob({
    env: 'ASSAY_CLAMAV_INSTALL',
    read: oneOf('auto', 'never'),
    fallback: 'auto',
    about: 'Whether ClamAV is installed from the distribution when it is missing and we may.',
  }),
  scratch: knob({
    env: 'ASSAY_SCRATCH',
    read: oneOf('memory', 'disk'),
    fallback: 'memory',
    about: 'Where ClamAV may unpack content in clear. `disk` accepts a disk where there is no file system in memory.',
  }),
  scratchMegabytes: knob({
    env: 'ASSAY_SCRATCH_MB',
    read: wholeNumber(64, 1_000_000),
    fallback: '2048',
    about: 'Memory that ClamAV may use for unpacking. A scan that needs more fails, uncharged.',
  }),
  signatureHours: knob({
    env: 'ASSAY_SIGNATURE_HOURS',
    read: wholeNumber(0, 168),
    fallback: '4',
    about: 'Hours between updates of the signatures from the mirror; 0 never asks.',
  }),
  signatureMirror: knob({
    env: 'ASSAY_SIGNATURE_MIRROR',
    read: text,
    fallback: 'database.clamav.net',
    about: "Mirror of ClamAV's signatures.",
  }),
  signatureUrls: knob({
    env: 'ASSAY_SIGNATURE_URLS',
    read: listOf(httpUrl),
    fallback: '',
    about: 'Signature files to fetch as well, separated by commas.',
  }),
  yaraRules: knob({
    env: 'ASSAY_YARA_RULES',
    read: text,
    about: 'Directory of your YARA rules. Unset: signatures/yara in the data directory.',
  }),
  encryptedContent: knob({
    env: 'ASSAY_ENCRYPTED_CONTENT',
    read: oneOf('error', 'threat'),
    fallback: 'error',
    about: 'The verdict on content that is encrypted and cannot be looked at.',
  }),
  nsfwProfile: knob({
    env: 'ASSAY_NSFW_PROFILE',
    read: oneOf('fast', 'balanced', 'thorough', 'off'),
    fallback: 'balanced',
    about: 'Models that look at a picture: one; a second one when the first suspects something; always both; none.',
  }),
  nsfwPrecision: knob({
    env: 'ASSAY_NSFW_PRECISION',
    read: oneOf('int8', 'fp32'),
    fallback: 'int8',
    about: 'Arithmetic of the models: int8 is faster and takes less memory, fp32 is the original.',
  }),
  nsfwThreshold: knob({
    env: 'ASSAY_NSFW_THRESHOLD',
    read: oneOf('strict', 'default', 'lenient'),
    fallback: 'default',
    about: 'How sure the models must be that a picture is not clean before it is a threat.',
  }),
  nsfwProcesses: knob({
    env: 'ASSAY_NSFW_PROCESSES',
    read: wholeNumber(1, 256),
    about: 'Pictures to look at at once, in a process each. Unset: one for each processor core.',
  }),
  nsfwTestImages: knob({
    env: 'ASSAY_NSFW_TEST_IMAGES',
    read: oneOf('on', 'off'),
    fallback: 'on',
    about: 'Whether the test images in docs/test-images get the verdict they stand for.',
  }),
  modelDir: knob({
    env: 'ASSAY_MODEL_DIR',
    read: text,
    about: 'Directory of the models. Unset: that of the installation, or models in the data directory.',
  }),
  clamdListen: knob({
    env: 'ASSAY_CLAMD_LISTEN',
    read: listenAddress,
    about: 'Port, or address:port, for clients that speak the protocol of clamd. Unset: closed.',
  }),
  clamdListenKey: knob({
    env: 'ASSAY_CLAMD_LISTEN_KEY',
    read: credential,
    secret: true,
    about: 'API key of the account that pays for scans through ASSAY_CLAMD_LISTEN.',
  }),
  icapListen: knob({
    env: 'ASSAY_ICAP_LISTEN',
    read: listenAddress,
    about: 'Port, or address:port, for proxies that speak ICAP. Unset: closed.',
  }),
  icapKey: knob({
    env: 'ASSAY_ICAP_KEY',
    read: credential,
    secret: true,
    about: 'API key of the account that pays for scans through ASSAY_ICAP_LISTEN.',
  }),
  icapOnError: knob({
    env: 'ASSAY_ICAP_ON_ERROR',
    read: oneOf('block', 'allow'),
    fallback: 'block',
    about: 'What ICAP does with content that cannot be scanned, such as an encrypted archive.',
  }),
  verdictCache: knob({
    env: 'ASSAY_VERDICT_CACHE',
    read: wholeNumber(0, 10_000_000),
    fallback: '50000',
    about: 'Verdicts to remember, so that the same content is not scanned twice; 0 scans always.',
  }),
  resultDays: knob({
    env: 'ASSAY_RESULT_DAYS',
    read: wholeNumber(1, 3650),
    fallback: '30',
    about: 'Days that results are kept.',
  }),
  ...limitKnobs,
  masterKey: knob({
    env: 'ASSAY_MASTER_KEY',
    read: key256,
    secret: true,
    about: 'Key that protects stored content, 64 hex digits. Unset: made on first start, in the data directory.',
  }),
  logLevel: knob({
    env: 'ASSAY_LOG_LEVEL',
    read: oneOf('debug', 'info', 'warn', 'error', 'silent'),
    fallback: 'info',
    about: 'Least serious log line to write. Each request writes one at info.',
  }),
  drainSeconds: knob({
    env: 'ASSAY_DRAIN_SECONDS',
    read: wholeNumber(0, 3600),
    fallback: '30',
    about: 'How long running requests may take to finish after a stop is asked for.',
  }),
  adminToken: knob({
    env: 'ASSAY_ADMIN_TOKEN',
    read: credential,
    secret: true,
    about: 'Token with which scripts use /admin/v1 as an operator. Unset: sessions of the console alone.',
  }),
  drainDelaySeconds: knob({
    env: 'ASSAY_DRAIN_DELAY_SECONDS',
    read: wholeNumber(0, 300),
    fallback: '0',
    about:
      'How long requests are still taken after /readyz turned red. Behind a balancer: longer than it takes to notice.',
  }),
  bootstrapKey: knob({
    env: 'ASSAY_BOOTSTRAP_KEY',
    read: credential,
    secret: true,
    about: 'API key of the first account, on first start. Unset: one is made and shown once.',
  }),
  bootstrapWebhookSecret: knob({
    env: 'ASSAY_BOOTSTRAP_WEBHOOK_SECRET',
    read: credential,
    secret: true,
    about: 'Webhook secret of the first account, on first start. Unset: one is made and shown once.',
  }),
}

export type KnobName = keyof typeof knobs
