import { Code } from '../../ui/copy.tsx'
import { Card } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { verifySnippets } from './verify-snippets.ts'

export function VerifyCard() {
  return (
    <Card title="Verify what comes">
      <p className="mb-4 text-soft">
        <code className="font-mono text-xs text-ink">X-Api-Signature</code> is the HMAC-SHA256 of the body in lower-case
        hex. Take the bytes as they came, before anything parses them, and answer with 2xx within 15 seconds.
      </p>
      <Tabs
        label="Languages"
        tabs={verifySnippets.map(({ name, text }) => ({ name, children: <Code label={name} text={text} /> }))}
      />
    </Card>
  )
}
