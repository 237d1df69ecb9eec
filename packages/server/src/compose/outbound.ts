import type { Config } from '../config/load-config.ts'
import { makeAddressPolicy } from '../domain/scans/web-address.ts'
import { makeContentFetcher } from '../outbound/content-fetcher.ts'
import { makeGuardedAgent } from '../outbound/guarded-agent.ts'
import { makeWebhookSender } from '../outbound/webhook-sender.ts'

/** Everything that calls others, under one policy of whom we may call. */
export function makeOutbound(config: Config) {
  const policy = makeAddressPolicy(config.outboundAllow)
  const { outboundProxy: proxy } = config
  const agent = makeGuardedAgent({ policy, ...(proxy === undefined ? {} : { proxy }) })
  return { policy, fetcher: makeContentFetcher({ agent, policy }), sender: makeWebhookSender({ agent, policy }) }
}
