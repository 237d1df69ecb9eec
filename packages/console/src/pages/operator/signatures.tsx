import { Page } from '../../ui/page.tsx'

export function SignaturesPage() {
  return <Page title="SignaturesPage">{''}</Page>
}
