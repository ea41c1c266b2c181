/** Linux x86-64 and arm64 signals by name, as `signal(7)` of a Debian guest numbers them. */
const numbers: Readonly<Record<string, number>> = {
  HUP: 1,
  INT: 2,
  QUIT: 3,
  ILL: 4,
  TRAP: 5,
  ABRT: 6,
  IOT: 6,
  BUS: 7,
  FPE: 8,
  KILL: 9,
  USR1: 10,
  SEGV: 11,
  USR2: 12,
  PIPE: 13,
  ALRM: 14,
  TERM: 15,
  STKFLT: 16,
  CHLD: 17,
  CLD: 17,
  CONT: 18,
  STOP: 19,
  TSTP: 20,
  TTIN: 21,
  TTOU: 22,
  URG: 23,
  XCPU: 24,
  XFSZ: 25,
  VTALRM: 26,
  PROF: 27,
  WINCH: 28,
  IO: 29,
  POLL: 29,
  PWR: 30,
  SYS: 31,
}
const realTimeMin = 34
const realTimeMax = 64

/** The number of a signal given by name (`SIGTERM`, `term`, `SIGRTMIN+1`) or number; undefined when there is none. */
export function signalNumber(signal: string | number): number | undefined {
  if (typeof signal === 'number' || /^[0-9]{1,2}$/.test(signal)) {
    const number = Number(signal)
    return Number.isInteger(number) && number >= 1 && number <= realTimeMax ? number : undefined
  }
  const name = signal.toUpperCase().replace(/^SIG/, '')
  if (Object.hasOwn(numbers, name)) return numbers[name]
  const realTime = /^RT(MIN|MAX)(?:([+-])([0-9]{1,2}))?$/.exec(name)
  if (!realTime) return undefined
  const base = realTime[1] === 'MIN' ? realTimeMin : realTimeMax
  const number = base + Number(`${realTime[2] ?? ''}${realTime[3] ?? 0}`)
  return number >= realTimeMin && number <= realTimeMax ? number : undefined
}

/** The name of a signal number, with `SIG`; real-time ones count from SIGRTMIN. */
export function signalName(number: number): string | undefined {
  const name = Object.keys(numbers).find((key) => numbers[key] === number)
  if (name !== undefined) return `SIG${name}`
  if (number < realTimeMin || number > realTimeMax) return undefined
  return number === realTimeMin ? 'SIGRTMIN' : `SIGRTMIN+${number - realTimeMin}`
}
