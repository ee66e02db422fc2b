import { ByteFile } from './byte-file.js';
import type { CheckpointOptions, FileIndex, OpenedFiles } from './checkpoint.js';
import { refusal } from './checkpoint-rules.js';
import type { FileFormat } from './formats.js';
import { FILE_FORMATS } from './formats.js';
import { readGguf } from './gguf/read-gguf.js';
import { readOnnx } from './onnx/read-onnx.js';
import {
  LENGTH_FIELD_BYTES,
  MAX_HEADER_BYTES,
  readSafetensors,
} from './safetensors/read-safetensors.js';
import { readTorchLegacy, readTorchZip } from './torch/read-torch.js';

// Detects the format of a file by its first bytes.

/** Parts of a file used to detect its format. */
interface Look {
  /** First bytes, one character per byte. */
  readonly head: string;
  readonly tail: string;
  readonly isNamedSafetensors: boolean;
  readonly isNamedOnnx: boolean;
}

/** A tar header is one block of 512 bytes; all other signatures are at lower offsets. */
const HEAD_BYTES = 512;
const TAIL_BYTES = 8;

type FileKind = { is(look: Look): boolean } & (
  | { readonly format: FileFormat }
  /** A file that is not a checkpoint, given by mistake. `what` completes "is …". */
  | { readonly what: string; readonly suggestion: string }
);

const begins =
  (...magics: readonly string[]) =>
  ({ head }: Look) =>
    magics.some((magic) => head.startsWith(magic));

const matches =
  (pattern: RegExp) =>
  ({ head }: Look) =>
    pattern.test(head);

const [ZIP_ENTRY] = FILE_FORMATS['torch-zip'].magic;

const DOWNLOAD = 'download it again';
const UNPACK = 'unpack it first';
const CONVERT = 'convert it to safetensors with the library that wrote it';
const NAME_WEIGHTS = 'name the folder that holds the weights, or the file of weights itself';
const SAVE_AGAIN = 'load it with Python and save it again with torch.save';

/** onnx/onnx.proto: field 1, ir_version, which has been 3 to 13; then the producer's name or the graph. */
const ONNX_BEGINNINGS = Array.from({ length: 11 }, (_, version) =>
  String.fromCharCode(3 + version),
).flatMap((version) => [`\x08${version}\x12`, `\x08${version}:`]);

/** Formats with magic numbers. */
const BY_MAGIC = Object.entries(FILE_FORMATS).flatMap(([format, { magic }]) =>
  magic.length > 0 ? [{ format: format as FileFormat, is: begins(...magic) }] : [],
);

