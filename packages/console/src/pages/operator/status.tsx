import { Page } from '../../ui/page.tsx'

export function StatusPage() {
  return <Page title="StatusPage">{''}</Page>
}
