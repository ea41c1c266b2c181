export { layerOver } from './chain.ts'
export { createLayer, emptyLayer, layerBytes } from './qcow2.ts'
