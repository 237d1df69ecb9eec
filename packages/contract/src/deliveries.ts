/** Extension: the webhooks of an account, for developers whose programs the service cannot reach. */
export const listDeliveriesOperation = {
  id: 'Webhooks.ListDeliveries',
  method: 'GET',
  path: '/webhooks/deliveries',
  does: 'deliveries',
} as const

/** A webhook as the service sends it to the callback URL of a scan. */
export type SignedDelivery = {
  id: string
  scan_id: string
  callback_url: string
  created_at: string
  /** The text whose UTF-8 bytes the headers sign. */
  body: string
  headers: Record<string, string>
}

/** `until` is the `since` of the next request. */
export type DeliveryList = { until: string; deliveries: SignedDelivery[] }
