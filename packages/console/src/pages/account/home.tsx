import { Page } from '../../ui/page.tsx'

export function HomePage() {
  return <Page title="HomePage">{''}</Page>
}
