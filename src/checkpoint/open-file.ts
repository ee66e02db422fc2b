import { ByteFile } from './byte-file.js';
import type { FileIndex } from './checkpoint.js';
import type { CheckpointFormat } from './formats.js';
import { FORMATS } from './formats.js';
import { refusal } from './rules.js';
import {
  LENGTH_FIELD_BYTES,
  MAX_HEADER_BYTES,
  readSafetensors,
} from './safetensors/read-safetensors.js';
import { readTorchLegacy, readTorchZip } from './torch/read-torch.js';

// What a file is, by its first bytes: one of the formats that hold weights, or something else.

/** What is looked at of a file. */
interface Look {
  /** Its first bytes, one character for each. */
  readonly head: string;
  /** Its last bytes. */
  readonly tail: string;
  /** Whether its name ends in `.safetensors`. */
  readonly isNamedSafetensors: boolean;
}

/** A tar header is one block of 512 bytes; whatever else tells files apart comes earlier. */
const HEAD_BYTES = 512;
const TAIL_BYTES = 8;

type Kind = { is(look: Look): boolean } & (
  | { readonly format: CheckpointFormat }
  /** Something that people name by mistake. `what` completes "is …". */
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

const [ZIP_ENTRY] = FORMATS['torch-zip'].magic;

const DOWNLOAD = 'download it again';
const UNPACK = 'unpack it first';
const CONVERT = 'convert it to safetensors with the library that wrote it';
const NAME_WEIGHTS = 'name the folder that holds the weights, or the file of weights itself';
const SAVE_AGAIN = 'load it with Python and save it again with torch.save';

/** onnx/onnx.proto: field 1, ir_version, which has been 3 to 13; then the producer's name or the graph. */
const ONNX_BEGINNINGS = Array.from({ length: 11 }, (_, version) =>
  String.fromCharCode(3 + version),
).flatMap((version) => [`\x08${version}\x12`, `\x08${version}:`]);

/** The first that fits is it, so what is certain stands before what is vague. */
const KINDS: readonly Kind[] = [
  {
    // https://huggingface.co/docs/safetensors: the header's length, then the header. Under its own name
    // a file with a possible length is one whatever follows, so that its reader says what is wrong.
    format: 'safetensors',
    is: ({ head, isNamedSafetensors }) =>
      lengthFieldOf(head) <= MAX_HEADER_BYTES &&
      (isNamedSafetensors || head[LENGTH_FIELD_BYTES] === '{'),
  },
  {
    // numpy.savez: a zip of .npy files. APPNOTE.TXT 4.3.7: a name's length at 26, the name at 30.
    what: 'a NumPy archive (.npz)',
    suggestion: 'save its arrays as safetensors with Python',
    is: ({ head }) => head.startsWith(ZIP_ENTRY) && firstEntryOf(head).endsWith('.npy'),
  },
  { format: 'torch-zip', is: begins(...FORMATS['torch-zip'].magic) },
  { format: 'torch-legacy', is: begins(...FORMATS['torch-legacy'].magic) },
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
    // What a server sends in place of a file that it does not give.
    what: 'a web page or an XML document',
    suggestion: `${DOWNLOAD}: a server may have sent an error page or asked to log in`,
    is: matches(/^(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|\?xml|error)\b/i),
  },
  {
    // APPNOTE.TXT 4.3.16: an archive without entries is an end record alone.
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
    // The bzip2 format: a level, then the digits of pi that begin a block.
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
    // POSIX.1, pax: the field "magic". torch/serialization.py still knows it as legacy_load.
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
    // https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
    what: 'a GGUF file, as llama.cpp reads them',
    suggestion: 'name the checkpoint that it was made from',
    is: begins('GGUF'),
  },
  {
    // tensorflow/core/lib/io/table_format.txt: the magic number that ends the .index file; the text
    // file is tensorflow/python/training/checkpoint_state.proto.
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
    what: 'an ONNX model',
    suggestion: 'name the checkpoint that it was exported from',
    is: begins(...ONNX_BEGINNINGS),
  },
  {
    // pickletools: a dict, a list or a global by the opcodes of protocols 0 and 1
    what: 'a Python pickle of protocol 0 or 1, which PyTorch never writes',
    suggestion: SAVE_AGAIN,
    is: matches(
      /^(?:\([dl]p\d+\n|[\]}]q|c(?:copy_?reg|collections|__builtin__|builtins|torch|numpy)[\w.]*\n)/,
    ),
  },
  {
    // The length field of safetensors; a pickle or an archive with a tensor is longer still.
    what: `a file of fewer than ${LENGTH_FIELD_BYTES} bytes, and so the beginning of one at best`,
    suggestion: DOWNLOAD,
    is: ({ head, isNamedSafetensors }) => head.length < LENGTH_FIELD_BYTES && !isNamedSafetensors,
  },
  {
    what: 'JSON, and a config or an index by another name holds no weights',
    suggestion: NAME_WEIGHTS,
    is: ({ head }) => isText(head) && /^(?:\xef\xbb\xbf)?\s*[{[]/.test(head),
  },
  {
    what: 'text, and a config holds no weights',
    suggestion: NAME_WEIGHTS,
    is: ({ head }) => isText(head),
  },
  {
    // A file that was made at its full length, and of which nothing has arrived.
    what: 'a file that begins with zeros, perhaps an unfinished download',
    suggestion: DOWNLOAD,
    is: ({ head }) => head === '\0'.repeat(head.length),
  },
  {
    format: 'safetensors',
    is: ({ isNamedSafetensors }) => isNamedSafetensors,
  },
];

/**
 * The format of a file of weights. Its name matters only where the bytes could mean anything.
 * @throws UserError when it is something else.
 */
export function formatOf(file: ByteFile): CheckpointFormat {
  const headBytes = Math.min(HEAD_BYTES, file.size);
  const tailBytes = Math.min(TAIL_BYTES, file.size);
  const head = file.read(0, headBytes).toString('latin1');
  const tail = file.read(file.size - tailBytes, tailBytes).toString('latin1');
  const look = { head, tail, isNamedSafetensors: /\.safetensors$/i.test(file.path) };
  const kind = KINDS.find(({ is }) => is(look)) ?? {
    what: `nothing that is known: it begins with ${shown(head)}`,
    suggestion: 'name a safetensors file, or one that torch.save wrote',
  };
  if ('format' in kind) return kind.format;
  throw refusal(file.path, {
    rule: 'file-kind',
    message: `is ${kind.what}`,
    suggestion: kind.suggestion,
  });
}

const bytesOf = (head: string) => Buffer.from(head, 'latin1');

/** The u64 that a safetensors file begins with; beyond any when there is none. */
function lengthFieldOf(head: string): number {
  if (head.length < LENGTH_FIELD_BYTES) return Number.POSITIVE_INFINITY;
  // Above 2^53 it may round, but it stays far above any legal length.
  return Number(bytesOf(head).readBigUInt64LE());
}

/** The name of the first entry of a zip archive. APPNOTE.TXT 4.3.7: its length at 26, itself at 30. */
function firstEntryOf(head: string): string {
  return head.slice(30, 30 + head.charCodeAt(26) + 256 * head.charCodeAt(27));
}

/** Whether it is UTF-8 without control characters; the last character may be cut off. */
function isText(head: string): boolean {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(head), { stream: true });
    return !/[^\P{Cc}\t\n\f\r]/u.test(text);
  } catch {
    return false;
  }
}

