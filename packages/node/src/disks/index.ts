export {
  allocatedBytes,
  ensureLayerAfter,
  layerOver,
  layerOverTemplate,
  maxFrozenLayers,
} from './chain.ts'
export { createLayer, emptyLayer, layerBytes, maxDiskBytes } from './qcow2.ts'
