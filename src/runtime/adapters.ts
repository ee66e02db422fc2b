export interface Adapter {
  readonly name: string;
  readonly vendor: string | null;
  readonly isSoftware: boolean;
  readonly memoryBytes: number | null;
  readonly maxBufferBytes: number | null;
  readonly maxBindingBytes: number | null;
  readonly hasFloat16: boolean | null;
  readonly source: string;
}
export const webgpuAdapter = async (): Promise<Adapter | null> => null;
export const cudaAdapters = async (): Promise<Adapter[]> => [];
