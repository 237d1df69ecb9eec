import { Page } from '../../ui/page.tsx'
import { DeliveriesSection } from './webhooks-deliveries.tsx'
import { ReceiversSection } from './webhooks-receivers.tsx'
import { SecretCard } from './webhooks-secret.tsx'
import { TestCard } from './webhooks-test.tsx'
import { VerifyCard } from './webhooks-verify.tsx'

export function WebhooksPage() {
  return (
    <Page
      title="Webhooks"
      about="A background scan with a callback URL sends its result to that URL by POST, signed with your secret."
    >
      <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-6">
          <SecretCard />
          <TestCard />
        </div>
        <VerifyCard />
      </div>
      <ReceiversSection />
      <DeliveriesSection />
    </Page>
  )
}
