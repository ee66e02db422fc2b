import { describe, expect, it } from 'vitest';
import { diagramOutline } from '../../src/report/draw/diagram-outline.js';
import { mermaidDiagram } from '../../src/report/draw/mermaid-diagram.js';
import { drawSvgDiagram } from '../../src/report/draw/svg-diagram.js';
import { drawDiagram } from '../../src/report/draw/text-diagram.js';
import { svgFile } from '../../src/report/render/picture/svg.js';
import { HOSTILE_DIAGRAMS } from '../report/hostile-diagrams.js';
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
    expect(stdout).toContain('model.layers.7.mlp.up_proj.weight (1,408, 512)');
    expect(stdout).not.toMatch(/Embedding|layers\.0/);
    const { code, stderr } = await draw('minimind2-small', '--block', '8');
    expect(code).toBe(2);
    expect(stderr).toContain('--block: expected at most 7, found 8');
  });

  it('draws the part that a path names, as long as it can mean only one', async () => {
    const part = async (path: string) => {
      const { code, stdout, stderr } = await draw('minimind2-small', '--block', path, '--json');
      if (code !== 0) return `${stdout}${stderr}`;
      const { part: found, block, nodes } = JSON.parse(stdout);
      return [block, found, nodes[0].label, nodes[0].parameters];
    };
    // 512 × (512 + 128 + 128 + 512)
    const attention = [null, 'layers.3.self_attn', 'Attention', 655_360];
    expect(await part('layers.3.self_attn')).toEqual(attention);
    expect((await part('model.layers.3.self_attn')).slice(2)).toEqual(attention.slice(2));
    expect((await part('layers.3')).slice(2)).toEqual(['block', 2_819_072]);
    expect(await part('3')).toEqual([3, null, 'block', 2_819_072]);
    expect(await part('self_attn')).toMatch(
      /8 parts are called .*self_attn[\s\S]*--block model\.layers\.0\.self_attn /,
    );
    expect(await part('layers.3.self_atn')).toMatch(/--block layers\.3\.self_attn /);
    expect(await part('layers.8')).toContain('--block: unknown part "layers.8"');
    expect((await part('layers.3.self_attn.')).slice(2)).toEqual(attention.slice(2));
    expect((await part('lm_head')).slice(2)).toEqual(['Head, tied', 0]);
  });

  it('has the figures of a part in its title', async () => {
    const { stdout } = await draw('minimind2-small', '--block', 'layers.3.self_attn');
    expect(stdout).toMatch(
      /^model\.layers\.3\.self_attn of minimind2-small: 655K of 25\.8M parameters · [\d.]+ of [\d.]+ GFLOPs\n/,
    );
    const { stdout: block } = await draw('minimind2-small', '--block', '7');
    expect(block).toMatch(/^block 7 of minimind2-small: 2\.82M of 25\.8M parameters · /);
  });

  it('draws the box of all experts for one of them, and says so', async () => {
    const path = 'model.layers.5.mlp.experts.7';
    const { code, stdout, stderr } = await draw('deepseek-v3', '--block', path);
    expect({ code, stdout: stdout + stderr }).toEqual({
      code: 0,
      stdout: expect.stringContaining(`"${path}" has no box of its own`),
    });
    const wrong = await draw('deepseek-v3', '--block', 'model.layers.5.mlp.experts.256');
    expect(wrong.code).toBe(2);
  });

  it('shows the types of a checkpoint, or of a config', async () => {
    const { stdout } = await draw('fixtures/hf/llama', '--details');
    expect(stdout).toContain('q_proj.weight (32, 32), f32');
    const config = await draw('fixtures/hf-configs/qwen3-8b', '--block', '0', '--details');
    expect(config.stdout).toContain('q_proj.weight (4,096, 4,096), bf16');
    const { stdout: none } = await draw('minimind2-small', '--json');
    expect(none).toContain('"dtype": null');
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

describe.each(HOSTILE_DIAGRAMS)('the hostile name %#', (block) => {
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

  it('stays text in a page', () => {
    const { text } = diagramOutline(block);
    expect(text.match(/<details>/g)).toHaveLength(3);
    expect(text).not.toMatch(/<img|<\/script|\u202e/);
  });

  it('stays text in SVG', () => {
    const svg = svgFile('title', drawSvgDiagram(block));
    expect(svg).not.toMatch(/<img|<\/script|\u202e/);
    expect(svg).not.toContain('x'.repeat(10_001));
  });
});
