/**
 * A control plane in a process of its own, to be killed: it accepts creates and deletes for as long as it lives, with
 * a node that never answers, and prints each one after the API acknowledged it.
 */
import { writeSync } from 'node:fs'
import { FakeNode } from './fake-node.ts'
import { startRig } from './rig.ts'

const [folder = ''] = process.argv.slice(2)
const node = new FakeNode()
node.before = (call) => (call === 'create' || call === 'delete' ? new Promise(() => 0) : Promise.resolve())
const rig = await startRig({ folder, node })

for (let index = 0; ; index++) {
  const made = await rig.call<{ sandbox: { id: string }; operation: { id: string } }>(
    'POST',
    '/v1/sandboxes',
    {
      template: 'base',
    },
  )
  writeSync(1, `${JSON.stringify({ sandbox: made.body.sandbox.id, operation: made.body.operation.id })}\n`)
  if (index % 4 !== 3) continue
  const removed = await rig.call<{ operation: { id: string } }>(
    'DELETE',
    `/v1/sandboxes/${made.body.sandbox.id}`,
  )
  writeSync(1, `${JSON.stringify({ deleted: made.body.sandbox.id, operation: removed.body.operation.id })}\n`)
}
