#!/usr/bin/env node
// `npx space` in a clone, from any Node.js from 18 on: hands everything to the launcher, which runs the command line
// on the Node.js version the lockfile pins.
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const packageRoot = dirname(dirname(fileURLToPath(import.meta.url)))
process.argv.splice(2, 0, join(packageRoot, 'src', 'main.ts'))
await import(new URL('../../../scripts/run.mjs', import.meta.url).href)
