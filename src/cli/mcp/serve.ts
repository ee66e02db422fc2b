/** The server of the Model Context Protocol on stdin and stdout. */
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { UserError } from '../../base/errors.js';
import { answerOf } from './answer.js';
import { confined, confinedModel } from './confined-paths.js';
import { inToolWords } from './tool-words.js';
import { possiblePaths, TOOLS } from './tools.js';

const INSTRUCTIONS =
  'Exact counts and estimates about language models from their configs and checkpoint headers. Figures with a range are ' +
  'estimates. GB is 10^9 bytes, GiB 2^30. Ask for `fields` when a figure is computed with.';

export interface ServerOptions {
  /** Real path of the folder below which files can be named. */
  readonly root: string;
  readonly version: string;
  /** Whether models of the hub are read only from caches. */
  readonly isOffline: boolean;
}

/** Serves until the client closes stdin. */
export async function serve({ root, version, isOffline }: ServerOptions): Promise<void> {
  const server = new McpServer({ name: 'minimind', version }, { instructions: INSTRUCTIONS });
  for (const [name, { title, description, input, models, flags }] of Object.entries(TOOLS)) {
    server.registerTool(
      name,
      {
        title,
        description,
        inputSchema: input.strict(),
        annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: !isOffline },
      },
      async (given, { mcpReq: { signal } }) => {
        const { fields } = given as { readonly fields?: readonly string[] };
        try {
          for (const each of possiblePaths(given)) confined(each, root);
          const words = [
            name,
            ...models(given).map((each) => confinedModel(each, root)),
            ...flags(given),
            ...(isOffline ? ['--offline'] : []),
            ...(fields === undefined ? ['--format=markdown'] : [`--fields=${fields.join(',')}`]),
          ];
          const { text, isError } = await answerOf(words, { root, signal });
          const said = isError ? inToolWords(text, name) : text;
          return { content: [{ type: 'text', text: said }], isError };
        } catch (error) {
          if (!(error instanceof UserError)) throw error;
          const text = [error.message, error.suggestion].filter((each) => each).join('\n');
          return { content: [{ type: 'text', text }], isError: true };
        }
      },
    );
  }
  const transport = new StdioServerTransport();
  const closed = new Promise<void>((resolve) => {
    server.server.onclose = resolve;
  });
  await server.connect(transport);
  await closed;
}
