import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSystemStatus, type SystemStatusDeps } from '../../src/compose/system-status.ts'
import { loadConfig } from '../../src/config/load-config.ts'

const newState = (version: string) => ({
  version,
  verdictVersion: undefined,
  signatures: undefined,
  signaturesAt: undefined,
})

test('only image engines are listed as image models, whatever the engines are called', () => {
  const { config } = loadConfig({ ASSAY_NSFW_PRECISION: 'int8' }, '/nonexistent/assay.toml')
  const deps: Pick<SystemStatusDeps, 'listEngines' | 'roles' | 'scanning' | 'storage'> = {
    storage: {} as SystemStatusDeps['storage'],
    roles: ['worker'],
    scanning: { engines: undefined } as SystemStatusDeps['scanning'],
    listEngines: () => [
      { name: 'ClamAV', kind: 'malware', state: newState('ClamAV 1.4.6') },
      { name: 'YARA', kind: 'malware', state: newState('YARA-X 1.2.0') },
      { name: 'NSFW', kind: 'image', state: newState('mobilenet-v2-mid') },
    ],
  }
  const { signatures } = makeSystemStatus(config, deps as SystemStatusDeps)
  assert.deepEqual(signatures.listModels(), [{ name: 'mobilenet-v2-mid', precision: 'int8' }])
})
