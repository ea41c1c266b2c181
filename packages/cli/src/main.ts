/** The entry of the command line: everything behind it needs the Node.js version the project pins. */
const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  process.stderr.write(
    `space: this is Node.js ${process.versions.node}, SPACE runs on 24: start it with \`npx space\` or \`npm start\`.\n`,
  )
  process.exit(1)
}

const { main } = await import('./program.ts')
process.exit(await main(process.argv.slice(2)))
