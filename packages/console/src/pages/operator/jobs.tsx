import { Page } from '../../ui/page.tsx'

export function JobsPage() {
  return <Page title="JobsPage">{''}</Page>
}
