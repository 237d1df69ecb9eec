import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { readCodeBlocks } from './code-blocks.ts'
import type { DebianPrograms } from './debian-programs.ts'
import { findFreePort } from './free-port.ts'
import { sendMail, toMail } from './mail-client.ts'
import type { Mailbox } from './mailbox.ts'
import { waitUntil } from './wait-until.ts'

/**
 * Sends content and returns 'accepted' if it was stored or delivered, and otherwise the code or the action with which the
 * program refused it. A program that does not answer, or with an unknown code, is an error.
 */
export type Platform = { send(content: Buffer): Promise<string> }

export type Stage = {
  programs: DebianPrograms
  clamdPort: number
  /** Port of a listener that replies FOUND where the other one replies ERROR. */
  strictClamdPort: number
  /** Address and key of the HTTP interface. */
  service: { url: string; apiKey: string }
  /** Takes the mail that amavis passes on. */
  mailbox: Mailbox
  /** Address of the application behind nginx. */
  application: string
}

const blocks = readCodeBlocks('docs/platforms.md')

/** Reads the block of the document that begins with a comment and this path. */
function readRecipe(path: string): string {
  const block = blocks.find(({ text }) => text.startsWith(`# ${path}\n`) || text.startsWith(`// ${path}\n`))
  if (block === undefined) throw new Error(`docs/platforms.md has no block for ${path}.`)
  return block.text
}

function toOutcome(reply: string): string {
  const [code] = /^[245]\d\d(?=[ -])/.exec(reply) ?? []
  if (code === undefined) throw new Error(`The mail server said ${JSON.stringify(reply)}.`)
  return code.startsWith('2') ? 'accepted' : code
}

/** Writes a file into the directory that the programs see as /srv/assay. */
function write({ programs }: Stage, name: string, text: string) {
  writeFileSync(join(programs.shared, name), text)
}

/** Creates directories that a program may write to. */
function makeDirs({ programs }: Stage, owner: string, ...names: string[]) {
  for (const name of names) mkdirSync(join(programs.shared, name), { recursive: true })
  programs.run('root', `cd /srv/assay && chown ${owner} ${names.join(' ')}`)
}

/** Starts a program and waits until it listens; throws with its output when it ends before. */
async function start({ programs }: Stage, script: string, port: number) {
  const child = programs.start('root', `exec ${script}`)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (text) => {
      said += text
    })
  }
  await waitUntil(`${script} to listen`, async () => {
    if (child.exitCode !== null && child.exitCode !== 0) throw new Error(`${script} ended: ${said}`)
    return isListening(port)
  })
}

const isListening = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

const withPort = (text: string, port: number) => text.replaceAll(/(?<=[: ])3310\b/g, String(port))
const toHere = (text: string, stage: Stage) => withPort(text, stage.clamdPort)

const mailPlatform = (port: number): Platform => ({
  send: async (content) => toOutcome(await sendMail(port, toMail(content))),
})

export async function startExim(stage: Stage): Promise<Platform> {
  const port = await findFreePort()
  makeDirs(stage, 'Debian-exim', 'exim')
  const [main = '', acl = ''] = toHere(readRecipe('exim4.conf'), stage).split(/^(?=begin acl)/m)
  const own = [
    'primary_hostname = mail.test',
    'spool_directory = /srv/assay/exim',
    'log_file_path = /srv/assay/exim/%slog',
    'local_interfaces = 127.0.0.1',
    `daemon_smtp_ports = ${port}`,
    'queue_only',
    'acl_smtp_rcpt = accept',
  ]
  write(stage, 'exim.conf', `${own.join('\n')}\n${main}\n${acl}\nbegin routers\nbegin transports\n`)
  await start(stage, 'exim4 -C /srv/assay/exim.conf -bdf', port)
  return mailPlatform(port)
}

export async function startPostfix(stage: Stage): Promise<Platform> {
  const [port, milterPort] = [await findFreePort(), await findFreePort()]
  const withPorts = (text: string) => toHere(text, stage).replaceAll(/\b8895\b/g, String(milterPort))
  const milter = withPorts(readRecipe('/etc/clamav/clamav-milter.conf'))
  write(stage, 'milter.conf', `${milter}Foreground yes\nUser nobody\n`)
  await start(stage, 'clamav-milter --config-file=/srv/assay/milter.conf', milterPort)
  makeDirs(stage, 'postfix', 'postfix-data')
  makeDirs(stage, 'root', 'postfix', 'postfix-queue')
  const main = [
    'compatibility_level = 3.6',
    'queue_directory = /srv/assay/postfix-queue',
    'data_directory = /srv/assay/postfix-data',
    'myhostname = mail.test',
    'inet_interfaces = 127.0.0.1',
    'maillog_file = /srv/assay/postfix.log',
    'maillog_file_prefixes = /srv',
    'local_recipient_maps =',
    'alias_maps =',
    'mailbox_size_limit = 0',
    'local_transport = discard:',
    'default_transport = discard:',
    'mydestination = mail.test',
  ]
  write(stage, 'postfix/main.cf', `${main.join('\n')}\n${withPorts(readRecipe('/etc/postfix/main.cf'))}`)
  const services = [
    `127.0.0.1:${port} inet n - n - - smtpd`,
    'cleanup unix n - n - 0 cleanup',
    'qmgr unix n - n 300 1 qmgr',
    'rewrite unix - - n - - trivial-rewrite',
    'bounce unix - - n - 0 bounce',
    'defer unix - - n - 0 bounce',
    'discard unix - - n - - discard',
    'postlog unix-dgram n - n - 1 postlogd',
    'anvil unix - - n - 1 anvil',
  ]
  write(stage, 'postfix/master.cf', `${services.join('\n')}\n`)
  await start(stage, 'postfix -c /srv/assay/postfix start-fg', port)
  return mailPlatform(port)
}

