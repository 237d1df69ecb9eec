import type { Link } from '../../runtime/link.ts'

const checkMs = 10_000
/** Checks in a row without an answer, after which a process counts as hung. */
const mostMissed = 6

/**
 * Calls `kill` when a process has not answered for a minute. Checks are counted instead of the time since the last
 * answer, which also passes while the machine is suspended or this process is busy.
 */
export function killWhenHung({ call, closed }: Pick<Link, 'call' | 'closed'>, kill: () => void) {
  let missed = 0
  const noteAnswer = () => {
    missed = 0
  }
  const timer = setInterval(() => {
    if (missed === mostMissed) kill()
    if (missed++ === 0) void call('ping').then(noteAnswer, noteAnswer)
  }, checkMs)
  timer.unref()
  void closed.then(() => clearInterval(timer))
}
