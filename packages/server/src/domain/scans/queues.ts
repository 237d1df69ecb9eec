import type { ScanKind } from '@assay/contract'

/** For content that is still elsewhere: any process can fetch it. */
export const anywhere = 'anywhere'

/** For jobs of test keys, which need neither an engine nor content: any process can end them. */
export const testQueue = 'test'

/**
 * Jobs wait in queues, by what a process must have to do them: an engine for the kind of scan, and a way to the content.
 * So processes that share a database but not their keys, disks or engines leave each other's jobs alone.
 */
export const toQueueName = (kind: ScanKind, storeId: string): string => `${kind} ${storeId}`

export const listQueues = (kinds: ScanKind[], storeIds: string[]): string[] => [
  testQueue,
  ...kinds.flatMap((kind) => [anywhere, ...storeIds].map((storeId) => toQueueName(kind, storeId))),
]