export async function startAmavis(stage: Stage): Promise<Platform> {
  const port = await findFreePort()
  makeDirs(stage, 'amavis', 'amavis')
  const own = [
    'use strict;',
    "$MYHOME = $TEMPBASE = $db_home = '/srv/assay/amavis'; $QUARANTINEDIR = undef;",
    "$daemon_user = $daemon_group = 'amavis'; $max_servers = 1; $enable_db = 0;",
    "$pid_file = '/srv/assay/amavis/pid'; $lock_file = '/srv/assay/amavis/lock';",
    "$mydomain = 'mail.test'; $myhostname = 'host.mail.test';",
    `$inet_socket_port = ${port}; $inet_socket_bind = '127.0.0.1'; $unix_socketname = undef;`,
    `$forward_method = $notify_method = 'smtp:[127.0.0.1]:${new URL(stage.mailbox.url).port}';`,
    '@bypass_spam_checks_maps = (1); @bypass_banned_checks_maps = (1);',
    "$do_syslog = 0; $log_level = 1; $logfile = '/srv/assay/amavis/log';",
    '$virus_admin = undef; $virus_quarantine_method = undef; $final_virus_destiny = D_DISCARD;',
  ]
  const recipe = toHere(readRecipe('/etc/amavis/conf.d/50-user'), stage)
  write(stage, 'amavisd.conf', `${own.join('\n')}\n${recipe}1;\n`)
  await start(stage, 'amavisd -c /srv/assay/amavisd.conf foreground', port)
  return {
    async send(content) {
      const before = stage.mailbox.mails.length
      const outcome = toOutcome(await sendMail(port, toMail(content)))
      // A message that amavis discards gets 250 as well, so delivery decides.
      return outcome === 'accepted' && stage.mailbox.mails.length === before ? 'discarded' : outcome
    },
  }
}

export async function startRspamd(stage: Stage): Promise<Platform> {
  const port = await findFreePort()
  makeDirs(stage, '_rspamd', 'rspamd')
  // Compiling the full list of public suffixes takes a quarter of a minute of processor time.
  write(stage, 'suffixes', 'test\n')
  write(stage, 'antivirus.conf', withPort(readRecipe('/etc/rspamd/local.d/antivirus.conf'), stage.strictClamdPort))
  write(stage, 'options.inc', readRecipe('/etc/rspamd/local.d/options.inc'))
  write(stage, 'force_actions.conf', readRecipe('/etc/rspamd/local.d/force_actions.conf'))
  const config = [
    'options { pidfile = "/srv/assay/rspamd/pid"; filters = ""; url_tld = "/srv/assay/suffixes";',
    '  dns { nameserver = ["127.0.0.1:9"]; timeout = 0.1s; retransmits = 1; } .include "/srv/assay/options.inc" }',
    'logging { type = "file"; filename = "/srv/assay/rspamd/log"; level = "info"; }',
    `worker "normal" { bind_socket = "127.0.0.1:${port}"; count = 1; mime = true; enabled = true; }`,
    'actions { reject = 15; add_header = 6; greylist = 4; }',
    'modules { path = "/usr/share/rspamd/plugins/antivirus.lua"; path = "/usr/share/rspamd/plugins/force_actions.lua"; }',
    'lua = "/usr/share/rspamd/rules/rspamd.lua";',
    'antivirus { .include "/srv/assay/antivirus.conf" }',
    'force_actions { .include "/srv/assay/force_actions.conf" }',
  ]
  write(stage, 'rspamd.conf', `${config.join('\n')}\n`)
  await start(stage, 'rspamd -f -u _rspamd -g _rspamd -c /srv/assay/rspamd.conf', port)
  return {
    async send(content) {
      const answer = await fetch(`http://127.0.0.1:${port}/checkv2`, { method: 'POST', body: toMail(content) })
      const { action } = (await answer.json()) as { action: string }
      if (['reject', 'soft reject'].includes(action)) return action
      // Other rules of rspamd may greylist the mail, which is not about its content.
      if (['no action', 'greylist', 'add header'].includes(action)) return 'accepted'
      throw new Error(`rspamd answered with ${answer.status} and the action ${action}.`)
    },
  }
}

