import { pathToFileURL } from 'node:url'

/**
 * Runs commands of the operator's program one after the other in this process, each by evaluating its main file again:
 * the modules that the file imports are loaded once. The parent sends the arguments and the environment of a command,
 * and reads its output up to the mark, which this process writes where the program would exit.
 */
export type CommandMessage = { args: string[]; env: NodeJS.ProcessEnv; cwd?: string }

const [mainFile = '', mark = ''] = process.argv.slice(2)
const exit = process.exit.bind(process)
// Each command adds listeners that the end of its process would remove.
for (const emitter of [process, process.stdout, process.stderr]) emitter.setMaxListeners(0)
const ownDir = process.cwd()
let commands = 0
let isRunning = false
let isLoading = false

// A command that is cut off could leave its database behind, so that the process ends after it.
process.on('disconnect', () => {
  if (!isRunning) exit()
})

// Node exits with 13 where a main file waits for a promise that nothing is left to settle. Here `import` waits for it.
process.on('exit', () => {
  if (!isLoading || process.exitCode !== undefined) return
  process.exitCode = 13
  process.stderr.write(`Warning: Detected unsettled top-level await at ${mainFile}\n`)
})

process.on('message', async ({ args, env, cwd = ownDir }: CommandMessage) => {
  process.chdir(cwd)
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name]
  Object.assign(process.env, env)
  process.argv = [process.execPath, mainFile, ...args]
  process.exitCode = undefined
  const { promise: ended, resolve } = Promise.withResolvers<number>()
  process.exit = ((code?: number) => resolve(Number(code ?? process.exitCode ?? 0))) as typeof process.exit
  commands++
  isRunning = true
  isLoading = true
  // While a command runs, only its own work keeps the process alive, as in a process of its own.
  process.channel?.unref()
  await import(`${pathToFileURL(mainFile)}?${commands}`)
  isLoading = false
  const code = await ended
  process.channel?.ref()
  isRunning = false
  process.stderr.write(mark)
  process.stdout.write(`${mark}${code}${mark}`)
  if (!process.connected) exit()
})
