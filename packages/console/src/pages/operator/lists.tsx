import { Page } from '../../ui/page.tsx'

export function ListsPage() {
  return <Page title="ListsPage">{''}</Page>
}