const SHOWN_BYTES = 16;

/** Bytes as a string literal. */
function shown(head: string): string {
  const text = head.slice(0, SHOWN_BYTES).replace(/[^ !#-[\]-~]/g, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(2, '0');
    return `\\x${code}`;
  });
  return `"${text}"`;
}

export interface OpenOptions {
  /** Dotted keys of the dict to take when several of a PyTorch file hold tensors: `ema.state_dict`. */
  readonly stateDict?: string | undefined;
}

export interface OpenedFile {
  readonly file: ByteFile;
  readonly index: FileIndex;
}

const READERS: Readonly<
  Record<CheckpointFormat, (file: ByteFile, options: OpenOptions) => FileIndex>
> = {
  safetensors: readSafetensors,
  'torch-zip': readTorchZip,
  'torch-legacy': readTorchLegacy,
};

/**
 * Opens one file of weights, which stays open unless this throws.
 * @param check Looks at the open file before anything is read of it.
 * @throws UserError when it cannot be read, or breaks a rule.
 */
export function openFile(
  path: string,
  options: OpenOptions,
  check: (file: ByteFile) => void = () => {},
): OpenedFile {
  const file = ByteFile.open(path);
  try {
    check(file);
    return { file, index: READERS[formatOf(file)](file, options) };
  } catch (error) {
    file.close();
    throw error;
  }
}
