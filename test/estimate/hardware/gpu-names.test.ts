import { describe, expect, it } from 'vitest';
import { clusterName, clusterNamed } from '../../../src/estimate/hardware/cluster-named.js';
import { capacityOf, type Gpu } from '../../../src/estimate/hardware/gpu.js';

const NONE = { gpus: [], machines: [] };

function read(text: string) {
  const said: string[] = [];
  const { gpu, gpus, machine } = clusterNamed(text, undefined, NONE, (choice) => said.push(choice));
  return { name: gpu.name, gpus, machine, said: said.join() };
}

describe('a name of a GPU', () => {
  it.each([
    // Another model of the same number is not meant.
    ['rtx 2080', 'rtx-2080'],
    ['rtx 2080 super', 'rtx-2080-super'],
    ['rx 9070', 'rx-9070'],
    ['rx 9070 xt', 'rx-9070-xt'],
    ['rtx 3080', 'rtx-3080-10gb'],
    ['4060 laptop', 'rtx-4060-laptop'],
    ['laptop 4060', 'rtx-4060-laptop'],
    ['rtx 4070 mobile', 'rtx-4070-laptop'],
    ['NVIDIA GeForce RTX 4060 Laptop GPU', 'rtx-4060-laptop'],
    ['rtx 5060 ti 16gb', 'rtx-5060-ti-16gb'],
    ['RTX 4090 24GB', 'rtx-4090'],
    ['Tesla P40', 'p40'],
    ['p100 16gb', 'p100-16gb'],
    ['AMD Radeon PRO W7900', 'radeon-pro-w7900'],
    ['RTX A6000', 'rtx-a6000'],
    ['Quadro RTX 6000', 'quadro-rtx-6000'],
    ['jetson agx orin 64gb', 'jetson-agx-orin-64gb'],
    ['inferentia 2', 'inferentia2'],
    ['ascend 910b', 'ascend-910b-64gb'],
    ['dgx spark', 'gb10'],
  ])('is read as one: %s', (text, name) => {
    expect(read(text)).toMatchObject({ name, gpus: 1 });
  });

  it.each([
    ['macbook pro m3 max', 'm3-max-36gb', /also m3-max-96gb, m3-max-48gb/],
    ['strix halo', 'ryzen-ai-max-395-128gb', /using ryzen-ai-max-395-128gb/],
    ['colab', 't4', /colab: using t4/],
    ['7800', 'rx-7800-xt', /using rx-7800-xt/],
    ['9060 xt', 'rx-9060-xt-8gb', /also rx-9060-xt-16gb/],
    ['780m', 'radeon-780m-16gb', /also radeon-780m-32gb/],
    ['mi50', 'mi50-16gb', /also mi50-32gb/],
    ['h100', 'h100-80gb', /also h100-pcie-80gb, h100-nvl-94gb/],
    ['3050', 'rtx-3050-8gb', /also rtx-3050-6gb/],
    ['jetson thor', 'jetson-thor-t5000-128gb', /also jetson-thor-t4000-64gb/],
  ])('says what it took for %s', (text, name, said) => {
    const found = read(text);
    expect(found.name).toBe(name);
    expect(found.said).toMatch(said);
  });

  it.each([
    ['jetson orin', /could be jetson-agx-orin-64gb, .*jetson-orin-nx-16gb/],
    ['rx 7900', /could be rx-7900-xtx, rx-7900-xt, rx-7900-gre/],
    ['rtx 6000', /could be rtx-6000-ada, quadro-rtx-6000, rtx-pro-6000-blackwell/],
    ['24GB', /expected the name of a GPU, found the memory "24GB"/],
    ['16 GB VRAM', /found the memory/],
    ['3060 8gb', /no "3060" with 8 GB is known/],
    ['GTX 980 Ti', /unknown GPU/],
  ])('is asked for when it could be several, or none: %s', (text, message) => {
    expect(() => read(text)).toThrow(message);
  });

  it('lists cards with a memory', () => {
    expect(() => read('24GB')).toThrow(
      expect.objectContaining({ suggestion: expect.stringContaining('rtx-4090') }),
    );
    expect(() => read('24GB')).toThrow(
      expect.objectContaining({ suggestion: expect.not.stringMatching(/\bm2-24gb/) }),
    );
  });
});

