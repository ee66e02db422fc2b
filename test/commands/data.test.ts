import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const TOKENIZER = ['--tokenizer', 'fixtures/data/tokenizer'];

describe('data', () => {
  let folder: string;
  beforeAll(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  });
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

  const written = (name: string, content: string | Buffer) => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, content);
    return file;
  };

  const resultOf = async (file: string, ...flags: string[]) => {
    const { stdout, stderr, code } = await runHere([
      'data',
      file,
      ...TOKENIZER,
      '--json',
      ...flags,
    ]);
    return { ...JSON.parse(stdout), stderr, code };
  };

  it('has the counts of a count by hand', async () => {
    // 1 token each for "a" and "好": BOS + 1 + EOS.
    const file = written(
      'three.jsonl',
      '{"text":"a"}\n\n{"text":"好"}\n{"text":""}\n{"text":"a"}\n',
    );
    const { figures, faults, packing, kind } = await resultOf(file, '--context', '8');
    expect(kind).toBe('text');
    expect(figures).toMatchObject({ lines: 5, blankLines: 1, samples: 4, sequences: 4 });
    expect(figures.tokens).toMatchObject({
      tokens: 11,
      uncut: 11,
      counted: 7,
      positions: 32,
      padding: 21,
      paddingShare: 21 / 32,
      cut: 0,
    });
    expect(figures.tokens.empty).toMatchObject({ count: 1, first: [{ line: 4 }] });
    expect(figures.duplicates.exact.first).toMatchObject([
      { place: { line: 5 }, first: { line: 1 } },
    ]);
    expect(packing).toEqual({ sequences: 2, saved: 0.5 });
    expect(faults.map(({ name }: { name: string }) => name)).toEqual([
      'duplicates',
      'empty-samples',
    ]);
  });

  it('counts blank lines before the first record', async () => {
    const file = written('late.jsonl', `${'\n'.repeat(200_000)}{"text":""}\n\n{"text":"ab"}\n`);
    const whole = await resultOf(file);
    expect(whole.figures).toMatchObject({ lines: 200_003, blankLines: 200_001, samples: 2 });
    expect(whole.figures.tokens.empty.first).toMatchObject([{ line: 200_001 }]);
    const { figures } = await resultOf(file, '--line', '199999');
    expect(figures).toMatchObject({ lines: 5, blankLines: 3, samples: 2 });
  });

  // Python: len(text.strip()) == 0 for each, except U+200B, which no font shows.
  const WHITE = [' ', '\n\t ', '\u3000', '\u0085', '\u200b'];

  it.each(['minimind3', 'minimind2', 'plain'])(
    'reports texts of white space in %s',
    async (recipe) => {
      const texts = ['a', ...WHITE, '', ' b '];
      const file = written('white.jsonl', texts.map((text) => JSON.stringify({ text })).join('\n'));
      const { faults, figures, code } = await resultOf(file, '--recipe', recipe, '--check');
      expect(code).toBe(1);
      expect(figures.whiteSpace.count).toBe(5);
      expect(faults).toContainEqual({
        name: 'white-space-samples',
        count: 5,
        message: '5 samples with only white space as text',
        places: ['line 2', 'line 3', 'line 4', 'line 5', 'line 6'],
      });
      expect(faults).toContainEqual(
        expect.objectContaining({ name: 'empty-samples', count: 1, places: ['line 7'] }),
      );
    },
  );

  it('reports blank texts without a tokenizer', async () => {
    const file = written('white-only.jsonl', '{"text":"  "}\n{"text":""}\n{"text":"a"}\n');
    const { stdout } = await runHere(['data', file, '--json']);
    expect(JSON.parse(stdout).faults).toMatchObject([
      { name: 'empty-samples', places: ['line 2'] },
      { name: 'white-space-samples', places: ['line 1'] },
    ]);
  });

  it('reports chats and pairs that say nothing, and blank answers', async () => {
    const chat = (user: string, assistant: object | string) => ({
      conversations: [
        { role: 'user', content: user },
        {
          role: 'assistant',
          ...(typeof assistant === 'string' ? { content: assistant } : assistant),
        },
      ],
    });
    const chats = [
      chat('hi', 'there'),
      chat(' ', '\n'),
      chat('hi', ' \n'),
      chat('what', ''),
      chat('why', { content: '', reasoning_content: 'hm' }),
    ];
    const file = written('blank-chats.jsonl', chats.map((each) => JSON.stringify(each)).join('\n'));
    const { faults } = await resultOf(file);
    expect(faults.slice(-2)).toMatchObject([
      { name: 'white-space-samples', count: 1, places: ['line 2'] },
      { name: 'blank-answers', count: 2, places: ['line 3', 'line 4'] },
    ]);
    const pairs = [
      { prompt: 'hi', chosen: 'a', rejected: 'b' },
      { prompt: 'who', chosen: 'c', rejected: '  ' },
    ];
    const other = written(
      'blank-pairs.jsonl',
      pairs.map((each) => JSON.stringify(each)).join('\n'),
    );
    const { faults: found } = await resultOf(other);
    expect(found.slice(-1)).toMatchObject([
      { name: 'blank-answers', count: 1, places: ['line 2'] },
    ]);
  });

  it('shows the shift and the mask, with wide characters aligned', async () => {
    const file = written(
      'wide.jsonl',
      '{"conversations":[{"role":"user","content":"你好"},{"role":"assistant","content":"好的 👍"}]}\n',
    );
    const { stdout } = await runHere([
      'data',
      file,
      ...TOKENIZER,
      '--show',
      '1',
      '--context',
      '32',
    ]);
    expect(stdout.split('\n').slice(5, 26)).toMatchInlineSnapshot(`
      [
        " #     X  text               Y  text            mask",
        "──  ────  ──────────────  ────  ──────────────  ────",
        " 0     1  "<|im_start|>"   832  "us"               0",
        " 1   832  "us"             311  "er"               0",
        " 2   311  "er"             234  "\\n"               0",
        " 3   234  "\\n"            1968  "你好"             0",
        " 4  1968  "你好"             2  "<|im_end|>"       0",
        " 5     2  "<|im_end|>"     234  "\\n"               0",
        " 6   234  "\\n"               1  "<|im_start|>"     0",
        " 7     1  "<|im_start|>"  1388  "ass"              0",
        " 8  1388  "ass"            570  "ist"              0",
        " 9   570  "ist"            811  "ant"              0",
        "10   811  "ant"            234  "\\n"               0",
        "11   234  "\\n"            1674  "好的"             1",
        "12  1674  "好的"           256  " "                1",
        "13   256  " "             4544  "<f0><9f>"         1",
        "14  4544  "<f0><9f>"       275  "<91>"             1",
        "15   275  "<91>"           271  "<8d>"             1",
        "16   271  "<8d>"             2  "<|im_end|>"       1",
        "17     2  "<|im_end|>"     234  "\\n"               1",
        "18   234  "\\n"               0  padding            0",
      ]
    `);
  });

  it('reports the fault of each line, and reads the others', async () => {
    const deep = `{"text":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const file = written(
      'hostile.jsonl',
      Buffer.concat([
        Buffer.from('\ufeff{"text":"first"}\r\n'),
        Buffer.from('{"text":"a\u0000b"}\n{"text":"\\u0000"}\n'),
        Buffer.from([0x7b, 0x22, 0x61, 0xff, 0x0a]),
        Buffer.from('{"text":12}\n{"txt":"a"}\n{"text":"a"\n[1]\n'),
        Buffer.from(`${deep}\n{"text":"${'x'.repeat(8_000_001)}"}\n{"text":"half \\ud800"}\n`),
        Buffer.from('{"text":"last"}'),
      ]),
    );
    const { figures, faults, files } = await resultOf(file);
    expect(figures.samples).toBe(4);
    expect(files).toMatchObject([{ hasByteOrderMark: true, crlfLines: 1 }]);
    const [invalid] = faults;
    expect(invalid.places).toEqual([
      expect.stringMatching(/^line 2: Bad control character/),
      'line 4: byte 4 is not UTF-8',
      'line 5: text: expected a text, found the number 12',
      'line 6: expected the key text, found txt',
      expect.stringMatching(/^line 7: Expected/),
      'line 8: expected an object, found a list',
      'line 9: is nested deeper than 128 levels',
      'line 10: has 8.0 MB, more than the 8 MB that are read',
    ]);
    expect(faults.map(({ name }: { name: string }) => name)).toEqual([
      'invalid-lines',
      'control-characters',
      'half-surrogates',
    ]);
  });

  it.each([
    [
      'chat.parquet',
      /^ +data +chats in Parquet of 11\.8 kB \(by content\): unpacked 85\.6 kB, 200 lines/m,
    ],
    ['pretrain.jsonl.zst', /^ +data +texts in Zstandard of [\d.]+ k?B \(by content\): unpacked /m],
  ])('names the container of %s and its own size', async (name, line) => {
    const file = `fixtures/data/packed/${name}`;
    const { stdout } = await runHere(['data', file]);
    expect(stdout).toMatch(line);
    const { stdout: json } = await runHere(['data', file, '--json']);
    const [{ fileBytes, bytes, packing }] = JSON.parse(json).files;
    expect(fileBytes).toBe(fs.statSync(inPackage(file)).size);
    expect(bytes).toBeGreaterThan(fileBytes);
    expect(packing).not.toBeNull();
  });

  it.each<[string, string | Buffer, string]>([
    ['empty.jsonl', '', 'is empty'],
    ['picture.jsonl', Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), 'found a PNG picture'],
    [
      'random.txt',
      Buffer.from(Array.from({ length: 999 }, (_, at) => (at * 7) % 31)),
      'found binary data',
    ],
    ['wide.txt', Buffer.from('\ufeffhello\n', 'utf16le'), 'found UTF-16 text'],
    ['table.parquet', 'PAR1xxxx', 'the Parquet data is damaged'],
    ['short.zst', Buffer.from('\x28\xb5\x2f\xfd\x04', 'latin1'), 'broken or cut short'],
    ['list.json', '[\n{"text":"a"},\n{"text":"b"}\n]\n', 'found a JSON list'],
    ['pretty.json', '{\n  "text": "a"\n}\n', 'found none in the first lines'],
    ['keys.jsonl', '{"content":"a","id":1}\n', 'found content and id'],
    ['strings.jsonl', '"one text"\n"another"\n', "write jq -c '{text: .}' FILE > texts.jsonl"],
    ['strings.txt', '"one text"\n"another"\n', 'found the string one text'],
    ['numbers.jsonl', '17\n-2.5\n3e2\n', 'found the number 17'],
    ['numbers.txt', '17\n18\n', 'as in [1, 2, 3]'],
    ['words.ndjson', 'null\ntrue\n', 'found null'],
    ['text.jsonl', 'plain text\nof two lines\n', 'found the text plain text'],
    ['text.jsonl.gz', gzipSync('plain text\n'), 'for plain text as it is write --as plain'],
    ['short.gz', gzipSync('{"text":"a"}\n'.repeat(999)).subarray(0, 40), 'broken or cut short'],
    ['odd.bin', Buffer.alloc(1001), 'found 1 byte left over'],
  ])('refuses %s with one clear error', async (name, content, message) => {
    const { code, stderr, stdout } = await runHere(['data', written(name, content), ...TOKENIZER]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr.match(/^error: /gm)).toHaveLength(1);
  });

  it('reads plain text if the lines are not JSON, and with --as plain', async () => {
    const plain = written('quotes.txt', '"Yes," she said.\n17 apples\n');
    expect((await resultOf(plain)).kind).toBe('plain');
    const strings = written('again.jsonl', '"one text"\n');
    expect((await resultOf(strings, '--as', 'plain')).kind).toBe('plain');
  });

  it('refuses --key for data without keys', async () => {
    for (const content of ['[1,2,3]\n', '{"messages":[]}\n', 'plain text\n']) {
      const file = written('keyless.txt', content);
      const { code, stderr } = await runHere(['data', file, ...TOKENIZER, '--key', 'body']);
      expect({ code, stderr }, content).toEqual({
        code: 2,
        stderr: expect.stringMatching(/--key requires|expected records with the key body/),
      });
    }
  });

  it.each([
    [['--line', '999'], 'expected a line of the data, found 999, beyond its end'],
    [['--tokens', '0'], 'expected tokens above 0, found 0'],
    [['--near', '200%'], 'expected a share above 0, at most 1, found "200%"'],
  ])('refuses %j', async (flags, message) => {
    const words = ['data', 'fixtures/data/pretrain.jsonl', ...TOKENIZER, ...flags];
    expect(await runHere(words)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    });
  });

  it('refuses a folder, and a second kind of data', async () => {
    expect((await runHere(['data', folder])).stderr).toContain(
      'is a folder where a file should be',
    );
    const mixed = await runHere([
      'data',
      'fixtures/data/chat.jsonl',
      'fixtures/data/pretrain.jsonl',
    ]);
    expect([mixed.code, mixed.stderr]).toEqual([
      2,
      expect.stringContaining('expected files of one kind'),
    ]);
  });

  it('reads ids as text, JSON and in binary form', async () => {
    const bin = Buffer.alloc(2 * 2001);
    for (let at = 0; at < 2001; at++) bin.writeUInt16LE(at, 2 * at);
    const stream = await resultOf(written('train.bin', bin), '--context', '500');
    expect(stream.kind).toBe('uint16');
    // 2001 ids have 2000 targets: four windows of 500.
    expect(stream.figures.tokens).toMatchObject({
      tokens: 2001,
      counted: 2000,
      padding: 0,
      highestId: 2000,
    });
    expect(stream.figures.samples).toBe(4);
    const ids = await resultOf(written('ids.json', '[[5,17,3],[9,6400]]\n'), '--context', '4');
    expect(ids.figures.tokens).toMatchObject({ tokens: 5, counted: 3 });
    expect(ids.faults).toMatchObject([{ name: 'beyond-vocabulary', count: 1, places: ['line 1'] }]);
    const text = await resultOf(written('ids.txt', '1 2 3\n4 5\n'));
    expect([text.kind, text.figures.tokens.tokens]).toEqual(['ids', 5]);
  });

  it('unpacks gzip and reads standard input', () => {
    const lines = '{"text":"a"}\n{"text":"b"}\n';
    const run = (input: string | Buffer) =>
      JSON.parse(runCli(['data', '-', ...TOKENIZER, '--json'], { input }).stdout);
    expect(run(lines)).toMatchObject({ files: [{ file: '<stdin>', isGzip: false }] });
    const { files, figures } = run(gzipSync(lines));
    expect(files).toMatchObject([{ isGzip: true }]);
    expect(figures.tokens.tokens).toBe(6);
  });

  it('reports samples without a target', async () => {
    const file = written(
      'chats.jsonl',
      [
        '{"messages":[{"role":"user","content":"only a question"}]}',
        '{"messages":[{"role":"user","content":"<|im_start|>assistant\\nno end"}]}',
      ].join('\n'),
    );
    const { faults } = await resultOf(file, '--as', 'chat');
    expect(faults).toMatchObject([{ name: 'all-masked', places: ['line 1'] }]);
    expect(faults[0].message).toContain('0/0 = NaN');
  });

  it('exits with 1 for faults with --check, and for exceeded limits', async () => {
    const run = (...flags: string[]) =>
      runHere([
        'data',
        'fixtures/data/pretrain.jsonl',
        ...TOKENIZER,
        '--context',
        '64',
        '-q',
        ...flags,
      ]);
    expect((await run()).code).toBe(0);
    const checked = await run('--check');
    expect(checked.code).toBe(1);
    expect(checked.stderr).toMatch(
      /^error: 7 samples that repeat earlier ones exactly; first: line /m,
    );
    const limited = await run('--max-cut', '1%', '--max-duplicates', '50%', '--max-padding', '0.9');
    expect(limited.stderr).toMatch(/^error: \S+% tokens cut off exceed --max-cut 1.00%$/m);
    expect(limited.stderr.match(/^error/gm)).toHaveLength(1);
  });

  it('has one row per position in CSV, and shows the requested line', async () => {
    const { stdout } = await runHere([
      ...['data', 'fixtures/data/chat.jsonl', ...TOKENIZER, '--line', '3', '--show', '1'],
      ...['--context', '40', '--format', 'csv'],
    ]);
    const [head, ...rows] = stdout.trim().split('\n');
    expect(head?.trim()).toBe('file,line,side,position,x,x_text,y,y_text,mask');
    expect(rows[0]).toMatch(/^fixtures\/data\/chat.jsonl,3,,0,1,<\|im_start\|>,/);
    expect(rows.filter((row) => row.trim().endsWith(',1'))).toHaveLength(3);
  });
});

describe('plan with tokenizers', () => {
  const run = (...flags: string[]) =>
    runHere([
      ...['plan', '--max-params', '8M', '--text', 'fixtures/tokenizers/text.txt', '--tokenizer'],
      ['bpe-512', 'bpe-1024', 'bpe-4096']
        .map((name) => `fixtures/tokenizers/${name}.json`)
        .join(','),
      ...flags,
    ]);

  it('counts the cost per character of one body with each vocabulary', async () => {
    const { vocabularies } = JSON.parse((await run('--json')).stdout);
    const { rows, shape, best } = vocabularies;
    expect(rows.map(({ vocabulary }: { vocabulary: number }) => vocabulary)).toEqual([
      512, 1024, 4096,
    ]);
    expect(best.vocabulary).toBe(4096);
    const [small, , large] = rows;
    // The tied embedding and head are one table.
    expect(large.model.parameters - small.model.parameters).toBe((4096 - 512) * shape.width);
    // Each token also multiplies with the rows of the head: 2 FLOPs for each, 6 in training.
    const perToken = (row: typeof small) =>
      row.model.trainingFlopsPerCharacter / row.tokensPerCharacter;
    expect(perToken(large) - perToken(small)).toBeCloseTo(6 * (4096 - 512) * shape.width, -1);
  });

  it('refutes the rule of thumb with --sqrt-rule', async () => {
    const { stdout } = await runHere([
      'plan',
      '--max-params',
      '26M',
      '--vocab',
      '6400',
      '--sqrt-rule',
    ]);
    expect(stdout).toContain('√26,000,000 × 100 = 509,902 tokens is not a usable rule');
    expect((await run()).stdout).not.toContain('√');
  });
});
