// In place of `debug`, which the command library loads for a log that minimind never turns on.
module.exports = () => Object.assign(() => {}, { enabled: false });
