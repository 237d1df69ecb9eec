import { setMaxListeners } from 'node:events'

/** Ends the run: by the person, or because there is no point in going on. The first reason is the one that is told. */
export function newStop(interrupted: AbortSignal) {
  const controller = new AbortController()
  const { signal } = controller
  // Everything that is under way listens, which some versions of Node take for a leak.
  setMaxListeners(0, signal)
  let reason: string | undefined
  interrupted.addEventListener('abort', () => controller.abort())
  return {
    signal,
    reason: () => reason,
    because(sentence: string) {
      reason ??= sentence
      controller.abort()
    },
  }
}