describe('GPUs of several kinds', () => {
  const mixed = (text: string, gpus?: number) => clusterNamed(text, gpus, NONE);
  const kinds = (text: string) =>
    mixed(text).cards?.map(({ gpu, gpus }) => `${gpus} ${gpu.name}`) ?? [];

  it.each([
    ['5090+3090', ['1 rtx-5090', '1 rtx-3090'], 'rtx-3090', 2],
    ['2x3090+4090', ['2 rtx-3090', '1 rtx-4090'], 'rtx-3090', 3],
    [
      '4090 + 3060 12gb + 3090',
      ['1 rtx-4090', '1 rtx-3060-12gb', '1 rtx-3090'],
      'rtx-3060-12gb',
      3,
    ],
  ])('are read with the slowest as the one that decides: %s', (text, cards, slowest, gpus) => {
    expect(kinds(text)).toEqual(cards);
    expect(mixed(text)).toMatchObject({ gpus, gpu: { name: slowest }, network: null });
  });

  it('have the least memory and bandwidth of all', () => {
    const { gpu, cards = [] } = mixed('4090+3090');
    const least = (of: (gpu: Gpu) => number) => Math.min(...cards.map((each) => of(each.gpu)));
    expect(capacityOf(gpu).value).toBe(least((each) => capacityOf(each).value));
    expect(gpu.bandwidth).toBe(least((each) => each.bandwidth));
    expect(clusterName(mixed('2x3090+4090'))).toBe('2xrtx-3090+rtx-4090');
  });

  it.each([
    ['2x3090+4090', []],
    ['3050+4090', ['rtx-3050-8gb']],
  ])('are named as they are, unless a card has several memories: %s', (text, chosen) => {
    const said: string[] = [];
    clusterNamed(text, undefined, NONE, (choice) => said.push(choice));
    expect(said.map((each) => /using (\S+)/.exec(each)?.[1])).toEqual(chosen);
  });

  it('of one kind are counted, and a plus can belong to a name', () => {
    expect(mixed('3090+3090')).toMatchObject({ gpus: 2, gpu: { name: 'rtx-3090' } });
    expect(mixed('3090+3090').cards).toBeUndefined();
    expect(mixed('Ryzen AI Max+ 395').gpu.name).toBe('ryzen-ai-max-395-64gb');
  });

  it.each([
    ['9x3090+9x4090', undefined, /at most 16 GPUs of several kinds, found 18/],
    ['5090+3090', 3, /expected one kind of GPU with gpus: 3|one kind of GPU with/],
    ['5090+nothing', undefined, /unknown GPU or machine "nothing"/],
    ['4090+m3 max', undefined, /expected graphics cards between plus signs, found m3-max/],
    ['2x4090+0x3090', undefined, /expected 1 GPU or more, found "0x3090"/],
  ])('are refused: %s', (text, gpus, message) => {
    expect(() => mixed(text, gpus)).toThrow(message);
  });
});

describe('a machine of a cloud', () => {
  it.each([
    ['g6.12xlarge', 'l4', 4],
    ['g6.48xlarge', 'l4', 8],
    ['g6e.48xlarge', 'l40s', 8],
    ['trn1.32xlarge', 'trainium1', 16],
    ['trn2.48xlarge', 'trainium2', 16],
    ['inf2.48xlarge', 'inferentia2', 12],
    ['p4de.24xlarge', 'a100-80gb', 8],
    ['a3-highgpu-8g', 'h100-80gb', 8],
    ['a3-highgpu-2g', 'h100-80gb', 2],
    ['a4-highgpu-8g', 'b200', 8],
    ['Standard_ND96isr_H100_v5', 'h100-80gb', 8],
    ['Standard_ND96asr_v4', 'a100-40gb', 8],
    ['ND96isr_MI300X_v5', 'mi300x', 8],
    ['Standard_NC40ads_H100_v5', 'h100-nvl-94gb', 1],
    ['gb300-nvl72', 'gb300', 72],
    ['mi355x platform', 'mi355x', 8],
    ['kaggle', 't4', 2],
  ])('is read as its GPUs: %s', (text, name, gpus) => {
    expect(read(text)).toMatchObject({ name, gpus });
  });
});
