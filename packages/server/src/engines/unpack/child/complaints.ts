const maxComplaints = 50
const maxComplaintLength = 300

/**
 * What 7-Zip says. Errors come one to a line and with the code of its end; warnings only stand in what it prints of the
 * container, and its end is a success.
 */
export function listen() {
  const complaints: string[] = []
  let ignored = 0
  let tailBytes = 0
  let isWarning = false

  function onError(line: string) {
    if (isHarmless(line)) ignored++
    else if (line !== '' && complaints.length < maxComplaints) complaints.push(line.slice(0, maxComplaintLength))
  }

  return {
    onError,
    onOutput(line: string) {
      const [, tail] = /^Tail Size = (\d+)$/.exec(line) ?? []
      if (tail !== undefined) tailBytes = Number(tail)
      else if (/^WARNINGS?:/.test(line)) isWarning = true
      else if (line === '--' || line.includes(' = ')) isWarning = false
      else if (isWarning && line.startsWith('There are data after the end')) tailBytes = Math.max(1, tailBytes)
      else if (isWarning) onError(line)
    },
    tell: () => ({ complaints, ignored, tailBytes }),
  }
}

/** Links and folders have no bytes; there is nothing here whose attributes could be set, nor a folder to be found again. */
const isHarmless = (line: string) =>
  /^ERROR: (?:Cannot create (?:folder|hard link|symbolic link)|Dangerous link|Cannot set file attribute)/.test(line)
