import type { Clock } from '../ports/clock.ts'
import type { ReceiptKeyStore } from '../ports/receipt-key-store.ts'
import { Problem } from '../problem.ts'
import { type Scan, toScanResult } from '../scans/scan.ts'
import type { Scanning } from '../scans/scanning.ts'
import { isTestScan } from '../test-mode.ts'
import { signReceipt } from './signed-receipt.ts'

type Deps = {
  scanning: Pick<Scanning, 'getScan'>
  keys: Pick<ReceiptKeyStore, 'getSigningKey'>
  clock: Clock
  publicUrl: string | undefined
  getInstallationId(): Promise<string>
}

/** Signed receipts of results. A receipt holds the result as it was recorded: nothing in it is computed again. */
export function makeReceipts(deps: Deps) {
  /** Adds `metadata.receipt` to a completed scan. A pending one stays as it is: there is nothing to sign yet. */
  async function addReceipt(scan: Scan): Promise<Scan> {
    if (scan.status === 'pending') return scan
    // A program that checks only the signature would take a signed test result for a verdict on content.
    if (isTestScan(scan)) throw new Problem({ kind: 'validation', errors: { receipt: [noTests] } })
    const installationId = await deps.getInstallationId()
    const claims = {
      iss: deps.publicUrl ?? `urn:uuid:${installationId}`,
      iat: Math.floor(deps.clock.now().getTime() / 1000),
      installation_id: installationId,
      result: toScanResult(scan),
    }
    const receipt = signReceipt(claims, await deps.keys.getSigningKey())
    return { ...scan, metadata: { ...scan.metadata, receipt } }
  }

  const getScan: Scanning['getScan'] = async (...request) => addReceipt(await deps.scanning.getScan(...request))
  return { addReceipt, getScan }
}

export type Receipts = ReturnType<typeof makeReceipts>

const noTests = 'A result of a test key has no receipt, because nothing was scanned.'
