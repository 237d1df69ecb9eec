import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { ConfigMistakes, loadConfig } from '../../src/config/load-config.ts'
import { type SettingDefinition, settingDefinitions } from '../../src/config/settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'assay-config-'))
after(() => rmSync(folder, { recursive: true }))
const noToml = join(folder, 'missing.toml')

let files = 0
function write(content: string): string {
  const path = join(folder, `file-${files++}`)
  writeFileSync(path, content)
  return path
}

function findMistakes(env: NodeJS.ProcessEnv, tomlPath = noToml): string[] {
  try {
    loadConfig(env, tomlPath)
  } catch (error) {
    if (error instanceof ConfigMistakes) return error.mistakes
    throw error
  }
  return []
}

const originOf = (env: NodeJS.ProcessEnv, name: string, tomlPath = noToml) =>
  loadConfig(env, tomlPath).settings.find((setting) => setting.name === name)?.origin

describe('defaults', () => {
  test('nothing has to be set, and every default is one that its own reader accepts', () => {
    const { config, settings, warnings } = loadConfig({}, noToml)
    assert.equal(config.port, 8080)
    assert.equal(config.host, '127.0.0.1')
    assert.equal(config.databaseUrl, undefined)
    assert.deepEqual(config.corsOrigins, [])
    assert.deepEqual(warnings, [])
    assert.equal(settings.length, Object.keys(settingDefinitions).length)
    for (const { origin } of settings) assert.match(origin, /^(default|not set)$/)
  })

  test('an empty variable counts as not set', () => {
    assert.equal(loadConfig({ ASSAY_PORT: '', ASSAY_PUBLIC_URL: '' }, noToml).config.port, 8080)
    assert.equal(loadConfig({ ASSAY_PUBLIC_URL: '' }, noToml).config.publicUrl, undefined)
  })

  test('every setting has a name with the prefix and a sentence about it', () => {
    for (const { env, about } of Object.values(settingDefinitions)) {
      assert.match(env, /^ASSAY_[A-Z0-9_]+$/)
      assert.match(about, /^[A-Z].*\.$/)
    }
  })
})

