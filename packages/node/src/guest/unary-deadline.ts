import { Code, ConnectError, type Interceptor } from '@connectrpc/connect'

/** Ends every unary call that has no answer after so long; streams live as long as their caller wants. */
export function unaryDeadline(timeoutMs: number): Interceptor {
  return (next) => async (request) => {
    if (request.stream) return next(request)
    const deadline = AbortSignal.timeout(timeoutMs)
    try {
      return await next({ ...request, signal: AbortSignal.any([request.signal, deadline]) })
    } catch (error) {
      if (!deadline.aborted || request.signal.aborted) throw error
      throw new ConnectError(`no answer from the agent in ${timeoutMs} ms`, Code.DeadlineExceeded)
    }
  }
}
