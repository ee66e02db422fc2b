import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const wordsOf = (line: string) =>
  [...line.matchAll(/"([^"]*)"|(\S+)/g)].map((m) => m[1] ?? m[2] ?? '');

/** Lines that owners of consumer cards type first, and what the answer or the error has. */
const GUESSES: readonly (readonly [line: string, says: RegExp])[] = [
  // Names.
  ['fit qwen3-8b --gpu "rtx 4060 laptop" --dtype q4_k_m', /RTX 4060 Laptop/],
  ['fit qwen3-8b --gpu "RTX 4070 Mobile" --dtype q4_k_m', /RTX 4070 Laptop/],
  ['fit qwen3-8b --gpu "rtx 2080" --dtype q4_k_m', /on 1 × NVIDIA GeForce RTX 2080\b(?! Ti)/],
  ['fit qwen3-4b --gpu 2060 --dtype q4_k_m', /rtx-2060-6gb .*also rtx-2060-12gb/],
  ['fit qwen3-4b --gpu "rtx 3050" --dtype q4_k_m', /also rtx-3050-6gb/],
  ['fit qwen3-14b --gpu "rx 9070" --dtype q4_k_m', /RX 9070:|RX 9070\b(?! XT)/],
  ['fit qwen3-14b --gpu "9060 xt 16gb" --dtype q4_k_m', /RX 9060 XT 16 GB/],
  ['fit qwen3-8b --gpu "rx 6700 xt" --dtype q4_k_m', /RX 6700 XT/],
  ['fit qwen3-8b --gpu "rx 7900" --dtype q4_k_m', /could be rx-7900-xtx, rx-7900-xt, rx-7900-gre/],
  ['fit qwen3-32b --gpu "Tesla P40" --dtype q4_k_m', /Tesla P40/],
  ['fit qwen3-32b --gpu 2xP40 --dtype q4_k_m', /2 × NVIDIA Tesla P40/],
  ['fit qwen3-14b --gpu "mi50 32gb" --dtype q4_k_m', /MI50 32 GB/],
  ['fit qwen3-8b --gpu "strix halo" --dtype q4_k_m', /using ryzen-ai-max-395-128gb/],
  ['fit qwen3-8b --gpu "macbook pro m3 max" --dtype q4_k_m', /also .*m3-max-128gb/],
  ['fit qwen3-8b --gpu "m4 pro 24gb" --dtype q4_k_m', /M4 Pro, 24 GB/],
  ['fit qwen3-4b --gpu 780m --dtype q4_k_m', /Radeon 780M/],
  ['fit qwen3-4b --gpu "jetson orin" --dtype q4_k_m', /could be .*jetson-orin-nano-8gb/],
  ['fit qwen3-4b --gpu "orin nano" --dtype q4_k_m', /jetson-orin-nano-super-8gb/],
  ['fit qwen3-8b --gpu colab', /colab: using t4/],
  ['fit qwen3-8b --gpu 24GB', /found the memory "24GB"[\s\S]*rtx-3090/],
  ['fit qwen3-8b --gpu "4090 24gb"', /RTX 4090/],
  ['fit qwen3-8b --gpu "3060 8gb"', /no "3060" with 8 GB is known/],
  // Layers and experts in system memory.
  ['fit qwen3-30b-a3b --gpu 4060 --dtype q4_k_m -ngl 30', /--gpu-layers 30/],
  ['fit qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --n-cpu-moe 40', /--cpu-experts 40/],
  ['fit qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --cpu-experts 40', /-ngl 49 --n-cpu-moe 40/],
  [
    'fit qwen3-30b-a3b --gpu 4060 --dtype q4_k_m --ram 32GB',
    /^Fits on .* and .* of system memory/m,
  ],
  ['fit gpt-oss-120b --gpu 3090 --dtype mxfp4 --ram 64GB --cpu "ryzen 9 7950x"', /DDR5-5200/],
  ['fit gpt-oss-120b --gpu 3090 --dtype mxfp4 --ram 64GB --ram-speed ddr4-3600', /DDR4-3600/],
  ['fit qwen3-8b --gpu cpu --dtype q4_k_m --cpu i9-14900k', /DDR5-5600/],
  ['fit qwen3-8b --gpu none --dtype q4_k_m --ram 16gb', /^Fits on a processor/m],
  ['fit qwen3-8b --gpu cpu,4090 --dtype q4_k_m', /cpu[\s\S]*rtx-4090/],
  // Several cards.
  ['fit llama-3.3-70b --gpu 5090+3090 --dtype q4_k_m', /-ngl 81 -ts \d+,\d+/],
  ['fit llama-3.3-70b --gpu 2x3090+4090 --dtype q4_k_m', /2 × NVIDIA GeForce RTX 3090 \+ 1 × /],
  ['fit llama-3.3-70b --gpu 3090 --gpu 3090 --dtype q4_k_m', /2 × NVIDIA GeForce RTX 3090/],
  [
    'fit llama-3.3-70b --gpu "rtx 5090 + rtx 3090" --dtype q4_k_m --tensor-split 3,2',
    /-ts|-ngl 81 -c/,
  ],
  ['fit llama-3.3-70b --gpu 4090+3060 --dtype q4_k_m --ram 64GB', /and [\d.]+ GB of system memory/],
  ['fit qwen3-32b --gpu 4090,3090,5090 --dtype q4_k_m', /rtx-4090[\s\S]*rtx-3090[\s\S]*rtx-5090/],
  // This machine: what it has depends on it.
  ['fit qwen3-0.6b --gpu auto --dtype q4_k_m', /^ {2}machine +/m],
  ['fit qwen3-0.6b --gpu all', /^rtx-4090 /m],
  ['fit qwen3-0.6b --gpu auto --gpus 2', /which counts the cards/],
];

describe('a first guess about a consumer card', () => {
  it('is one of forty', () => expect(GUESSES).toHaveLength(40));

  it.each(GUESSES)('is answered, or the answer says what to write: %s', async (line, says) => {
    const { stdout, stderr, code } = await runHere(wordsOf(line));
    expect([0, 2]).toContain(code);
    expect(`${stdout}\n${stderr}`).toMatch(says);
    // An error says what to do.
    if (code === 2) expect(stderr).toMatch(/^ {2}→ /m);
  });
});