/** The first match counts, so specific signatures come before general ones. */
const KINDS: readonly FileKind[] = [
  {
    // https://huggingface.co/docs/safetensors: the length of the header, then the header. With the extension
    // .safetensors a plausible length is enough, so that the reader reports the error.
    format: 'safetensors',
    is: ({ head, isNamedSafetensors }) =>
      lengthFieldOf(head) <= MAX_HEADER_BYTES &&
      (isNamedSafetensors || head[LENGTH_FIELD_BYTES] === '{'),
  },
  {
    // numpy.savez: a zip of .npy files. APPNOTE.TXT 4.3.7: length of the name at 26, name at 30.
    what: 'a NumPy archive (.npz)',
    suggestion: 'save its arrays as safetensors with Python',
    is: ({ head }) => head.startsWith(ZIP_ENTRY) && firstEntryOf(head).endsWith('.npy'),
  },
  ...BY_MAGIC,
  {
    what: 'an empty file',
    suggestion: DOWNLOAD,
    is: ({ head }) => head.length === 0,
  },
  {
    // https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md#the-pointer
    what: 'a git-lfs pointer, which stands in for the real file',
    suggestion: 'run git lfs pull',
    is: begins(
      'version https://git-lfs.github.com/spec/',
      'version https://hawser.github.com/spec/',
    ),
  },
  {
    // A server's response instead of the file.
    what: 'a web page or an XML document',
    suggestion: `${DOWNLOAD}: a server may have sent an error page or asked to log in`,
    is: matches(/^(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|\?xml|error)\b/i),
  },
  {
    // APPNOTE.TXT 4.3.16: an archive without entries is only an end record.
    what: 'an empty zip archive',
    suggestion: DOWNLOAD,
    is: begins('PK\x05\x06'),
  },
  {
    // numpy/lib/format.py: MAGIC_PREFIX
    what: 'a NumPy array (.npy)',
    suggestion: 'save it as safetensors with Python',
    is: begins('\x93NUMPY'),
  },
  {
    // RFC 1952, section 2.3.1
    what: 'packed with gzip',
    suggestion: UNPACK,
    is: begins('\x1f\x8b'),
  },
  {
    // 7zFormat.txt of the LZMA SDK: kSignature
    what: 'a 7z archive',
    suggestion: UNPACK,
    is: begins('7z\xbc\xaf\x27\x1c'),
  },
  {
    // The .xz file format, section 2.1.1.1
    what: 'packed with xz',
    suggestion: UNPACK,
    is: begins('\xfd7zXZ\x00'),
  },
  {
    // bzip2: level, then the digits of pi that start a block.
    what: 'packed with bzip2',
    suggestion: UNPACK,
    is: matches(/^BZh[1-9]1AY&SY/),
  },
  {
    // RFC 8878, section 3.1.1
    what: 'packed with zstd',
    suggestion: UNPACK,
    is: begins('\x28\xb5\x2f\xfd'),
  },
  {
    // POSIX.1, pax: the field "magic". torch/serialization.py still has it as legacy_load.
    what: 'a tar archive, as PyTorch wrote them up to version 0.1.9',
    suggestion: 'unpack it, or load it with an old PyTorch and save it again',
    is: ({ head }) => head.startsWith('ustar', 257),
  },
  {
    // HDF5 File Format Specification, section II.A
    what: 'an HDF5 file, as Keras writes them',
    suggestion: CONVERT,
    is: begins('\x89HDF\r\n\x1a\n'),
  },
  {
    // tensorflow/core/lib/io/table_format.txt: magic number at the end of the .index file; the text file is
    // tensorflow/python/training/checkpoint_state.proto.
    what: 'part of a TensorFlow checkpoint',
    suggestion: CONVERT,
    is: ({ head, tail }) =>
      tail === '\x57\xfb\x80\x8b\x24\x75\x47\xdb' || head.startsWith('model_checkpoint_path: "'),
  },
  {
    // tensorflow/core/protobuf/saved_model.proto: field 1 is 1, field 2 is a message.
    what: 'a TensorFlow SavedModel',
    suggestion: CONVERT,
    is: begins('\x08\x01\x12'),
  },
  {
    format: 'onnx',
    is: begins(...ONNX_BEGINNINGS),
  },
  {
    // pickletools: a dict, list or global in the opcodes of protocols 0 and 1.
    what: 'a Python pickle of protocol 0 or 1, which PyTorch never writes',
    suggestion: SAVE_AGAIN,
    is: matches(
      /^(?:\([dl]p\d+\n|[\]}]q|c(?:copy_?reg|collections|__builtin__|builtins|torch|numpy)[\w.]*\n)/,
    ),
  },
  {
    // The safetensors length field; a pickle or archive with a tensor is longer.
    what: `a file of fewer than ${LENGTH_FIELD_BYTES} bytes, probably cut off`,
    suggestion: DOWNLOAD,
    is: ({ head, isNamedSafetensors }) => head.length < LENGTH_FIELD_BYTES && !isNamedSafetensors,
  },
  {
    what: 'JSON, which has no weights',
    suggestion: NAME_WEIGHTS,
    is: ({ head }) => isText(head) && /^(?:\xef\xbb\xbf)?\s*[{[]/.test(head),
  },
  {
    what: 'text, which has no weights',
    suggestion: NAME_WEIGHTS,
    is: ({ head }) => isText(head),
  },
  {
    // Space was reserved for the file, but no data arrived.
    what: 'a file that begins with zeros, perhaps an unfinished download',
    suggestion: DOWNLOAD,
    is: ({ head }) => head === '\0'.repeat(head.length),
  },
  {
    format: 'safetensors',
    is: ({ isNamedSafetensors }) => isNamedSafetensors,
  },
  {
    // Fields of Protocol Buffers can have any order.
    format: 'onnx',
    is: ({ isNamedOnnx }) => isNamedOnnx,
  },
];

/**
 * Format of a weight file. The name matters only if the bytes are ambiguous.
 * @throws UserError if it is not a weight file.
 */
export function checkpointFormatOf(file: ByteFile): FileFormat {
  const headBytes = Math.min(HEAD_BYTES, file.size);
  const tailBytes = Math.min(TAIL_BYTES, file.size);
  const [isNamedSafetensors, isNamedOnnx] = [/\.safetensors$/i, /\.onnx$/i].map((ending) =>
    ending.test(file.path),
  ) as [boolean, boolean];
  const look: Look = {
    head: file.read(0, headBytes).toString('latin1'),
    // Few formats need it, and of a remote file it is a request of its own.
    get tail() {
      return file.read(file.size - tailBytes, tailBytes).toString('latin1');
    },
    isNamedSafetensors,
    isNamedOnnx,
  };
  const kind = KINDS.find(({ is }) => is(look)) ?? {
    what: `not a recognised checkpoint: it begins with ${printableHead(look.head)}`,
    suggestion: 'name a safetensors or GGUF file, or one that torch.save wrote',
  };
  if ('format' in kind) return kind.format;
  throw refusal(file.path, {
    rule: 'file-kind',
    message: `is ${kind.what}`,
    suggestion: kind.suggestion,
  });
}

const latin1Bytes = (head: string) => Buffer.from(head, 'latin1');

/** The u64 at the start of a safetensors file; infinite if the file is too short. */
function lengthFieldOf(head: string): number {
  if (head.length < LENGTH_FIELD_BYTES) return Number.POSITIVE_INFINITY;
  // Above 2^53 this may round, but it stays far above any legal length.
  return Number(latin1Bytes(head).readBigUInt64LE());
}

/** Name of the first entry of a zip archive. APPNOTE.TXT 4.3.7: length at 26, name at 30. */
function firstEntryOf(head: string): string {
  return head.slice(30, 30 + head.charCodeAt(26) + 256 * head.charCodeAt(27));
}

/** Whether the bytes are UTF-8 without control characters; the last character may be incomplete. */
function isText(head: string): boolean {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(latin1Bytes(head), {
      stream: true,
    });
    return !/[^\P{Cc}\t\n\f\r]/u.test(text);
  } catch {
    return false;
  }
}

const SHOWN_BYTES = 16;

/** Bytes as a string literal. */
function printableHead(head: string): string {
  const text = head.slice(0, SHOWN_BYTES).replace(/[^ !#-[\]-~]/g, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(2, '0');
    return `\\x${code}`;
  });
  return `"${text}"`;
}

const READERS: Readonly<
  Record<Exclude<FileFormat, 'onnx'>, (file: ByteFile, options: CheckpointOptions) => FileIndex>
> = {
  safetensors: readSafetensors,
  'torch-zip': readTorchZip,
  'torch-legacy': readTorchLegacy,
  gguf: readGguf,
};

/**
 * Opens one weight file; it stays open unless this throws.
 * @param check Checks the open file before anything is read.
 * @throws UserError if the file cannot be read, or violates a rule.
 */
export function openFile(
  path: string,
  options: CheckpointOptions,
  check: (file: ByteFile) => void = () => {},
): OpenedFiles {
  const file = ByteFile.open(path);
  try {
    check(file);
    const format = checkpointFormatOf(file);
    // The values of an ONNX model can be in other files.
    if (format === 'onnx') return readOnnx(file);
    return { files: [file], index: READERS[format](file, options) };
  } catch (error) {
    file.close();
    throw error;
  }
}
