import koffi from 'koffi'

const dieWithParent = 1
const coreDumps = 4
const noNewPrivileges = 38
const sigkill = 9

/**
 * Linux only. A scan blocks this process: one that never ends would outlive a parent that was killed. A crash must not
 * write the content it was scanning to disk.
 */
export function confine() {
  if (process.platform !== 'linux') return
  const prctl = koffi
    .load(null)
    .func('prctl', 'int', ['int', 'unsigned long', 'unsigned long', 'unsigned long', 'unsigned long'])
  const settings: [number, number][] = [
    [dieWithParent, sigkill],
    [coreDumps, 0],
    [noNewPrivileges, 1],
  ]
  for (const [setting, value] of settings) {
    if (prctl(setting, value, 0, 0, 0) !== 0) throw new Error(`prctl ${setting} failed`)
  }
}
