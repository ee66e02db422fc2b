/** Where an answer goes: stdout, or a file. */

/** Writes to stdout and waits until it is taken. Failures reach the stream's own handler (`main.ts`). */
export async function writeStdout(text: string | Iterable<string>): Promise<void> {
  for (const piece of piecesOf(text)) {
    await new Promise<void>((resolve) => {
      process.stdout.write(piece, (error) => {
        if (!error) resolve();
      });
    });
  }
}

const piecesOf = (text: string | Iterable<string>) => (typeof text === 'string' ? [text] : text);

/** Whether the answer goes to stdout. */
export const isStdout = (output: string | undefined): output is undefined | '-' =>
  output === undefined || output === '-';

/** Writes `text` to `file`, whole or not at all; see `writeWhole`. */
export async function writeText(
  file: string,
  text: string | Iterable<string>,
  force: boolean,
): Promise<void> {
  const { writeWhole } = await import('../files/write-whole.js');
  await writeWhole(file, force, async (sink) => {
    for (const piece of piecesOf(text)) await sink.write(Buffer.from(piece));
  });
}
