import { Page } from '../../ui/page.tsx'

export function PlansPage() {
  return <Page title="PlansPage">{''}</Page>
}
