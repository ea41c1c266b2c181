import { defineConfig } from 'vitest/config'

if (Number(process.versions.node.split('.')[0]) < 24)
  throw new Error(`Tests run on the pinned Node.js 24, this is ${process.versions.node}: use \`npm test\`.`)

export default defineConfig({
  test: {
    reporters: ['default', './scripts/tally-reporter.ts'],
    expect: { requireAssertions: true },
    passWithNoTests: false,
    coverage: { provider: 'v8', include: ['packages/*/src/**'] },
    experimental: { viteModuleRunner: false },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['packages/*/test/**/*.test.ts', 'scripts/**/*.test.ts'],
          exclude: ['**/*.system.test.ts', '**/node_modules/**'],
          pool: 'forks',
          testTimeout: 30_000,
          hookTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'system',
          include: ['packages/*/test/**/*.system.test.ts', 'test/**/*.system.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
