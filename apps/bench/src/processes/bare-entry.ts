/** A process with an empty program: it says that it is there. */
process.on('message', () => process.send!({ value: 0 }))
process.on('disconnect', () => process.exit(0))
