/** The pictures of the gallery: the command that writes each, the file that it reads, and the command that runs first. */
const words = (line) => line.split(' ');

export const PICTURES = [
  {
    section: 'Diagrams',
    name: 'draw-minimind',
    title: 'MiniMind 2 Small, dense',
    args: words('draw minimind2-small'),
  },
  {
    name: 'draw-minimind-moe',
    title: 'MiniMind 2 with a mixture of experts',
    args: words('draw minimind2-moe'),
  },
  {
    name: 'draw-hybrid',
    title: 'A hybrid of attention and Mamba, with one SRTE for all blocks',
    args: words('draw hybrid/shared'),
  },
  {
    name: 'draw-against',
    title: 'Its recommended setting, compared with the original',
    args: words('draw hybrid/recommended --against hybrid/original'),
  },
  { name: 'draw-gpt2', title: 'GPT-2', args: words('draw gpt2') },
  { name: 'draw-deepseek', title: 'DeepSeek-V3', args: words('draw deepseek-v3') },
  { name: 'draw-qwen3-next', title: 'Qwen3-Next 80B-A3B', args: words('draw qwen3-next-80b-a3b') },
  { name: 'draw-mamba', title: 'Mamba 130M', args: words('draw mamba-130m') },
  {
    name: 'draw-zamba',
    title: 'Zamba 7B, whose blocks share one transformer',
    // The sizes are the defaults of its class in transformers.
    file: [
      'zamba-7b.json',
      '{"model_type": "zamba", "hidden_size": 3712, "num_hidden_layers": 76}',
    ],
    args: words('draw zamba-7b.json'),
  },
  {
    name: 'draw-gemma-3n',
    title: 'A block of Gemma 3n',
    args: words('draw gemma-3n-e4b --block 0'),
  },
  {
    section: 'Parameters and memory',
    name: 'parameters',
    title: 'Parameters of Qwen3-8B',
    args: words('profile qwen3:8b'),
  },
  {
    name: 'fit',
    title: 'Memory of serving on one GPU, with its range',
    args: words('fit qwen3:8b --gpu 4090'),
  },
  {
    name: 'fit-training',
    title: 'Memory of training',
    args: words('fit minimind2 --gpu 4090 --for training'),
  },
  {
    name: 'srte',
    title: 'Strategies for the SRTE of the hybrid',
    args: words('compare-srte hybrid/original'),
  },
  {
    section: 'Design',
    name: 'plan',
    title: 'The best shapes for 26M parameters on an RTX 4090',
    args: words('plan --family minimind --max-params 26M --gpu 4090'),
  },
  {
    name: 'sweep',
    title: 'KV cache over the number of KV heads',
    args: words(
      'compare qwen3:8b --set model.num_key_value_heads=1,2,4,8,16,32 --columns kv-cache',
    ),
  },
  {
    name: 'rope',
    title: 'RoPE scaling: wavelengths of the methods',
    args: words('rope llama-3.2-1b --context 131072'),
  },
  {
    name: 'learning-rate',
    title: 'Learning rate of a training plan',
    args: words('train-plan minimind2 --tokens 2B'),
  },
  {
    section: 'Conversion',
    name: 'quantization-error',
    title: 'Error of int4 weights by layer and tensor, of random weights',
    file: [
      'small.json',
      '{"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 10, "intermediate_size": 256, "num_attention_heads": 4, "vocab_size": 256}',
    ],
    before: words('export small.json --random --save small.onnx'),
    args: words('convert-checkpoint small.onnx packed --quantize int4'),
  },
];
