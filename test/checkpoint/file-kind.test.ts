import { deflateRawSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { ByteFile } from '../../src/checkpoint/byte-file.js';
import { ruleOf } from '../../src/checkpoint/checkpoint-rules.js';
import { checkpointFormatOf } from '../../src/checkpoint/open-file.js';
import { inPackage } from '../fixtures.js';
import { fileIn, safetensors } from './temp-folder.js';

/** Format of a file, or its problem and suggestion if it is not a checkpoint. */
function kindOf(path: string): string {
  const file = ByteFile.open(path);
  try {
    return checkpointFormatOf(file);
  } catch (error) {
    if (!(error instanceof UserError) || ruleOf(error) !== 'file-kind') throw error;
    return error.problems.map(({ message, suggestion }) => `${message}; ${suggestion}`).join();
  } finally {
    file.close();
  }
}

const latin1 = (text: string) => Buffer.from(text, 'latin1');
const kindOfBytes = (content: string | Uint8Array, name = 'model.pt') =>
  kindOf(fileIn(name, typeof content === 'string' ? latin1(content) : content));

const good = safetensors({ a: [1, 2] });
/** Length field, followed by any text in place of the header. */
const lengthAnd = (length: number, rest: string) => {
  const field = Buffer.alloc(8);
  field.writeUInt32LE(length);
  return Buffer.concat([field, latin1(rest)]);
};

describe('checkpointFormatOf', () => {
  it.each([
    ['torch-zip', 'valid/zip_proto5.pt'],
    ['torch-legacy', 'valid/legacy_proto4.pth'],
    ['safetensors', 'valid/st_meta_only.safetensors'],
    ['safetensors', 'valid/st_empty.safetensors'],
  ])('recognises %s: %s', (format, name) => {
    expect(kindOf(inPackage('fixtures/checkpoints', name))).toBe(format);
  });

  it.each([2, 3, 4, 5])('recognises a legacy file of pickle protocol %i', (protocol) => {
    expect(kindOfBytes(Uint8Array.of(0x80, protocol, 0x8a, 10))).toBe('torch-legacy');
  });

  it('uses the bytes, not the name', () => {
    expect(kindOfBytes(good, 'model.pt')).toBe('safetensors');
    expect(kindOfBytes(good, 'model')).toBe('safetensors');
    expect(kindOfBytes('PK\x03\x04', 'model.safetensors')).toBe('torch-zip');
  });

  it('recognises safetensors with a length field that looks like another format', () => {
    for (const length of [0x0280, 0x088b1f]) {
      expect(kindOfBytes(lengthAnd(length, '{}'), 'model.bin')).toBe('safetensors');
    }
  });

  it.each([
    ['', 'nothing', /^is an empty file; /],
    ['\x05\0', 'a cut length field', 'safetensors'],
    [lengthAnd(0x0280, ' {}'), 'a header that begins with a space', 'safetensors'],
    [lengthAnd(0, ''), 'no header', 'safetensors'],
    ['\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7', 'an impossible length', 'safetensors'],
    ['version https://git-lfs.github.com/spec/v1\noid …', 'a git-lfs pointer', /run git lfs pull/],
  ] as const)('uses the name if the content is unclear: %j (%s)', (...row) => {
    const [content, , expected] = row;
    expect(kindOfBytes(content, 'model.safetensors')).toMatch(expected);
  });

  it.each<[RegExp, string, string | Uint8Array]>([
    [/^is an empty file; download it again$/, 'nothing', ''],
    [
      /git-lfs pointer.*; run git lfs pull$/,
      'git-lfs',
      'version https://git-lfs.github.com/spec/v1\noid',
    ],
    [/git-lfs pointer/, 'old git-lfs', 'version https://hawser.github.com/spec/v1\noid'],
    [/web page.*; download it again/, 'HTML', '<!DOCTYPE html><html><body>404</body></html>'],
    [/web page/, 'HTML after blanks', '\xef\xbb\xbf\r\n <html lang="en">'],
    [/XML document/, 'XML', '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'],
    [/XML document/, 'bare XML', '<Error><Code>NoSuchKey</Code></Error>'],
    [/empty zip archive; download it again/, 'an empty zip', `PK\x05\x06${'\0'.repeat(18)}`],
    [/NumPy archive/, 'npz', `PK\x03\x04${'\0'.repeat(22)}\x05\0\0\0a.npyrest`],
    [/NumPy array/, 'npy', '\x93NUMPY\x01\0'],
    [/gzip; unpack it first/, 'gzip', gzipSync('weights')],
    [/7z archive; unpack/, '7z', '7z\xbc\xaf\x27\x1c\0\x04'],
    [/packed with xz; unpack/, 'xz', '\xfd7zXZ\0\0\x04'],
    [/packed with bzip2; unpack/, 'bzip2', 'BZh91AY&SY\0\0'],
    [/packed with zstd; unpack/, 'zstd', '\x28\xb5\x2f\xfd\x04\0\0\0\0'],
    [
      /tar archive, as PyTorch wrote them up to version 0\.1\.9/,
      'tar',
      `${'a'.repeat(257)}ustar\x0000`,
    ],
    [/HDF5/, 'HDF5', '\x89HDF\r\n\x1a\n\0\0'],
    [
      /TensorFlow checkpoint/,
      'an index of TensorFlow',
      `\0\0\0\x02\x57\xfb\x80\x8b\x24\x75\x47\xdb`,
    ],
    [/TensorFlow checkpoint/, 'its list', 'model_checkpoint_path: "model.ckpt-1"\n'],
    [/SavedModel/, 'SavedModel', '\x08\x01\x12\xc4\x02\x0a\0\0\0'],
    [/^onnx$/, 'ONNX', '\x08\x08\x12\x07pytorch\x1a'],
    [/^onnx$/, 'ONNX without a producer', '\x08\x03:\x9a\x01\x0a\0\0\0'],
    [/pickle of protocol 0 or 1.*; load it with Python/, 'a dict of protocol 0', '(dp0\nVa\np1\n'],
    [/pickle of protocol 0 or 1/, 'a list of protocol 1', ']q\0(K\x01K\x02e.'],
    [/pickle of protocol 0 or 1/, 'an object of protocol 0', 'ccopy_reg\n_reconstructor\np0\n'],
    [/fewer than 8 bytes/, 'a cut zip', 'PK\x03'],
    [/fewer than 8 bytes/, 'a short text', 'hello'],
    [/is JSON.*; name the folder/, 'JSON', '{"hidden_size": 64}'],
    [/is JSON/, 'a list, and a BOM', '\xef\xbb\xbf [1, 2, 3, 4]'],
    [/is text, which has no weights/, 'YAML', 'model:\n  hidden_size: 64\n'],
    [
      /is text/,
      'text with a character that is cut at the end of what is read',
      Buffer.from(`x${'é'.repeat(400)}`),
    ],
    [
      /begins with zeros, perhaps an unfinished download; download it again/,
      'zeros',
      new Uint8Array(600),
    ],
    [
      /^is not a recognised checkpoint: it begins with "\\x81\\x04\\x22\\x5cab\\xff~\\x0a\\x00\\x00\\x00\\x00\\x00\\x00\\x00"; name/,
      'something else',
      `\x81\x04"\\ab\xff~\n${'\0'.repeat(20)}`,
    ],
    [/not a recognised checkpoint/, 'a raw stream', deflateRawSync(Buffer.alloc(1000, 'weights'))],
    [/not a recognised checkpoint/, 'a protocol that does not exist', '\x80\x06\x95\0\0\0\0\0\0'],
    [/not a recognised checkpoint/, 'a length beyond the limit', lengthAnd(100_000_001, '{}')],
    [/not a recognised checkpoint/, 'text with a control character', 'hello \x1b[31mworld'],
  ])('reports %s (%s)', (expected, _, content) => {
    expect(kindOfBytes(content)).toMatch(expected);
  });

  it('returns a format or a refusal for any bytes', () => {
    const formats = ['safetensors', 'torch-zip', 'torch-legacy'];
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 700 }), fc.boolean(), (content, isNamed) => {
        const kind = kindOfBytes(content, isNamed ? 'model.safetensors' : 'model.pt');
        expect(formats.includes(kind) || kind.startsWith('is ')).toBe(true);
      }),
    );
  });
});
