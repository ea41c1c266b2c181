import { constants } from 'node:os'
import { signalName, signalNumber } from '@space/contract'
import { expect, test } from 'vitest'

test('every signal this host knows has the same number in the contract, with and without SIG', () => {
  for (const [name, number] of Object.entries(constants.signals)) {
    expect([name, signalNumber(name)]).toEqual([name, number])
    expect(signalNumber(name.slice(3).toLowerCase())).toBe(number)
  }
})

test.each([
  [9, 9],
  ['15', 15],
  ['SIGRTMIN', 34],
  ['SIGRTMIN+1', 35],
  ['SIGRTMAX-1', 63],
  [64, 64],
])('%j is signal %d', (signal, number) => {
  expect(signalNumber(signal)).toBe(number)
})

test.each([0, 65, -1, 1.5, '', 'SIG', 'SIGNOPE', 'SIGRTMIN+31', 'SIGRTMAX+1', 'constructor', '999'])(
  '%j is no signal',
  (signal) => {
    expect(signalNumber(signal)).toBeUndefined()
  },
)

test('a number is named as people know it', () => {
  expect([signalName(9), signalName(15), signalName(34), signalName(40), signalName(0)]).toEqual([
    'SIGKILL',
    'SIGTERM',
    'SIGRTMIN',
    'SIGRTMIN+6',
    undefined,
  ])
})
