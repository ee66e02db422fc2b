/**
 * Random numbers as in PyTorch on the CPU.
 *
 * @example
 * const generator = manualSeed(0);
 * generator.rand(5); // torch.manual_seed(0); torch.rand(5)
 */
export { type FanMode, Generator, manualSeed } from './generator.js';
