/** The same in every sandbox, since namespaces are apart and a snapshot must not need rewriting. The guest has .21. */
export const gatewayAddress = '169.254.0.22'
export const prefixLength = 30

/** Fixed on both sides, so that neighbour entries survive a restore. Locally administered. */
export const guestMac = '02:53:50:43:00:15'
export const gatewayMac = '02:53:50:43:00:16'

/** Name of the tap device inside a sandbox's namespace. */
export const tapName = 'tap0'
