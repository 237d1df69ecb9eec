import {
  credential,
  httpOrigin,
  listOf,
  network,
  oneOf,
  port,
  postgresUrl,
  type Reader,
  regionName,
  text,
  wholeNumber,
} from './readers.ts'

export type Knob<T> = {
  /** The environment variable; `assay.toml` has it in lower case without the prefix. */
  env: string
  read: Reader<T>
  /** Used when nothing is set. Absent: the setting is optional. */
  fallback?: string
  /** Never shown, and may be given as a file: `<env>_FILE`. */
  secret?: true
  about: string
}

/** Keeps in the type whether there is a fallback, so that a setting with one is never undefined. */
function knob<T>(row: Knob<T> & { fallback: string }): Knob<T> & { fallback: string }
function knob<T>(row: Knob<T>): Knob<T>
function knob<T>(row: Knob<T>): Knob<T> {
  return row
}

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
    about: 'Port on 127.0.0.1 for Prometheus. Unset: ASSAY_PORT + 1000.',
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
