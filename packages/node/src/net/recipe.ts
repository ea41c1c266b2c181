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

/** Rules inside the namespace while no gateway listens there: nothing comes in, nothing goes out or through. */
export function closedRules(): string {
  const chain = (name: string, hook: string): string =>
    `  chain ${name} {\n    type filter hook ${hook} priority 0; policy drop;\n  }`
  const chains = [chain('incoming', 'input'), chain('outgoing', 'output'), chain('passing', 'forward')]
  return `table inet space {\n${chains.join('\n')}\n}\n`
}

/** Settings of the namespace: `/proc/sys` file and value. A file that is missing (no IPv6) is left out. */
export const namespaceSettings: readonly (readonly [string, string])[] = [
  ['/proc/sys/net/ipv6/conf/all/disable_ipv6', '1'],
  ['/proc/sys/net/ipv6/conf/default/disable_ipv6', '1'],
  ['/proc/sys/net/ipv4/ip_forward', '0'],
]
