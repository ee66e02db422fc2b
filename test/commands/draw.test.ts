import { describe, expect, it } from 'vitest';
import type { DiagramNode } from '../../src/model/diagram/diagram.js';
import { mermaidDiagram } from '../../src/report/draw/mermaid-diagram.js';
import { drawSvgDiagram } from '../../src/report/draw/svg-diagram.js';
import { drawDiagram } from '../../src/report/draw/text-diagram.js';
import { svgFile } from '../../src/report/render/picture/svg.js';
import { runHere } from '../run-here.js';

const draw = (...args: string[]) => runHere(['draw', ...args]);

describe('minimind draw', () => {
  it('shows a dense model within one screen', async () => {
    const { code, stdout } = await draw('minimind2-small');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^minimind2-small: 25\.8M parameters · 8 blocks, all equal/);
    expect(stdout).toContain('8 × block 0–7');
    expect(stdout).toMatch(/■ Attention {2}8 heads of 64 · 2 KV heads · RoPE +655K/);
    expect(stdout).toMatch(/■ Head, tied ← \[1\]/);
    expect(stdout.split('\n').length).toBeLessThanOrEqual(24);
  });

  it('shows a table of all blocks once, with its uses', async () => {
    const { stdout } = await draw('hybrid/shared');
    expect(stdout).toContain('■ + SRTE ← [1]');
    expect(stdout).toMatch(/stored once:\n■ SRTE \[1\] {2}table 65,536 × 4,096 +268M/);
  });

  it('marks what differs from another model', async () => {
    const { stdout } = await draw(
      'minimind2-small',
      '--set',
      'model.n_layers=4',
      '--against',
      'minimind2-small',
    );
    expect(stdout).toContain('was 8 ×');
    const same = await draw('minimind2-small', '--against', 'minimind2-small');
    expect(same.stdout).toContain('no box differs');
  });

  it('draws one block, and refuses one that the model does not have', async () => {
    const { stdout } = await draw('minimind2-small', '--block', '7', '--details');
    expect(stdout).toContain('╭─ block 7');
    expect(stdout).not.toContain('Embedding');
    const { code, stderr } = await draw('minimind2-small', '--block', '8');
    expect(code).toBe(2);
    expect(stderr).toContain('--block: expected at most 7, found 8');
  });

  it('lists nodes and links in JSON', async () => {
    const { stdout } = await draw('minimind2-small', '--json');
    const { schema, nodes, links } = JSON.parse(stdout);
    expect(schema).toBe('minimind/draw@1');
    const labelOf = (id: string) => nodes.find((node: { id: string }) => node.id === id).label;
    expect(
      links.map(({ from, to, kind }: Record<string, string>) => [
        labelOf(from ?? ''),
        labelOf(to ?? ''),
        kind,
      ]),
    ).toEqual([['Embedding', 'Head, tied', 'tied']]);
  });
});

const HOSTILE = [
  '</script><img src=x>',
  '"];click n1 "javascript:1',
  '`%%{init}%%`',
  '\u202eabc',
  '🙂"',
  'x'.repeat(10_000),
];

const box = (id: string, label: string): DiagramNode => ({
  id,
  kind: 'box',
  label,
  notes: [label],
  component: 'attention',
  count: 1,
  blocks: [],
  width: 8,
  parameters: 1,
  buffers: 0,
  flops: 1,
  tensors: [{ name: label, shape: [1], count: 1, role: 'parameter' }],
  children: [],
  change: 'same',
  before: [],
});

describe.each(HOSTILE)('the hostile name %#', (name) => {
  const root: DiagramNode = {
    ...box('n0', ''),
    kind: 'series',
    tensors: [],
    children: [box('n1', name), { ...box('n2', name), kind: 'group', children: [box('n3', name)] }],
  };
  const block = {
    kind: 'diagram',
    title: name,
    diagram: { root, shared: [], links: [] },
    hasTensors: true,
  } as const;

  it('stays text within the terminal', () => {
    for (const isAscii of [false, true]) {
      for (const line of drawDiagram(block, 80, isAscii)) {
        const text = line.map((span) => span.text).join('');
        expect(text.length).toBeLessThanOrEqual(isAscii ? 120 : 80);
        expect(text).not.toMatch(/[\n\u202e]/);
        if (isAscii) expect(text).toMatch(/^[ -~]*$/);
      }
    }
  });

  it('stays a label in Mermaid', () => {
    const lines = mermaidDiagram(block).split('\n');
    expect(lines[0]).not.toMatch(/[{}]/);
    for (const line of lines.slice(2)) {
      expect(line).toMatch(
        /^ *(?:\w+(?:\[|\(\[|\(\(|\()"[^"`<>{}]*(?:<br\/>[^"`<>{}]*)*"[\])]+|subgraph \w+\["[^"`<>{}]*"\]|end|\w+ -->(?:\|"[^"]*"\|)? \w+)$/,
      );
      expect(line.length).toBeLessThan(4000);
    }
  });

  it('stays text in SVG', () => {
    const svg = svgFile('title', drawSvgDiagram(block));
    expect(svg).not.toMatch(/<img|<\/script|\u202e/);
    expect(svg).not.toContain('x'.repeat(10_001));
  });
});
