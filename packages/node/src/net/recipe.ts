import { gatewayAddress, gatewayMac, prefixLength, tapName } from './addresses.ts'

/** What `ip -batch` does inside a new namespace: loopback and one tap that is up, no uplink and no route out. */
export function namespaceCommands(): string {
  return [
    'link set dev lo up',
    `tuntap add dev ${tapName} mode tap vnet_hdr`,
    `link set dev ${tapName} address ${gatewayMac}`,
    `address add ${gatewayAddress}/${prefixLength} dev ${tapName}`,
    `link set dev ${tapName} up`,
    '',
  ].join('\n')
}

/** Refusals a second a guest is answered with; what it sends beyond is dropped in silence. */
const refusalsPerSecond = 2_000

/**
 * Rules inside the namespace while no gateway listens there: whatever the guest sends is refused at once, so that its
 * programs fail instead of hanging. The refusal stands in prerouting, since without a route a packet reaches no later
 * chain. Only refusals go out, back to the guest.
 */
export function closedRules(): string {
  return `table inet space {
  chain refusing {
    type filter hook prerouting priority 0; policy drop;
    limit rate over ${refusalsPerSecond}/second drop
    meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }
  chain incoming {
    type filter hook input priority 0; policy drop;
  }
  chain passing {
    type filter hook forward priority 0; policy drop;
  }
  chain outgoing {
    type filter hook output priority 0; policy drop;
    oifname "${tapName}" accept
  }
}
`
}

/** Settings of the namespace: `/proc/sys` file and value. A file that is missing (no IPv6) is left out. */
export const namespaceSettings: readonly (readonly [string, string])[] = [
  ['/proc/sys/net/ipv6/conf/all/disable_ipv6', '1'],
  ['/proc/sys/net/ipv6/conf/default/disable_ipv6', '1'],
  ['/proc/sys/net/ipv4/ip_forward', '0'],
  // Every refusal is told, not one a second.
  ['/proc/sys/net/ipv4/icmp_ratelimit', '0'],
  ['/proc/sys/net/ipv4/icmp_ratemask', '0'],
]
