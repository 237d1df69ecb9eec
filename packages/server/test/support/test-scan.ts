import { randomUUID } from 'node:crypto'
import type { NewScan } from '../../src/domain/scans/scan.ts'

export const newTestScan = (change: Partial<NewScan> = {}): NewScan => ({
  id: randomUUID(),
  kind: 'malware',
  mode: 'sync',
  region: 'test',
  contentLength: 68,
  contentType: 'text/plain',
  contentName: null,
  metadata: null,
  status: 'pending',
  signals: null,
  createdAt: new Date(),
  completedAt: null,
  ...change,
})
