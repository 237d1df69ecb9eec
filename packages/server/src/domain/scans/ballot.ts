import { type Doubt, EngineDown, type EngineReport, type ScanEngine } from '../ports/engines.ts'

/** How the findings of one engine count. */
export type VoteRule = {
  /** Votes of a finding. */
  weight: number
  /** Names of findings that are guesses rather than signatures, such as `Heuristics.Phishing.Email`. */
  heuristics: RegExp
  /** Votes of a finding with such a name. */
  heuristicWeight: number
}

export const defaultVoteRule: VoteRule = { weight: 1, heuristics: /^Heuristics\./, heuristicWeight: 1 }

/**
 * The policy by which findings make content a threat: `quorum` is the number of votes that it needs, one for `any`.
 * `version` is part of the version of cached verdicts.
 */
export type VerdictPolicy = { text: string; quorum: number; version: string }

/** The opinion of one engine about all content of a scan. */
export type Opinion = {
  name: string
  verdict: 'clean' | 'threat' | 'error' | 'skipped'
  findings: string[]
  milliseconds: number
  /** Why the engine failed. It is not asked again during the scan. */
  reason?: string
  /** Reasons why the engine did not read all of the content. */
  doubts: Doubt[]
  /** A filter kept the engine from content in which another engine found something. */
  isKeptFromFinding?: true
}

/** Collects the opinions of the engines during one scan. */
export function makeBallot(policy: VerdictPolicy, findRule: (engine: string) => VoteRule) {
  const opinions = new Map<string, Opinion>()
  let isCertain = false
  let hasUnread = false

  function getOpinion(name: string): Opinion {
    const opinion = opinions.get(name) ?? { name, verdict: 'skipped', findings: [], doubts: [], milliseconds: 0 }
    opinions.set(name, opinion)
    return opinion
  }

  return {
    /** Runs one scan of the engine. An advisory engine that has failed during this scan is not asked again. */
    async ask(engine: ScanEngine, scan: () => Promise<EngineReport>): Promise<EngineReport> {
      const { name } = engine
      if (engine.isCertain === true) {
        const report = await scan()
        isCertain ||= report.findings.length > 0
        return report
      }
      const opinion = getOpinion(name)
      const { reason } = opinion
      if (reason !== undefined) return { findings: [], doubts: [], suspectsContainer: false, failure: reason }
      const startedAt = performance.now()
      const report = await scan()
      opinion.milliseconds += performance.now() - startedAt
      addReport(opinion, report)
      return report
    },
    /**
     * Notes which engines have not read this content, by the reports of all engines about it. `covering` names
     * engines that have read the content within a container. Returns those that have read its members in the same way.
     */
    noteContent(engines: ScanEngine[], reports: EngineReport[], covering: ReadonlySet<string>): ReadonlySet<string> {
      const voters = engines.map((engine, index) => ({ engine, report: reports[index] }))
      const opinionated = voters.filter(({ engine }) => engine.isCertain !== true)
      if (opinionated.some(({ report }) => (report?.findings.length ?? 0) > 0)) {
        for (const { engine, report } of opinionated) {
          if (report?.isSkipped === true && !covering.has(engine.name)) getOpinion(engine.name).isKeptFromFinding = true
        }
      }
      const readers = opinionated.filter(({ report }) => report?.isSkipped !== true && report?.failure === undefined)
      const isCovered = opinionated.some(({ engine }) => covering.has(engine.name))
      hasUnread ||= readers.length === 0 && !isCovered
      const openers = readers.filter(({ engine }) => engine.opensContainers)
      return new Set([...covering, ...openers.map(({ engine }) => engine.name)])
    },
    /** Whether the findings so far are a threat, whatever the other engines say. */
    isDecided: () => isCertain || countVotes([...opinions.values()], findRule) >= policy.quorum,
    /**
     * Whether content is a threat, by what the operator knows or by the votes; see `isThreat`. Throws `EngineDown` also
     * when no engine has read a part of the content, which would be called clean otherwise.
     */
    isThreat() {
      if (isCertain || isThreat([...opinions.values()], policy, findRule)) return true
      if (hasUnread)
        throw new EngineDown('No engine has read all of the content: filters keep them away, or they failed')
      return false
    },
    list: (): Opinion[] => [...opinions.values()],
  }
}

export type Ballot = ReturnType<typeof makeBallot>

