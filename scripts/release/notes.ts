/** The section of a version in CHANGELOG.md, without its heading, and the text of its date. */
export function extractNotes(changelog: string, version: string): { date: string; text: string } {
  const heading = /^## \[([^\]]+)\] - (.*)$/gm
  for (const found of changelog.matchAll(heading)) {
    const [line, name, date = ''] = found
    if (name !== version) continue
    const from = found.index + line.length
    const next = changelog.slice(from).search(/^## /m)
    const section = changelog.slice(from, next === -1 ? undefined : from + next)
    // References of links, which follow the last section, belong to the whole file.
    const text = section.replaceAll(/^\[[^\]]+\]: \S+\n?/gm, '').trim()
    if (text === '') throw new Error(`CHANGELOG.md says nothing about ${version}.`)
    return { date, text: `${text}\n` }
  }
  throw new Error(`CHANGELOG.md has no section "## [${version}] - date".`)
}
