import { Page } from '../../ui/page.tsx'

export function DeliveriesPage() {
  return <Page title="DeliveriesPage">{''}</Page>
}
