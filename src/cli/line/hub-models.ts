/** Models of the hub on a command line. Loaded only when there is one. */
import { formatBytes } from '../../base/text/units.js';
import type { HubNeed, MountedReference } from '../../input/hub/mount-reference.js';
import { mountReference } from '../../input/hub/mount-reference.js';
import { needsDownload } from '../../input/hub/needs-download.js';
import { parseHubReference, pinnedPath } from '../../input/hub/reference.js';
import { progressDisplay } from '../progress.js';

interface MountOptions {
  /** Name of the command, for messages. */
  readonly command: string;
  readonly need: HubNeed | undefined;
  readonly flags: {
    readonly quiet: boolean;
    readonly offline?: boolean;
    readonly 'state-dict'?: unknown;
  };
  readonly note: (text: string) => void;
  /** Whether to name models by their commits, for a plan that other machines follow. */
  readonly isPinned: boolean;
}

/** Commands that read the tensors of a checkpoint from its index, and not its config alone. */
const OF_TENSORS: ReadonlySet<string> = new Set(['inspect', 'verify', 'compare-srte']);

export interface MountedModels {
  readonly references: readonly MountedReference[];
  /** Maps references as written to the paths that commands read. */
  readonly paths: ReadonlyMap<string, string>;
}

/**
 * Mounts references, and names the commit of each.
 * @throws UserError when the command reads no models of the hub, or one cannot be read.
 */
export async function mountAll(
  texts: readonly string[],
  { command, need, flags, note, isPinned }: MountOptions,
): Promise<MountedModels> {
  const parsed = texts.map((text) => ({ text, reference: parseHubReference(text) }));
  const references: MountedReference[] = [];
  const paths = new Map<string, string>();
  for (const { text, reference } of parsed) {
    if (need === undefined) throw needsDownload(`minimind ${command}`, reference);
    const mounted = await mountReference({
      ...{ reference, text, need, takesSizes: need !== 'values' && !OF_TENSORS.has(command) },
      isOffline: flags.offline ?? false,
      // For two sides with a state dict each, the reader of each side fetches what it needs.
      stateDict: typeof flags['state-dict'] === 'string' ? flags['state-dict'] : undefined,
      display: progressDisplay(flags),
      warn: note,
    });
    references.push(mounted);
    paths.set(text, isPinned ? pinnedPath(reference, mounted.commit) : reference.path);
    note(commitText(mounted));
    if (need === 'config' && command === 'quick-test') {
      note(`${text}: the weights are not downloaded, and the test uses random weights`);
    }
  }
  return { references, paths };
}

const ORIGINS: Readonly<Record<MountedReference['origin'], string>> = {
  reference: '',
  hub: '',
  'user-cache': ', the one in your Hugging Face cache',
  cache: ', the last one that was read',
};

function commitText({ reference, commit, origin, bytesFetched }: MountedReference): string {
  const fetched = bytesFetched > 0 ? ` (${formatBytes(bytesFetched)} fetched)` : '';
  return `${reference} is commit ${commit}${ORIGINS[origin]}${fetched}`;
}
