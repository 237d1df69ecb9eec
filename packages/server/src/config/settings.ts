import {
  blobsPlace,
  clamdAddress,
  credential,
  duration,
  httpOrigin,
  httpUrl,
  key256,
  listOf,
  maxAge,
  modelName,
  network,
  oneOf,
  operatorToken,
  port,
  postgresUrl,
  proxyUrl,
  regionName,
  roles,
  smtpUrl,
  text,
  wholeNumber,
} from './readers.ts'
import { listenAddress, setting, verdictPolicy } from './setting.ts'
import { ssoSettings } from './sso-settings.ts'

export type { SettingDefinition } from './setting.ts'

/** The table of all settings: `loadConfig`, `assay config`, the console and the documentation are made from it. */
export const settingDefinitions = {
  host: setting('ASSAY_HOST', text, { fallback: '127.0.0.1', about: 'Address that the HTTP server listens on.' }),
  port: setting('ASSAY_PORT', port, {
    fallback: '8080',
    about: 'Port that the HTTP server listens on. 0 selects a free port.',
  }),
  dataDir: setting('ASSAY_DATA_DIR', text, {
    fallback: './data',
    about: 'Directory for all data that must survive a restart.',
  }),
  roles: setting('ASSAY_ROLES', roles, {
    fallback: 'api,worker',
    about: 'Roles of this node: api answers requests, worker scans and delivers webhooks.',
  }),
  databaseUrl: setting('ASSAY_DATABASE_URL', postgresUrl, {
    secret: true,
    about: 'URL of a PostgreSQL 15 or newer, one host or several. Unset: Assay runs its own in the data directory.',
  }),
  databaseDirectUrl: setting('ASSAY_DATABASE_DIRECT_URL', postgresUrl, {
    secret: true,
    about: 'URL of the same database without its pooler, for LISTEN, locks, migrations and commands.',
  }),
  databaseConnections: setting('ASSAY_DATABASE_CONNECTIONS', wholeNumber(2, 200), {
    fallback: '8',
    about: 'Maximum number of pooled PostgreSQL connections of this process.',
  }),
  blobs: setting('ASSAY_BLOBS', blobsPlace, {
    fallback: 'disk',
    about:
      'Store for the content of background jobs: disk, or s3://bucket/prefix?endpoint=https://host:9000&region=name.',
  }),
  s3AccessKey: setting('ASSAY_S3_ACCESS_KEY', text, {
    secret: true,
    about: 'Access key for S3. Unset: the AWS default credentials of the environment, profile, container or instance.',
  }),
  s3SecretKey: setting('ASSAY_S3_SECRET_KEY', text, {
    secret: true,
    about: 'Secret key that belongs to ASSAY_S3_ACCESS_KEY.',
  }),
  region: setting('ASSAY_REGION', regionName, {
    fallback: 'local',
    about: 'Name of this region, included in responses, scans, logs and metrics.',
  }),
  publicUrl: setting('ASSAY_PUBLIC_URL', httpOrigin, {
    about: 'Origin that clients use when the service is behind a proxy. Unset: the Host header of each request.',
  }),
  trustedProxies: setting('ASSAY_TRUSTED_PROXIES', listOf(network), {
    fallback: '',
    about: 'Networks of proxies whose X-Forwarded-For and X-Forwarded-Proto count, such as 10.0.0.0/8. Empty: none.',
  }),
  tlsCert: setting('ASSAY_TLS_CERT', text, {
    about: 'PEM file with the certificate chain. Enables HTTPS. Reloaded when it changes.',
  }),
  tlsKey: setting('ASSAY_TLS_KEY', text, { about: 'PEM file with the private key of the certificate.' }),
  metricsPort: setting('ASSAY_METRICS_PORT', port, { about: 'Port for Prometheus metrics. Unset: ASSAY_PORT + 1000.' }),
  metricsHost: setting('ASSAY_METRICS_HOST', text, {
    fallback: '127.0.0.1',
    about: 'Address that the metrics server listens on. It requires no authentication.',
  }),
  creditGate: setting('ASSAY_CREDIT_GATE', oneOf('all', 'scans'), {
    fallback: 'all',
    about: 'Requests rejected for an account without credits: all requests, or only scans.',
  }),
  corsOrigins: setting('ASSAY_CORS_ORIGINS', listOf(httpOrigin), {
    fallback: '',
    about: 'Browser origins that may call the interface, separated by commas. Empty: none.',
  }),
  outboundAllow: setting('ASSAY_OUTBOUND_ALLOW', listOf(network), {
    fallback: '',
    about: 'Networks that downloads and webhooks may reach although they are not public, such as 10.1.0.0/16.',
  }),
  outboundProxy: setting('ASSAY_OUTBOUND_PROXY', proxyUrl, {
    secret: true,
    about: 'HTTP proxy for downloads and webhooks, http://host:port. Assay still checks the addresses itself.',
  }),
  webhookRetries: setting('ASSAY_WEBHOOK_RETRIES', listOf(duration), {
    fallback: '5s,5m,30m,2h,5h,10h,10h',
    about: 'Pauses before the further attempts to deliver a webhook, separated by commas.',
  }),
  smtpUrl: setting('ASSAY_SMTP_URL', smtpUrl, {
    secret: true,
    about: 'Mail server for alerts, smtp://user:password@host:587 or smtps://host. Unset: no alerts by email.',
  }),
  smtpFrom: setting('ASSAY_SMTP_FROM', text, {
    fallback: 'assay@localhost',
    about: 'Sender of alerts by email.',
  }),
  testWebhooks: setting('ASSAY_WEBHOOK_TEST_LIMIT', wholeNumber(0, 1_000_000), {
    fallback: '1000',
    about: 'Maximum number of webhooks that the test keys of an account may cause on one day (UTC).',
  }),
  clamd: setting('ASSAY_CLAMD', clamdAddress, {
    about: 'Socket path or host:port of a clamd that you run. Unset: Assay runs its own.',
  }),
  clamavInstall: setting('ASSAY_CLAMAV_INSTALL', oneOf('auto', 'never'), {
    fallback: 'auto',
    about: 'Whether Assay installs a missing ClamAV from the distribution when it has the permission.',
  }),
  sandbox: setting('ASSAY_SANDBOX', oneOf('auto', 'required'), {
    fallback: 'auto',
    about:
      'Whether Assay starts on a kernel that lacks a part of the sandbox of the engines (auto), or not (required).',
  }),
  scratch: setting('ASSAY_SCRATCH', oneOf('memory', 'disk'), {
    fallback: 'memory',
    about: 'Where ClamAV may unpack content unencrypted. disk permits a disk if there is no file system in memory.',
  }),
  scratchMegabytes: setting('ASSAY_SCRATCH_MB', wholeNumber(64, 1_000_000), {
    fallback: '2048',
    about: 'Maximum memory for unpacking by ClamAV, in MB. Content that needs more ends in Error:ScanLimitExceeded.',
  }),
  signatureHours: setting('ASSAY_SIGNATURE_HOURS', wholeNumber(0, 168), {
    fallback: '4',
    about: 'Hours between signature updates from the mirror. 0 disables updates.',
  }),
  signatureMirror: setting('ASSAY_SIGNATURE_MIRROR', text, {
    fallback: 'database.clamav.net',
    about: 'Mirror for ClamAV signatures.',
  }),
  signatureUrls: setting('ASSAY_SIGNATURE_URLS', listOf(httpUrl), {
    fallback: '',
    about: 'URLs of additional signature files to download, separated by commas.',
  }),
  knownGoodDir: setting('ASSAY_KNOWN_GOOD_DIR', text, {
    about: 'Directory of files that are known to be good: signatures of a source that match one are held back.',
  }),
  signatureMaxAge: setting('ASSAY_SIGNATURE_MAX_AGE', maxAge, {
    fallback: '7d',
    about: "Age at which ClamAV's official databases are too old. off: neither age nor presence is checked.",
  }),
  whenDegraded: setting('ASSAY_WHEN_DEGRADED', oneOf('flag', 'refuse'), {
    fallback: 'flag',
    about: 'Malware scans while ClamAV or its databases are missing or old: flag the results, or refuse with 503.',
  }),
  yaraRules: setting('ASSAY_YARA_RULES', text, {
    about: 'Directory of YARA rules for this node. Unset: signatures/yara in the data directory.',
  }),
  encryptedContent: setting('ASSAY_ENCRYPTED_CONTENT', oneOf('error', 'threat'), {
    fallback: 'error',
    about: 'Verdict for encrypted content, which cannot be scanned.',
  }),
  verdictPolicy: setting('ASSAY_VERDICT_POLICY', verdictPolicy, {
    fallback: 'any',
    about: 'Findings that make content a threat: any, or quorum and a number of engines such as quorum 2.',
  }),
  nsfwProfile: setting('ASSAY_NSFW_PROFILE', oneOf('fast', 'balanced', 'thorough', 'off'), {
    fallback: 'balanced',
    about: 'Image models: one (fast), a second one for suspicious images (balanced), both (thorough) or none (off).',
  }),
  nsfwPrecision: setting('ASSAY_NSFW_PRECISION', oneOf('int8', 'fp32'), {
    fallback: 'int8',
    about: 'Arithmetic of the models: int8 is faster and needs less memory, fp32 is the original.',
  }),
  nsfwThreshold: setting('ASSAY_NSFW_THRESHOLD', oneOf('strict', 'default', 'lenient'), {
    fallback: 'default',
    about: 'Score from which an image is a threat: 0.5 (strict), 0.7 (default) or 0.85 (lenient).',
  }),
  nsfwProcesses: setting('ASSAY_NSFW_PROCESSES', wholeNumber(1, 256), {
    about: 'Number of images scanned at the same time, each in a process of its own. Unset: one per processor core.',
  }),
  nsfwTestImages: setting('ASSAY_NSFW_TEST_IMAGES', oneOf('on', 'off'), {
    fallback: 'on',
    about: 'Whether the test images in docs/test-images get their predefined verdicts.',
  }),
  nsfwFirstModel: setting('ASSAY_NSFW_FIRST_MODEL', modelName, {
    fallback: 'mobilenet-v2-mid',
    about: 'Model that scores every image: mobilenet-v2-mid, inception-v3, or one that you added with models add.',
  }),
  nsfwSecondModel: setting('ASSAY_NSFW_SECOND_MODEL', modelName, {
    fallback: 'inception-v3',
    about: 'Model for the second opinion of the profiles balanced and thorough; names as above.',
  }),
  nsfwModelMemoryMb: setting('ASSAY_NSFW_MODEL_MEMORY_MB', wholeNumber(512, 65_536), {
    fallback: '2048',
    about: 'Memory that an image process may use, in MB, while one of its models is your own. Otherwise 640.',
  }),
  modelDir: setting('ASSAY_MODEL_DIR', text, {
    about: 'Directory of the models. Unset: the one of the installation, or models in the data directory.',
  }),
  clamdListen: setting('ASSAY_CLAMD_LISTEN', listenAddress, {
    about: 'Port, tcp://address:port or unix:/path of the listener for clamd clients. Unset: no listener.',
  }),
  clamdListenKey: setting('ASSAY_CLAMD_LISTEN_KEY', credential, {
    secret: true,
    about: 'API key of the account that is charged for scans through ASSAY_CLAMD_LISTEN.',
  }),
  clamdListenOnFailure: setting('ASSAY_CLAMD_LISTEN_ON_FAILURE', oneOf('error', 'found'), {
    fallback: 'error',
    about: 'Whether clamd clients get ERROR or FOUND when an engine failed or the service refused the scan.',
  }),
  icapListen: setting('ASSAY_ICAP_LISTEN', listenAddress, {
    about: 'Port, tcp://address:port or unix:/path of the ICAP listener for proxies. Unset: no listener.',
  }),
  icapKey: setting('ASSAY_ICAP_KEY', credential, {
    secret: true,
    about: 'API key of the account that is charged for scans through ASSAY_ICAP_LISTEN.',
  }),
  icapOnError: setting('ASSAY_ICAP_ON_ERROR', oneOf('block', 'allow'), {
    fallback: 'block',
    about: 'Whether the ICAP listener blocks or allows content that cannot be scanned, such as an encrypted archive.',
  }),
  icapTrickle: setting('ASSAY_ICAP_TRICKLE', oneOf('on', 'off'), {
    fallback: 'off',
    about: 'Whether the ICAP listener sends a byte of a download for every 32 KB before the verdict, as Squid 5 needs.',
  }),
  verdictCache: setting('ASSAY_VERDICT_CACHE', wholeNumber(0, 10_000_000), {
    fallback: '50000',
    about: 'Maximum number of cached verdicts, used when the same content is scanned again. 0 disables the cache.',
  }),
  resultDays: setting('ASSAY_RESULT_DAYS', wholeNumber(1, 3650), { fallback: '30', about: 'Days to keep results.' }),
  maxConnections: setting('ASSAY_MAX_CONNECTIONS', wholeNumber(1, 1_000_000), {
    fallback: '10000',
    about: 'Maximum number of client connections. More get 503. Reduced if the limit of open files requires it.',
  }),
  httpProcesses: setting('ASSAY_HTTP_PROCESSES', wholeNumber(1, 64), {
    about: 'Number of processes that serve HTTP. Unset: one for every four processor cores, at most four.',
  }),
  contentMemory: setting('ASSAY_CONTENT_MEMORY_MB', wholeNumber(1, 1_000_000), {
    about: 'Memory for content that is being scanned, in MB. Unset: an eighth of the memory, from 64 to 2048.',
  }),
  diskReserve: setting('ASSAY_DISK_RESERVE_MB', wholeNumber(0, 1_000_000_000), {
    fallback: '256',
    about: 'Free space to keep on the disk of the data directory, in MB. Content that would use it gets 503.',
  }),
  jobContent: setting('ASSAY_JOB_CONTENT_MB', wholeNumber(1, 1_000_000_000), {
    about: 'Maximum content of waiting background jobs, in MB. More gets 503. Unset: only the reserve limits it.',
  }),
  drainDelaySeconds: setting('ASSAY_DRAIN_DELAY_SECONDS', wholeNumber(0, 300), {
    fallback: '0',
    about: 'Seconds to accept requests after /readyz reports a stop. Exceed the check interval of your load balancer.',
  }),
  masterKey: setting('ASSAY_MASTER_KEY', key256, {
    secret: true,
    about: 'Key that encrypts stored content, 64 hex digits. Unset: created in the data directory on first start.',
  }),
  logLevel: setting('ASSAY_LOG_LEVEL', oneOf('debug', 'info', 'warn', 'error', 'silent'), {
    fallback: 'info',
    about: 'Minimum level of log lines.',
  }),
  logFormat: setting('ASSAY_LOG_FORMAT', oneOf('text', 'json'), {
    about: 'Format of log lines: text for people, json for programs. Unset: text on a terminal, else json.',
  }),
  logRequests: setting('ASSAY_LOG_REQUESTS', oneOf('on', 'off'), {
    about: 'Whether each request logs a line at info. Unset: on with json, off with text.',
  }),
  drainSeconds: setting('ASSAY_DRAIN_SECONDS', wholeNumber(0, 3600), {
    fallback: '30',
    about: 'Seconds that running requests may take to finish during a stop.',
  }),
  adminToken: setting('ASSAY_ADMIN_TOKEN', operatorToken, {
    secret: true,
    about: 'Token for scripts that use /admin/v1 as an operator, at least 32 characters. Unset: console sessions only.',
  }),
  ...ssoSettings,
  bootstrapKey: setting('ASSAY_BOOTSTRAP_KEY', credential, {
    secret: true,
    about: 'API key of the first account, used on first start. Unset: generated and printed once, with a link.',
  }),
  bootstrapWebhookSecret: setting('ASSAY_BOOTSTRAP_WEBHOOK_SECRET', credential, {
    secret: true,
    about: 'Webhook secret of the first account, used on first start. Unset: generated.',
  }),
}

export type SettingName = keyof typeof settingDefinitions
