// The software bill of materials (CycloneDX): what npm installs with the package, and what is bundled in it.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** npm's own bill of all that package-lock.json names, whatever the npm that called has been told. */
const WORDS = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only'];
const WHOLE = ['--include=dev', '--include=optional', '--include=peer', '--no-global'];

/**
 * The text of the bill: the same for the same lock file, whichever npm writes it.
 * @param root Folder of the package.
 * @param bundled Titles, `name@version`, of the packages in the bundle.
 * @throws Error when a bundled package is not in the lock file.
 */
export function billOfMaterials(root, bundled) {
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const bill = JSON.parse(npm([...WORDS, ...WHOLE, '--loglevel=error'], root));
  const components = new Map(bill.components.map((each) => [each['bom-ref'], each]));
  const missing = bundled.filter((ref) => !components.has(ref));
  if (missing.length > 0) throw new Error(`not in package-lock.json: ${missing.join(', ')}`);

  const graph = graphOf(bill.dependencies);
  const self = bill.metadata.component['bom-ref'];
  const direct = [...graph.get(self)].filter(
    (ref) => components.get(ref).name in manifest.dependencies,
  );
  const inBundle = new Set(bundled);
  const kept = new Set([...reachable(graph, direct), ...bundled]);

  // Serial number and time differ with every run, and the name is that of the folder.
  const { serialNumber, metadata, ...rest } = bill;
  const { name } = manifest;
  const refs = [...kept].sort();
  const finished = {
    ...rest,
    metadata: {
      lifecycles: metadata.lifecycles,
      tools: metadata.tools.map(({ version, ...tool }) => tool),
      component: { ...metadata.component, name, properties: [] },
    },
    components: refs.map((ref) => ({
      ...components.get(ref),
      scope: 'required',
      properties: inBundle.has(ref) ? [{ name: 'cdx:npm:package:bundled', value: 'true' }] : [],
    })),
    dependencies: [self, ...refs].map((ref) => ({
      ref,
      dependsOn: [...graph.get(ref)].filter((other) => kept.has(other)).sort(),
    })),
  };
  return `${JSON.stringify(finished, null, 2)}\n`;
}

function npm(words, root) {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 };
  const { npm_execpath: running } = process.env;
  if (running) return execFileSync(process.execPath, [running, ...words], options);
  return execFileSync('npm', words, { ...options, shell: process.platform === 'win32' });
}

/** A package that is installed in several places is listed for each. */
function graphOf(dependencies) {
  const graph = new Map();
  for (const { ref, dependsOn } of dependencies) {
    graph.set(ref, new Set([...(graph.get(ref) ?? []), ...dependsOn]));
  }
  return graph;
}

/** All that `refs` depend on, and they themselves. */
function reachable(graph, refs) {
  const found = new Set(refs);
  for (const ref of found) for (const next of graph.get(ref)) found.add(next);
  return found;
}
