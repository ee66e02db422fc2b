// The program of test/command-process.ts: runs the command lines that its parent sends. It is a file, because the
// threads of a program that is given with -e would be given it too.
const root = new URL('../', import.meta.url);

// As in bin/run.js.
globalThis.oclif = { enableAutoTranspile: false };

process.on('message', async ({ args, env }) => {
  // One by one: of another object, the system would know nothing.
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  const run = { code: 0, stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    process[name].write = (text, ...rest) => {
      run[name] += Buffer.from(text).toString();
      for (const callback of rest) if (typeof callback === 'function') callback();
      return true;
    };
  }
  process.exitCode = undefined;
  const { runCommandLine } = await import(new URL('dist/cli/main.js', root));
  await runCommandLine(args, root);
  process.send({ ...run, code: Number(process.exitCode ?? 0) });
});
