import { receiptKeysPath } from '@assay/contract'
import type { FastifyInstance } from 'fastify'
import type { ReceiptKeyStore } from '../domain/ports/receipt-key-store.ts'
import { toPublicKey } from '../domain/receipts/signed-receipt.ts'

/** Registers the well-known address of the public keys that verify receipts, as a JSON Web Key Set. */
export function registerReceiptKeys(app: FastifyInstance, keys: Pick<ReceiptKeyStore, 'listKeys'>) {
  // Unlike other public pages, this one asks the database.
  app.get(receiptKeysPath, { config: { strangerWeight: 5 } }, async (_request, reply) => {
    reply.header('Cache-Control', 'public, max-age=60')
    return { keys: (await keys.listKeys()).map(({ publicKey }) => toPublicKey(publicKey)) }
  })
}
