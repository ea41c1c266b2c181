/** The QEMU driver keeps what every machine driver promises, with the real agent in a real machine. */
import { machineContract } from '@space/testkit/machine-contract'
import { qemuSubject } from './fixture/qemu-subject.ts'

machineContract('qemu', qemuSubject)
