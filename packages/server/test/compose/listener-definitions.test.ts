import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { readListeners, toAddressText } from '../../src/compose/listener-definitions.ts'
import { ConfigMistakes, loadConfig } from '../../src/config/load-config.ts'
import { makeCertificates } from '../support/certificates.ts'

describe('listeners of assay.toml', () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-listeners-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  const { newAuthority } = makeCertificates(dir)
  const own = newAuthority('own')
  const other = newAuthority('other')

  function read(toml: string, env: NodeJS.ProcessEnv = {}) {
    const path = join(dir, 'assay.toml')
    writeFileSync(path, toml)
    return readListeners(loadConfig({ ...env, ASSAY_CONFIG: path }).config)
  }
  const toTable = (options: Record<string, unknown>) =>
    `[[listeners]]\n${Object.entries(options)
      .map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
      .join('')}`
  const mail = { name: 'mail', kind: 'clamd', address: 'tcp://0.0.0.0:3310', api_key: 'key-of-mail' }

  test('stand beside those of the settings', () => {
    const keyFile = join(dir, 'key')
    writeFileSync(keyFile, 'key-of-the-proxy\n')
    const socket = { name: 'proxy', kind: 'icap', address: 'unix:/run/x.sock', api_key_file: keyFile }
    const text = `${toTable({ ...mail, networks: ['10.0.0.0/8'], max_connections: 7, max_mb: 5, on_failure: 'found' })}
${toTable({ ...socket, mode: '0606', owner: 'root', group: 12, on_error: 'allow', trickle: true })}`
    assert.throws(() => read(text), /group must be a text/)
    const definitions = read(text.replace('group = 12', 'group = "12"'), {
      ASSAY_CLAMD_LISTEN: '0',
      ASSAY_CLAMD_LISTEN_KEY: 'key-of-settings',
    })
    assert.deepEqual(
      definitions.map(({ name, kind, address, apiKey }) => [name, kind, toAddressText(address), apiKey]),
      [
        ['clamd', 'clamd', 'tcp://127.0.0.1:0', 'key-of-settings'],
        ['mail', 'clamd', 'tcp://0.0.0.0:3310', 'key-of-mail'],
        ['proxy', 'icap', 'unix:/run/x.sock', 'key-of-the-proxy'],
      ],
    )
    const [first, second, third] = definitions
    assert.deepEqual([first?.maxConnections, first?.maxBytes, first?.networks], [256, 100 * 2 ** 20, undefined])
    assert.deepEqual([second?.maxConnections, second?.maxBytes, second?.networks], [7, 5 * 2 ** 20, ['10.0.0.0/8']])
    assert.deepEqual([second?.onFailure, third?.onError, third?.trickles], ['found', 'allow', true])
    assert.deepEqual(third?.address, { path: '/run/x.sock', access: { mode: 0o606, uid: 0, gid: 12 } })
  })

  test('of the settings have the options of the settings', () => {
    const icap = { ASSAY_ICAP_LISTEN: '0', ASSAY_ICAP_KEY: 'key-of-settings' }
    const [plain] = read('', icap)
    assert.deepEqual([plain?.trickles, plain?.onError, plain?.maxBytes], [false, 'block', 100 * 2 ** 20])
    const [other] = read('', { ...icap, ASSAY_ICAP_TRICKLE: 'on', ASSAY_ICAP_ON_ERROR: 'allow' })
    assert.deepEqual([other?.trickles, other?.onError], [true, 'allow'])
  })

  test('have mistakes that name the line, the option and what to write', () => {
    const tls = { tls_cert: own.cert, tls_key: own.key }
    const garbage = join(dir, 'garbage')
    writeFileSync(garbage, 'no certificate')
    const cases: [Record<string, unknown>, RegExp][] = [
      [{ ...mail, kind: undefined }, /assay\.toml line 1: listener "mail": kind is missing: add kind = "clamd"/],
      [{ ...mail, kind: 'milter' }, /kind must be one of clamd, icap\. Given: "milter"/],
      [{ ...mail, name: undefined }, /name is missing/],
      [{ ...mail, address: undefined }, /address is missing: add address = "tcp:/],
      [{ ...mail, address: 'unix:relative' }, /address must be a port .* Given: "unix:relative"/],
      [{ ...mail, address: `unix:/${'x'.repeat(200)}` }, /at most 107 bytes/],
      [{ ...mail, api_key: undefined }, /api_key_file is missing: add the path/],
      [{ ...mail, api_key: 'short' }, /api_key must be an API key: .* The value is not shown/],
      [
        { ...mail, networks: ['10.0.0.0/99'] },
        /networks must be networks such as 10\.0\.0\.0\/8\. Given: 10\.0\.0\.0\/99/,
      ],
      [{ ...mail, networks: [] }, /networks must be a list of networks/],
      [{ ...mail, max_connections: 0 }, /max_connections must be a whole number from 1 to 4096/],
      [{ ...mail, max_mb: 101 }, /max_mb must be a whole number from 1 to 100/],
      [{ ...mail, trickle: true }, /trickle is not an option of this kind of listener\. Its options: address, /],
      [{ ...mail, mode: '0660' }, /mode is not an option/],
      [{ ...mail, tls_cert: own.cert }, /tls_cert and tls_key go together/],
      [{ ...mail, client_ca: own.cert }, /client_ca needs tls_cert and tls_key/],
      [{ ...mail, ...tls, clients: ['a'] }, /clients needs client_ca/],
      [{ ...mail, ...tls, client_ca: own.cert, clients: [] }, /clients must be a list/],
      [{ ...mail, ...tls, tls_key: other.key }, /tls_cert and the other files for TLS cannot be used: .*mismatch/],
      [{ ...mail, ...tls, tls_cert: join(dir, 'missing') }, /cannot be used: ENOENT/],
      [{ ...mail, ...tls, client_ca: garbage }, /tls_cert and the other files for TLS cannot be used/],
      [{ ...mail, ...tls, address: 'unix:/run/x' }, /tls_cert is for tcp:\/\/ addresses/],
      [{ ...mail, address: 'unix:/run/x', networks: ['::1'] }, /networks are for tcp:\/\/ addresses/],
      [{ ...mail, address: 'unix:/run/x', mode: '999' }, /mode must be permissions in octal/],
      [{ ...mail, address: 'unix:/run/x', owner: 'no-such-user' }, /owner is not in \/etc\/passwd/],
    ]
    for (const [options, says] of cases) {
      const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
      assert.throws(
        () => read(toTable(given)),
        (error) => error instanceof ConfigMistakes && says.test(error.message),
        `${JSON.stringify(given)} ${says}`,
      )
    }
    assert.throws(() => read(toTable(mail) + toTable(mail)), /line 6: .*name belongs to another listener/)
    const twin = { ...mail, name: 'twin' }
    assert.throws(() => read(toTable(mail) + toTable(twin)), /"twin": address .* belongs to the listener mail already/)
    assert.throws(() => read('listeners = "x"'), /must be tables: write \[\[listeners\]\] on a line/)
    const worker = { ASSAY_ROLES: 'worker' }
    assert.throws(() => read(toTable(mail), worker), /\[\[listeners\]\] need the role api/)
  })
})
