/** The wire contract between a node and the agent inside a microVM, as generated from `proto/guest/v1`. */
export * from './gen/guest/v1/guest_pb.ts'
