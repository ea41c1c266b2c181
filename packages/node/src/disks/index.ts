export {
  allocatedBytes,
  ensureLayer,
  layerOver,
  layerOverTemplate,
  maxFrozenLayers,
  virtualBytes,
} from './chain.ts'
export { createLayer, emptyLayer, maxDiskBytes } from './qcow2.ts'
