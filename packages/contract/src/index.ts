export { type DeliveryList, listDeliveriesOperation, type SignedDelivery } from './deliveries.ts'
export { headers, testAnswers, webhookHeaders } from './headers.ts'
export {
  imageFormats,
  maxContentBytes,
  maxCredits,
  maxFileNameLength,
  maxHeaderBytes,
  maxJsonBytes,
  maxJsonDepth,
  maxKeyLength,
  maxUrlLength,
  maxWaitSeconds,
  type ScanKind,
  type ScanMode,
} from './limits.ts'
export { type Operation, operations, receiptKeysPath } from './operations.ts'
export { type ProblemKind, problemKinds } from './problem-kinds.ts'
export * from './schemas.ts'
