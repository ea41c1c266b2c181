import { expect, test } from 'vitest'
import { loadOrder, moduleName, parseBuiltinModules, parseModuleNeeds } from '../src/images/modules.ts'

const needs = parseModuleNeeds(
  [
    'kernel/drivers/net/virtio_net.ko: kernel/net/core/net_failover.ko kernel/net/failover.ko kernel/virtio/virtio.ko',
    'kernel/net/core/net_failover.ko: kernel/net/failover.ko',
    'kernel/net/failover.ko:',
    'kernel/virtio/virtio.ko: kernel/virtio/virtio_ring.ko',
    'kernel/virtio/virtio_ring.ko:',
    'kernel/char/virtio-rng.ko: kernel/virtio/virtio.ko',
  ].join('\n'),
)
const builtin = parseBuiltinModules('kernel/fs/ext4/ext4.ko\nkernel/fs/jbd2/jbd2.ko\n')

test('every module comes after all it needs, each once', () => {
  const order = loadOrder(['virtio_net', 'virtio_rng'], needs, builtin)
  expect(new Set(order).size).toBe(order.length)
  expect(order).toHaveLength(6)
  for (const [at, path] of order.entries())
    for (const needed of needs.get(path) ?? []) expect(order.indexOf(needed)).toBeLessThan(at)
})

test('a module the kernel has built in is left out', () => {
  expect(loadOrder(['ext4', 'failover'], needs, builtin)).toEqual(['kernel/net/failover.ko'])
})

test('a module the kernel lacks is named in the error', () => {
  expect(() => loadOrder(['virtio_fs'], needs, builtin)).toThrow(/no module virtio_fs/)
})

test('a circle among modules ends', () => {
  const circle = parseModuleNeeds('a.ko: b.ko\nb.ko: a.ko\n')
  expect(loadOrder(['a'], circle, new Set())).toEqual(['b.ko', 'a.ko'])
})

test('a module is known by the name the kernel gives it', () => {
  expect(moduleName('kernel/drivers/char/hw_random/virtio-rng.ko')).toBe('virtio_rng')
  expect(moduleName('kernel/x/y.ko.xz')).toBe('y')
})
