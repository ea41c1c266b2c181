import { Code, ConnectError } from '@connectrpc/connect'
import { errorBody, errorCatalogue, errorCodes, PublicError, toPublicError } from '@space/contract'
import { fromConnectError, toConnectError } from '@space/contract/node-link'
import { expect, test } from 'vitest'

test('the catalogue holds exactly the codes of the contract with their statuses', () => {
  const statuses = Object.fromEntries(errorCodes.map((code) => [code, errorCatalogue[code].status]))
  expect(statuses).toEqual({
    invalid_request: 400,
    unauthorized: 401,
    forbidden: 403,
    not_found: 404,
    conflict: 409,
    idempotency_conflict: 409,
    failed_precondition: 409,
    rate_limited: 429,
    capacity_unavailable: 503,
    service_unavailable: 503,
    internal: 500,
  })
})

test.each(errorCodes)('%s crosses the link between control and node unchanged', (code) => {
  const error = new PublicError(code, 'What was wrong.', {
    details: { field: 'shape.vcpus', reason: 'out_of_disk' },
    retryable: true,
  })
  expect(errorBody(fromConnectError(toConnectError(error)))).toEqual(errorBody(error))
})

test('a link that is cut is worth another try, an unknown failure is internal and says nothing of its cause', () => {
  expect(fromConnectError(new ConnectError('gone', Code.Unavailable)).code).toBe('service_unavailable')
  expect(fromConnectError(new ConnectError('cut', Code.Canceled)).retryable).toBe(true)
  const internal = fromConnectError(new TypeError('/var/lib/space/secret'))
  expect(internal.code).toBe('internal')
  expect(internal.message).not.toContain('/var')
})

test('what was never meant for the public becomes internal, its cause kept for the log', () => {
  const cause = new TypeError('/root/x is undefined')
  const error = toPublicError(cause)
  expect(error.code).toBe('internal')
  expect(error.message).not.toContain('/root')
  expect(error.cause).toBe(cause)
})
