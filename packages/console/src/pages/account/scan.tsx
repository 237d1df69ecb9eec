import { Page } from '../../ui/page.tsx'

export function ScanPage() {
  return <Page title="ScanPage">{''}</Page>
}