export async function startProftpd(stage: Stage): Promise<Platform> {
  const port = await findFreePort()
  makeDirs(stage, 'nobody', 'ftp')
  makeDirs(stage, 'root', 'proftpd')
  const own = [
    'ModulePath /usr/lib/proftpd',
    'LoadModule mod_clamav.c',
    'ServerType standalone',
    'UseIPv6 off',
    `Port ${port}`,
    'DefaultAddress 127.0.0.1',
    'User nobody',
    'Group nogroup',
    'PidFile /srv/assay/proftpd/pid',
    'ScoreboardFile /srv/assay/proftpd/scoreboard',
    'DelayEngine off',
    'WtmpLog off',
    'TransferLog none',
    'SystemLog /srv/assay/proftpd/log',
    'RequireValidShell off',
    'AuthUserFile /srv/assay/proftpd/users',
    'AuthOrder mod_auth_file.c',
    'DefaultRoot /srv/assay/ftp',
    'AllowOverwrite on',
  ]
  const recipe = withPort(readRecipe('/etc/proftpd/conf.d/clamav.conf'), stage.strictClamdPort)
  write(stage, 'proftpd/config', `${own.join('\n')}\n${recipe}`)
  stage.programs.run('root', `cd /srv/assay/proftpd && ${toUser('users')} && chmod 600 users`)
  await start(stage, 'proftpd -n -c /srv/assay/proftpd/config', port)
  return {
    async send(content) {
      const [source, target] = ['upload.bin', 'ftp/upload.bin'].map((name) => join(stage.programs.shared, name))
      writeFileSync(String(source), content)
      rmSync(String(target), { force: true })
      const url = `ftp://me:secret@127.0.0.1:${port}/`
      const args = ['-sS', '--noproxy', '*', '--max-time', '60', '-T', String(source), url]
      const { error, stderr } = await new Promise<{ error: Error | null; stderr: string }>((resolve) =>
        execFile('curl', args, (error, _, stderr) => resolve({ error, stderr })),
      )
      if (error === null) return 'accepted'
      // curl exits with 18 or 25 if the server refuses an upload, and names the reply.
      const [, reply] = /^curl: \((?:18|25)\) .*\b(5\d\d)$/m.exec(stderr) ?? []
      if (reply === undefined) throw new Error(`ProFTPD did not answer the upload: ${stderr}`)
      return existsSync(String(target)) ? `${reply}, and the file stays` : reply
    },
  }
}

/** The command that writes a user of ProFTPD, `me` with the password `secret`. */
const toUser = (file: string) =>
  `echo "me:$(openssl passwd -1 secret):$(id -u nobody):$(id -g nobody)::/srv/assay/ftp:/bin/sh" > ${file}`

export async function startNginx(stage: Stage): Promise<Platform> {
  const port = await findFreePort()
  const site = readRecipe('/etc/nginx/sites-enabled/upload.conf')
    .replace('127.0.0.1:80;', `127.0.0.1:${port};`)
    .replace('http://127.0.0.1:8080', stage.service.url)
    .replace('http://127.0.0.1:3000', stage.application)
    .replaceAll('/etc/nginx/', '/srv/assay/nginx/')
  makeDirs(stage, 'root', 'nginx/js')
  chmodSync(join(stage.programs.shared, 'nginx'), 0o755)
  write(stage, 'nginx/js/assay.js', readRecipe('/etc/nginx/js/assay.js'))
  write(stage, 'nginx/assay-key.conf', `proxy_set_header X-API-Key ${stage.service.apiKey};\n`)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path temp-${name};`)
  const config = `load_module /usr/lib/nginx/modules/ngx_http_js_module.so;
    daemon off; pid pid; error_log log; worker_processes 1; user nobody nogroup;
    events {} http { access_log off; ${paths.join(' ')} ${site} }`
  write(stage, 'nginx/nginx.conf', config)
  await start(stage, 'nginx -p /srv/assay/nginx/ -c nginx.conf', port)
  const url = `http://127.0.0.1:${port}/upload`
  return {
    async send(content) {
      const form = new FormData()
      form.append('note', 'a field of the application')
      form.append('file', new Blob([new Uint8Array(content)]), 'upload.bin')
      const { status } = await fetch(url, { method: 'POST', body: form, headers: { 'idempotency-key': 'of-a-client' } })
      if (![200, 403, 503].includes(status)) throw new Error(`nginx answered with ${status}.`)
      return status === 200 ? 'accepted' : String(status)
    },
  }
}
