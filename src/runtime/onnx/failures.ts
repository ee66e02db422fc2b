/** What ONNX Runtime complains of, said so that somebody can act on it. */
import { UserError } from '../../errors.js';
import { DeviceLostError } from '../device-lost.js';

export interface Failure {
  readonly pattern: RegExp;
  readonly message: string;
  readonly suggestion: string;
  /** Whether nothing can run on the device any more. */
  readonly isDeviceLost?: boolean;
}

/** What is not our mistake, by what ONNX Runtime says of it. */
const FAILURES: readonly Failure[] = [
  {
    // Of Dawn; of CUDA what leaves its context unusable; of Direct3D.
    pattern:
      /[Dd]evice (is |was |has been )?(lost|removed|hung)|DXGI_ERROR_DEVICE|CUDA failure (46|700|702|709|710|715|719|999)\b|CUDNN_STATUS_EXECUTION_FAILED/,
    message: 'the graphics card went away',
    suggestion: 'run again; --device cpu needs none',
    isDeviceLost: true,
  },
  {
    pattern: /bad_alloc|bad allocation|[Ff]ailed to allocate|out of memory|Array buffer allocation/,
    message: 'there is not enough memory',
    suggestion: 'take a smaller batch or context, or a smaller model',
  },
  {
    pattern: /[Ee]xternal data|external initializer|file_size|file_length/,
    message: 'a file of weights cannot be read, or changed while it was read',
    suggestion: 'look whether the file is whole, and run again',
  },
];

/** The same error as a `UserError` where the user can do something about it, else as a bug of ours. */
export function explained(error: unknown, doing: string): Error {
  if (error instanceof UserError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const known = FAILURES.find(({ pattern }) => pattern.test(reason));
  if (known === undefined) {
    return new Error(`ONNX Runtime failed to ${doing}: ${reason}`, { cause: error });
  }
  const { message, suggestion, isDeviceLost } = known;
  const Kind = isDeviceLost ? DeviceLostError : UserError;
  return new Kind('system', `cannot ${doing}: ${message}`, { suggestion, cause: error });
}
