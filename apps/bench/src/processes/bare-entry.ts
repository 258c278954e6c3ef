/** A process with an empty program: it reports that it runs. */
process.on('message', () => process.send!({ value: 0 }))
process.on('disconnect', () => process.exit(0))
