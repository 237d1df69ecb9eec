import { Page } from '../../ui/page.tsx'

export function AccountsPage() {
  return <Page title="AccountsPage">{''}</Page>
}
