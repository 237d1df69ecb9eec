export const systemClock = { now: () => new Date() }