describe('mistakes', () => {
  test('all of them are reported at once, each with its setting, its rule and what was given', () => {
    const toml = write('region = "No Region"\nprot = 1\n')
    const mistakes = findMistakes({ ASSAY_PORT: '70000', ASSAY_CREDIT_GATE: 'some', ASSAY_DRAIN_SECONDS: '1.5' }, toml)
    assert.deepEqual(
      mistakes.toSorted(),
      [
        `${toml} sets prot, which is not a setting. Did you mean port?`,
        'ASSAY_CREDIT_GATE must be one of all, scans. Given: "some" (from ASSAY_CREDIT_GATE).',
        'ASSAY_DRAIN_SECONDS must be a whole number from 0 to 3600. Given: "1.5" (from ASSAY_DRAIN_SECONDS).',
        'ASSAY_PORT must be a port number from 0 to 65535. Given: "70000" (from ASSAY_PORT).',
        `ASSAY_REGION must be a short name such as eu or us-east-1. Given: "No Region" (from ${toml}).`,
      ].toSorted(),
    )
  })

  test('a secret that is wrong is not shown', () => {
    for (const env of [
      { ASSAY_BOOTSTRAP_KEY: 'hush hush hush' },
      { ASSAY_DATABASE_URL: 'mysql://hush:hush@host/db' },
      { ASSAY_BOOTSTRAP_KEY_FILE: write('hush hush hush') },
    ]) {
      const mistakes = findMistakes(env)
      assert.equal(mistakes.length, 1)
      assert.match(mistakes[0] ?? '', /Given: a value that is not shown \(from ASSAY_\w+\)\.$/)
      assert.doesNotMatch(mistakes[0] ?? '', /hush/)
    }
  })

  test('an operator token that could be guessed is a mistake, and the message says how to make one', () => {
    const [mistake = ''] = findMistakes({ ASSAY_ADMIN_TOKEN: 'x'.repeat(31) })
    assert.match(
      mistake,
      /^ASSAY_ADMIN_TOKEN must be 32 to 255 visible ASCII characters .*`openssl rand -hex 32` prints/,
    )
    assert.deepEqual(findMistakes({ ASSAY_ADMIN_TOKEN: 'x'.repeat(32) }), [])
  })

  test('trusted proxies are networks', () => {
    assert.deepEqual(findMistakes({ ASSAY_TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.1,fd00::/8' }), [])
    for (const wrong of ['proxy.example.com', '10.0.0.0/40', '10.0.0.0/8;10.1.0.0/16']) {
      assert.match(findMistakes({ ASSAY_TRUSTED_PROXIES: wrong })[0] ?? '', /must be networks such as/, wrong)
    }
  })

  test('single sign-on needs what makes it safe', () => {
    const sso = { ASSAY_SSO_ISSUER: 'https://login.example.com/realms/a', ASSAY_SSO_CLIENT_ID: 'assay' }
    const complete = { ...sso, ASSAY_PUBLIC_URL: 'https://scan.example.com' }
    const account = '0198c1d2-5a3e-7c44-9b1f-2d6f0f6a7e21'
    assert.deepEqual(findMistakes(complete), [])
    assert.match(findMistakes(sso)[0] ?? '', /needs ASSAY_PUBLIC_URL/)
    assert.match(findMistakes({ ASSAY_SSO_CLIENT_ID: 'assay' })[0] ?? '', /go together/)
    assert.match(findMistakes({ ASSAY_SSO_REQUIRED: 'on' })[0] ?? '', /nobody could sign in/)
    const creating = findMistakes({ ...complete, ASSAY_SSO_CREATE: 'on' })
    assert.deepEqual(
      creating.map((mistake) => /ASSAY_SSO_CREATE=on needs (\w+)/.exec(mistake)?.[1]),
      ['ASSAY_SSO_DOMAINS', 'ASSAY_SSO_ROLES'],
    )
    assert.match(findMistakes({ ...complete, ASSAY_SSO_LINK: 'email' })[0] ?? '', /needs ASSAY_SSO_DOMAINS/)
    const rules = `cn=admins=operator, staff=owner:${account.toUpperCase()},*=member:${account}`
    assert.deepEqual(loadConfig({ ...complete, ASSAY_SSO_ROLES: rules }, noToml).config.ssoRoles, [
      { value: 'cn=admins', role: 'operator', accountId: null },
      { value: 'staff', role: 'owner', accountId: account },
      { value: '*', role: 'member', accountId: account },
    ])
    for (const [name, ...wrong] of [
      ['ASSAY_SSO_ISSUER', 'http://login.example.com', 'login.example.com', 'https://a:b@c.example', 'https://a/?b'],
      ['ASSAY_SSO_DOMAINS', '@example.com', 'ada@example.com', '*.example.com', 'example'],
      ['ASSAY_SSO_ROLES', '*=operator', 'admins', '=operator', 'staff=member', 'staff=member:x', 'staff=boss'],
    ] as const) {
      for (const value of wrong) {
        assert.match(findMistakes({ ...complete, [name]: value })[0] ?? '', new RegExp(`^${name} must be`), value)
      }
    }
  })

  test('settings that contradict each other are mistakes', () => {
    const both = /ASSAY_TLS_CERT and ASSAY_TLS_KEY go together/
    assert.match(findMistakes({ ASSAY_TLS_CERT: 'a.pem' })[0] ?? '', both)
    assert.match(findMistakes({ ASSAY_TLS_KEY: 'a.key' })[0] ?? '', both)
    for (const [listen, key] of [
      ['ASSAY_CLAMD_LISTEN', 'ASSAY_CLAMD_LISTEN_KEY'],
      ['ASSAY_ICAP_LISTEN', 'ASSAY_ICAP_KEY'],
    ] as const) {
      const paid = new RegExp(`${listen} and ${key} go together`)
      assert.match(findMistakes({ [listen]: '3310' })[0] ?? '', paid)
      assert.match(findMistakes({ [key]: 'some-key-or-other' })[0] ?? '', paid)
      assert.deepEqual(findMistakes({ [listen]: '0.0.0.0:3310', [key]: 'some-key-or-other' }), [])
    }
    assert.match(findMistakes({ ASSAY_PORT: '9000', ASSAY_METRICS_PORT: '9000' })[0] ?? '', /are the same/)
    assert.deepEqual(findMistakes({ ASSAY_PORT: '0', ASSAY_METRICS_PORT: '0' }), [])
    const s3 = { ASSAY_BLOBS: 's3://bucket?region=eu-west-1' }
    assert.match(findMistakes(s3)[0] ?? '', /ASSAY_MASTER_KEY must be set to the same value on all of them/)
    const shared = { ...s3, ASSAY_MASTER_KEY: '0'.repeat(64) }
    assert.deepEqual(findMistakes(shared), [])
    const keys = /ASSAY_S3_ACCESS_KEY and ASSAY_S3_SECRET_KEY go together/
    assert.match(findMistakes({ ...shared, ASSAY_S3_ACCESS_KEY: 'key' })[0] ?? '', keys)
    assert.match(findMistakes({ ...shared, ASSAY_S3_SECRET_KEY: 'key' })[0] ?? '', keys)
    assert.deepEqual(findMistakes({ ...shared, ASSAY_S3_ACCESS_KEY: 'key', ASSAY_S3_SECRET_KEY: 'key' }), [])
  })

  test('credentials in an address are not shown', () => {
    const [mistake = ''] = findMistakes({ ASSAY_BLOBS: 's3://key:hush@bucket?region=eu-west-1' })
    assert.match(mistake, /ASSAY_BLOBS must contain no credentials: .* not shown/)
    assert.doesNotMatch(mistake, /hush/)
  })

  test('the message of the error has them all, one a line', () => {
    const { message } = new ConfigMistakes(['one', 'two'])
    assert.equal(message, 'one\ntwo')
  })
})

describe('secrets from files', () => {
  test('a secret may stand in a file, whose last line end does not count', () => {
    for (const end of ['', '\n', '\r\n']) {
      const env = { ASSAY_BOOTSTRAP_KEY_FILE: write(`a-good-key${end}`) }
      assert.equal(loadConfig(env, noToml).config.bootstrapKey, 'a-good-key')
      assert.equal(originOf(env, 'bootstrapKey'), 'ASSAY_BOOTSTRAP_KEY_FILE')
    }
  })

  test('a file that cannot be read is a mistake that names the variable', () => {
    const [mistake = ''] = findMistakes({ ASSAY_BOOTSTRAP_KEY_FILE: join(folder, 'not-there') })
    assert.match(mistake, /^ASSAY_BOOTSTRAP_KEY_FILE names a file that cannot be read: .*not-there/)
  })

  test('only secrets may be given so; elsewhere the variable is unknown', () => {
    const { config, warnings } = loadConfig({ ASSAY_REGION_FILE: write('eu') }, noToml)
    assert.equal(config.region, 'local')
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] ?? '', /^ASSAY_REGION_FILE is set but is not a setting/)
    for (const definition of Object.values(settingDefinitions) as SettingDefinition<unknown>[]) {
      const known = loadConfig({ [`${definition.env}_FILE`]: '' }, noToml).warnings.length === 0
      assert.equal(known, definition.secret === true, definition.env)
    }
  })
})

describe('assay.toml', () => {
  test('settings have their names without the prefix, in small letters, as strings, numbers or lists', () => {
    const toml = write(
      'port = 9001\nregion = "eu"\ncors_origins = ["https://a.example", "https://b.example"]\noutbound_allow = "10.0.0.0/8"\n',
    )
    const { config } = loadConfig({}, toml)
    assert.equal(config.port, 9001)
    assert.equal(config.region, 'eu')
    assert.deepEqual(config.corsOrigins, ['https://a.example', 'https://b.example'])
    assert.deepEqual(config.outboundAllow, ['10.0.0.0/8'])
    assert.equal(originOf({}, 'port', toml), toml)
  })

  test('ASSAY_CONFIG says where it is, and then it must be there', () => {
    const toml = write('port = 9002')
    assert.equal(loadConfig({ ASSAY_CONFIG: toml }).config.port, 9002)
    let mistakes: string[] = []
    try {
      loadConfig({ ASSAY_CONFIG: noToml })
    } catch (error) {
      mistakes = (error as ConfigMistakes).mistakes
    }
    assert.match(mistakes[0] ?? '', /missing\.toml cannot be read: /)
  })

  test('a file that is not TOML, a table and an unknown name are mistakes', () => {
    assert.match(findMistakes({}, write('port = = 1'))[0] ?? '', /cannot be read: /)
    assert.match(findMistakes({}, write('[port]\nnumber = 1'))[0] ?? '', /sets port to a table: set it to a value\./)
    assert.match(findMistakes({}, write('colour = "red"'))[0] ?? '', /sets colour, which is not a setting\.$/)
    assert.match(findMistakes({}, write('ASSAY_PORT = 1'))[0] ?? '', /sets ASSAY_PORT, which is not a setting\./)
  })
})

test('the environment wins over a file of a secret, that over assay.toml, that over the default', () => {
  const toml = write('bootstrap_key = "key-of-toml"\nregion = "toml"\n')
  const file = { ASSAY_BOOTSTRAP_KEY_FILE: write('key-of-file') }
  const keyOf = (env: NodeJS.ProcessEnv) => loadConfig(env, toml).config.bootstrapKey
  assert.equal(keyOf({ ...file, ASSAY_BOOTSTRAP_KEY: 'key-of-environment' }), 'key-of-environment')
  assert.equal(keyOf(file), 'key-of-file')
  assert.equal(keyOf({}), 'key-of-toml')
  assert.equal(loadConfig({ ASSAY_REGION: 'env' }, toml).config.region, 'env')
  assert.equal(loadConfig({}, toml).config.region, 'toml')
  assert.equal(loadConfig({}, noToml).config.region, 'local')
})

describe('names that are unknown', () => {
  const warningsOf = (env: NodeJS.ProcessEnv) => loadConfig(env, noToml).warnings

  test('in the environment they are a warning, with the name that was probably meant', () => {
    assert.deepEqual(warningsOf({ ASSAY_PROT: '1', ASSAY_DATADIR: 'x', ASSAY_SOMETHING_ELSE: 'x' }), [
      'ASSAY_PROT is set but is not a setting of this version. Did you mean ASSAY_PORT?',
      'ASSAY_DATADIR is set but is not a setting of this version. Did you mean ASSAY_DATA_DIR?',
      'ASSAY_SOMETHING_ELSE is set but is not a setting of this version.',
    ])
  })

  test('variables of clients, which the documents export, are none of them', () => {
    assert.deepEqual(
      warningsOf({ ASSAY_URL: 'http://127.0.0.1:8080', ASSAY_API_KEY: 'x', ASSAY_WEBHOOK_SECRET: 'x' }),
      [],
    )
  })

  test('the value of such a variable is never shown', () => {
    assert.doesNotMatch(warningsOf({ ASSAY_BOOTSTRAPKEY: 'hush' }).join(), /hush/)
  })

  test('variables without the prefix, and those of the tests, are none of our business', () => {
    assert.deepEqual(warningsOf({ PORT: '1', ASSAY_TEST_SERVICE: 'x', ASSAY_CONFIG: '' }), [])
  })

  test('the nearest name is suggested, not the first that is near', () => {
    assert.match(warningsOf({ ASSAY_HOSTS: 'x' })[0] ?? '', /Did you mean ASSAY_HOST\?$/)
    assert.match(warningsOf({ ASSAY_POT: 'x' })[0] ?? '', /Did you mean ASSAY_PORT\?$/)
    assert.match(warningsOf({ ASSAY_TLS_KEYS: 'x' })[0] ?? '', /Did you mean ASSAY_TLS_KEY\?$/)
  })
})

const sharedByNodes = {
  ASSAY_DATABASE_URL: 'postgres://assay@db/assay',
  ASSAY_BLOBS: 's3://bucket?endpoint=http://s3.example.com&region=eu',
  ASSAY_MASTER_KEY: 'ab'.repeat(32),
}

describe('the roles of a node', () => {
  test('are both by default, and then need nothing that nodes share', () => {
    assert.deepEqual(loadConfig({}, noToml).config.roles, { api: true, worker: true })
    assert.deepEqual(loadConfig({ ASSAY_ROLES: 'worker, api' }, noToml).config.roles, { api: true, worker: true })
  })

  for (const role of ['api', 'worker']) {
    test(`that are ${role} alone need everything that nodes share`, () => {
      assert.deepEqual(loadConfig({ ...sharedByNodes, ASSAY_ROLES: role }, noToml).config.roles, {
        api: role === 'api',
        worker: role === 'worker',
      })
      const needs = `ASSAY_ROLES=${role} needs`
      assert.deepEqual(findMistakes({ ASSAY_ROLES: role }), [
        `${needs} a database that all nodes share: set ASSAY_DATABASE_URL to a PostgreSQL server.`,
        `${needs} a content store that all nodes share: set ASSAY_BLOBS to s3://bucket?endpoint=...&region=....`,
        `${needs} a key that all nodes share: set ASSAY_MASTER_KEY to the same 64 hex digits on all nodes.`,
      ])
      for (const missing of Object.keys(sharedByNodes)) {
        const [mistake = '', ...others] = findMistakes({ ...sharedByNodes, [missing]: '', ASSAY_ROLES: role })
        assert.match(mistake, new RegExp(`: set ${missing} to `))
        assert.deepEqual(others, [])
      }
    })
  }

  for (const roles of ['scanner', 'api;worker', 'api,', ',']) {
    test(`cannot be ${JSON.stringify(roles)}`, () => {
      assert.match(findMistakes({ ASSAY_ROLES: roles })[0] ?? '', /^ASSAY_ROLES must be api, worker or both/)
    })
  }
})