function addReport(opinion: Opinion, { findings, doubts, failure, isSkipped }: EngineReport) {
  for (const name of findings) if (!opinion.findings.includes(name)) opinion.findings.push(name)
  for (const doubt of doubts) if (!opinion.doubts.includes(doubt)) opinion.doubts.push(doubt)
  if (failure !== undefined) opinion.reason = failure
  if (opinion.findings.length > 0) opinion.verdict = 'threat'
  else if (opinion.reason !== undefined || opinion.doubts.length > 0) opinion.verdict = 'error'
  else if (isSkipped !== true) opinion.verdict = 'clean'
}

const countVotes = (opinions: Opinion[], findRule: (engine: string) => VoteRule): number =>
  opinions.reduce((sum, opinion) => sum + countVotesOf(opinion, findRule(opinion.name)), 0)

/** An engine has the votes of its weightiest finding. */
const countVotesOf = ({ findings }: Opinion, { weight, heuristics, heuristicWeight }: VoteRule): number =>
  Math.max(0, ...findings.map((name) => (heuristics.test(name) ? heuristicWeight : weight)))

/** Votes that an engine could have given beside those for its findings before it failed. */
const countMissing = (opinion: Opinion, rule: VoteRule): number =>
  Math.max(0, rule.weight - countVotesOf(opinion, rule), rule.heuristicWeight - countVotesOf(opinion, rule))

/**
 * Whether the findings make content a threat. Engines that the operator's filters kept away from the content, or from a
 * finding in it, do not count: where fewer votes are left than the quorum, all of them suffice. Throws `EngineDown`
 * while an advisory engine that failed could have decided: content is neither clean nor a threat by its absence.
 */
export function isThreat(
  opinions: Opinion[],
  { text, quorum }: VerdictPolicy,
  findRule: (engine: string) => VoteRule,
): boolean {
  const sum = (some: Opinion[], count: (opinion: Opinion, rule: VoteRule) => number) =>
    some.reduce((total, opinion) => total + count(opinion, findRule(opinion.name)), 0)
  const asked = opinions.filter(({ verdict }) => verdict !== 'skipped')
  const counted = asked.filter(({ isKeptFromFinding, findings }) => isKeptFromFinding !== true || findings.length > 0)
  const failed = asked.filter(({ reason }) => reason !== undefined)
  const needed = Math.min(
    quorum,
    sum(counted, (_, { weight }) => weight),
  )
  const votes = countVotes(asked, findRule)
  const hasFindings = asked.some(({ findings }) => findings.length > 0)
  if (hasFindings && votes >= needed) return true
  const missing = sum(failed, countMissing)
  const answered = sum(counted, (opinion, rule) =>
    opinion.reason === undefined ? rule.weight : countVotesOf(opinion, rule),
  )
  if (answered < needed || (hasFindings && missing > 0 && votes + missing >= needed)) {
    const reasons = failed.map(({ name, reason }) => `${name}: ${reason}`).join('; ')
    throw new EngineDown(`Too few engines answered for the policy "${text}": ${reasons}`)
  }
  return false
}

const maxShownNames = 5
const maxShownLength = 100
/** The whole result stays below 16 KiB. */
const maxTextLength = 4096

const toReason = ({ reason, doubts }: Pick<Opinion, 'reason' | 'doubts'>): string | undefined =>
  reason ?? (doubts.length === 0 ? undefined : `it says ${doubts.join(', ')}`)

/** The value of `metadata.engines`: a list as JSON. */
export function toEnginesText(opinions: Opinion[], findVersion: (engine: string) => string | undefined): string {
  const rows = opinions.map(({ name, verdict, milliseconds, findings, ...opinion }) => {
    const row = { name, version: findVersion(name) ?? null, verdict, milliseconds: Math.round(milliseconds) }
    const names = findings.slice(0, maxShownNames).map((finding) => finding.slice(0, maxShownLength).toWellFormed())
    const reason = toReason(opinion)
    return {
      row,
      detailed: {
        ...row,
        ...(names.length === 0 ? {} : { findings: names }),
        ...(reason === undefined ? {} : { reason: reason.slice(0, maxShownLength).toWellFormed() }),
      },
    }
  })
  const text = JSON.stringify(rows.map(({ detailed }) => detailed))
  return text.length <= maxTextLength ? text : JSON.stringify(rows.map(({ row }) => row))
}
