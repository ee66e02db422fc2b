/** Layouts of published repositories, in small: names of files and tensors as their programs write them. */
import { STORED_DTYPES, type StoredDtype } from '../../../src/base/tensor/dtype.js';

/** A tensor: type and shape. */
export type Spec = readonly [dtype: string, ...shape: number[]];

/** Tensors of a safetensors file, or the text of another file. */
export type Content = Readonly<Record<string, Spec>> | string;

export interface Layout {
  /** A repository with this layout. */
  readonly title: string;
  readonly files: Readonly<Record<string, Content>>;
  /** Parameters by component. */
  readonly parameters: Readonly<Record<string, number>>;
  /** Bytes of the weights. */
  readonly bytes: number;
  /** Class of the model or of the pipeline. */
  readonly class?: string;
  /** Copies that are not counted. */
  readonly copies?: readonly string[];
  /** Values of buffers. */
  readonly buffers?: number;
  /** Tensors of an unknown packing. */
  readonly unknown?: number;
  /** Parts that are not there. */
  readonly missing?: readonly string[];
}

const json = (value: unknown) => JSON.stringify(value);
const config = (model_type: string, ...architectures: string[]) =>
  json({ model_type, ...(architectures.length > 0 && { architectures }) });

/** A layer of BERT with width 4: 4 · (16 + 4) and norms. */
const bertLayer = (name: string): Record<string, Spec> => ({
  ...Object.fromEntries(
    [
      'attention.self.query',
      'attention.self.key',
      'attention.self.value',
      'attention.output.dense',
    ].flatMap((leaf): [string, Spec][] => [
      [`${name}.${leaf}.weight`, ['F32', 4, 4]],
      [`${name}.${leaf}.bias`, ['F32', 4]],
    ]),
  ),
  [`${name}.output.LayerNorm.weight`]: ['F32', 4],
  [`${name}.output.LayerNorm.bias`]: ['F32', 4],
});
const BERT_LAYER = 4 * (16 + 4) + 8;

const bert = (prefix = 'bert.'): Record<string, Spec> => ({
  [`${prefix}embeddings.word_embeddings.weight`]: ['F32', 10, 4],
  [`${prefix}embeddings.position_ids`]: ['I64', 1, 8],
  ...bertLayer(`${prefix}encoder.layer.0`),
  ...bertLayer(`${prefix}encoder.layer.1`),
});
const BERT = 40 + 2 * BERT_LAYER;
const BERT_BYTES = 4 * BERT + 64;

const linear = (
  name: string,
  out: number,
  inputs: number,
  dtype = 'F16',
): Record<string, Spec> => ({
  [`${name}.weight`]: [dtype, out, inputs],
  [`${name}.bias`]: [dtype, out],
});

const index = (map: Readonly<Record<string, string>>) => json({ metadata: {}, weight_map: map });

const unet = (dtype: string): Record<string, Spec> => ({
  'conv_in.weight': [dtype, 8, 4, 3, 3],
  'conv_in.bias': [dtype, 8],
  'down_blocks.0.attentions.0.to_q.weight': [dtype, 8, 8],
});
const UNET = 8 * 36 + 8 + 64;

const vae = (dtype: string): Record<string, Spec> => ({
  'encoder.conv_in.weight': [dtype, 4, 3, 3, 3],
  'decoder.conv_out.bias': [dtype, 3],
});
const VAE = 108 + 3;

const clipText: Record<string, Spec> = {
  'text_model.embeddings.position_ids': ['I64', 1, 7],
  'text_model.embeddings.token_embedding.weight': ['F16', 10, 4],
};

const SDXL = json({
  _class_name: 'StableDiffusionXLPipeline',
  _diffusers_version: '0.19.0',
  force_zeros_for_empty_prompt: true,
  scheduler: ['diffusers', 'EulerDiscreteScheduler'],
  text_encoder: ['transformers', 'CLIPTextModel'],
  tokenizer: ['transformers', 'CLIPTokenizer'],
  unet: ['diffusers', 'UNet2DConditionModel'],
  vae: ['diffusers', 'AutoencoderKL'],
  safety_checker: [null, null],
});

const encoder = (type: string, name: string): Layout => ({
  title: `${type}: one file of safetensors`,
  files: { 'config.json': config(type, name), 'model.safetensors': bert('') },
  ...{ parameters: { '.': BERT }, bytes: BERT_BYTES, class: name, buffers: 8 },
});

/** Encoders whose repositories have the same layout. */
const ENCODERS = [
  ['bert', 'BertForMaskedLM'],
  ['roberta', 'RobertaForMaskedLM'],
  ['xlm-roberta', 'XLMRobertaModel'],
  ['modernbert', 'ModernBertForMaskedLM'],
  ['distilbert', 'DistilBertForSequenceClassification'],
  ['deberta-v2', 'DebertaV2Model'],
  ['electra', 'ElectraForPreTraining'],
  ['albert', 'AlbertModel'],
  ['mpnet', 'MPNetForMaskedLM'],
  ['nomic_bert', 'NomicBertModel'],
  ['esm', 'EsmForMaskedLM'],
  ['t5', 'T5ForConditionalGeneration'],
  ['mt5', 'MT5ForConditionalGeneration'],
  ['bart', 'BartForConditionalGeneration'],
  ['marian', 'MarianMTModel'],
  ['m2m_100', 'M2M100ForConditionalGeneration'],
  ['whisper', 'WhisperForConditionalGeneration'],
  ['wav2vec2', 'Wav2Vec2ForCTC'],
  ['hubert', 'HubertModel'],
  ['clap', 'ClapModel'],
  ['vits', 'VitsModel'],
  ['speecht5', 'SpeechT5ForTextToSpeech'],
  ['clip', 'CLIPModel'],
  ['siglip', 'SiglipModel'],
  ['vit', 'ViTForImageClassification'],
  ['dinov2', 'Dinov2Model'],
  ['swin', 'SwinForImageClassification'],
  ['sam', 'SamModel'],
  ['detr', 'DetrForObjectDetection'],
  ['depth_anything', 'DepthAnythingForDepthEstimation'],
  ['trocr', 'TrOCRForCausalLM'],
  ['blip-2', 'Blip2ForConditionalGeneration'],
  ['florence2', 'Florence2ForConditionalGeneration'],
  ['layoutlmv3', 'LayoutLMv3Model'],
  ['time_series_transformer', 'TimeSeriesTransformerForPrediction'],
] as const;

const OTHERS: readonly Layout[] = [
  {
    title: 'weights in several formats, of which safetensors counts',
    files: {
      'config.json': config('bert', 'BertForMaskedLM'),
      'model.safetensors': bert(),
      'pytorch_model.bin': 'not read',
      'tf_model.h5': 'not read',
      'onnx/model.onnx': 'not read',
      'vocab.txt': 'a',
    },
    ...{ parameters: { '.': BERT }, bytes: BERT_BYTES, buffers: 8 },
    copies: ['pytorch_model.bin'],
  },
  {
    title: 'shards with an index',
    files: {
      'config.json': config('t5', 'T5ForConditionalGeneration'),
      'model.safetensors.index.json': index({
        'shared.weight': 'model-00001-of-00002.safetensors',
        'encoder.block.0.w.weight': 'model-00002-of-00002.safetensors',
      }),
      'model-00001-of-00002.safetensors': { 'shared.weight': ['BF16', 10, 4] },
      'model-00002-of-00002.safetensors': { 'encoder.block.0.w.weight': ['BF16', 4, 4] },
    },
    ...{ parameters: { '.': 56 }, bytes: 112 },
  },
  {
    title: 'shards of a variant, with its own index',
    files: {
      'config.json': json({ _class_name: 'Transformer2DModel' }),
      'diffusion_pytorch_model.safetensors.index.fp16.json': index({}),
      'diffusion_pytorch_model.fp16-00001-of-00002.safetensors': linear('a', 4, 4),
      'diffusion_pytorch_model.fp16-00002-of-00002.safetensors': linear('b', 4, 4),
    },
    ...{ parameters: { '.': 40 }, bytes: 80, class: 'Transformer2DModel' },
  },
  {
    title: 'Stable Diffusion XL: a pipeline, a variant, and the pipeline in one file',
    files: {
      'model_index.json': SDXL,
      'scheduler/scheduler_config.json': '{}',
      'text_encoder/config.json': config('clip_text_model', 'CLIPTextModel'),
      'text_encoder/model.safetensors': clipText,
      'text_encoder/model.fp16.safetensors': clipText,
      'tokenizer/vocab.json': '{}',
      'unet/config.json': json({ _class_name: 'UNet2DConditionModel' }),
      'unet/diffusion_pytorch_model.safetensors': unet('F32'),
      'unet/diffusion_pytorch_model.fp16.safetensors': unet('F16'),
      'vae/diffusion_pytorch_model.safetensors': vae('F32'),
      'vae_1_0/diffusion_pytorch_model.safetensors': vae('F32'),
      'sd_xl_base_1.0.safetensors': unet('F16'),
    },
    parameters: { text_encoder: 40, unet: UNET, vae: VAE },
    bytes: 80 + 56 + 4 * UNET + 4 * VAE,
    ...{ class: 'StableDiffusionXLPipeline', buffers: 7 },
    copies: [
      'sd_xl_base_1.0.safetensors',
      'text_encoder/model.fp16.safetensors',
      'unet/diffusion_pytorch_model.fp16.safetensors',
    ],
  },
  {
    title: 'Flux: a pipeline with shards',
    files: {
      'model_index.json': json({
        _class_name: 'FluxPipeline',
        text_encoder_2: ['transformers', 'T5EncoderModel'],
        transformer: ['diffusers', 'FluxTransformer2DModel'],
      }),
      'text_encoder_2/model.safetensors': { 'shared.weight': ['BF16', 10, 4] },
      'transformer/diffusion_pytorch_model.safetensors.index.json': index({
        'x.weight': 'diffusion_pytorch_model-00001-of-00002.safetensors',
        'y.weight': 'diffusion_pytorch_model-00002-of-00002.safetensors',
      }),
      'transformer/diffusion_pytorch_model-00001-of-00002.safetensors': {
        'x.weight': ['BF16', 4, 4],
      },
      'transformer/diffusion_pytorch_model-00002-of-00002.safetensors': {
        'y.weight': ['BF16', 4, 4],
      },
    },
    ...{ parameters: { text_encoder_2: 40, transformer: 32 }, bytes: 144, class: 'FluxPipeline' },
  },
  {
    title: 'sentence-transformers with a dense layer',
    files: {
      'config.json': config('bert', 'BertModel'),
      'modules.json': json([
        { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
        { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
        { idx: 2, name: '2', path: '2_Dense', type: 'sentence_transformers.models.Dense' },
      ]),
      'model.safetensors': bert(''),
      '1_Pooling/config.json': '{}',
      '2_Dense/model.safetensors': { 'linear.weight': ['F32', 2, 4] },
    },
    ...{ parameters: { '.': BERT, '2_Dense': 8 }, bytes: BERT_BYTES + 32, buffers: 8 },
  },
  {
    title: 'a convolutional network of timm, with batch norms',
    files: {
      'config.json': json({ architecture: 'resnet50', num_classes: 10 }),
      'model.safetensors': {
        'conv1.weight': ['F32', 8, 3, 7, 7],
        'bn1.weight': ['F32', 8],
        'bn1.bias': ['F32', 8],
        'bn1.running_mean': ['F32', 8],
        'bn1.running_var': ['F32', 8],
        'bn1.num_batches_tracked': ['I64'],
      },
    },
    ...{ parameters: { '.': 1176 + 16 }, bytes: 4 * (1176 + 32) + 8, buffers: 17 },
  },
  {
    title: 'GPTQ with 4 bits',
    files: {
      'config.json': config('chatglm'),
      'model.safetensors': {
        'a.qweight': ['I32', 8, 16],
        'a.qzeros': ['I32', 2, 2],
        'a.scales': ['F16', 2, 16],
        'a.g_idx': ['I32', 64],
        'norm.weight': ['F16', 64],
      },
    },
    ...{ parameters: { '.': 64 * 16 + 64 }, bytes: 512 + 16 + 64 + 256 + 128 },
  },
  {
    title: 'GPTQ with 8 bits, without an order of the groups',
    files: {
      'config.json': config('chatglm'),
      'model.safetensors': {
        'a.qweight': ['I32', 16, 16],
        'a.qzeros': ['I32', 2, 4],
        'a.scales': ['F16', 2, 16],
      },
    },
    ...{ parameters: { '.': 64 * 16 }, bytes: 1024 + 32 + 64 },
  },
  {
    title: 'AWQ',
    files: {
      'config.json': config('chatglm'),
      'model.safetensors': {
        'a.qweight': ['I32', 64, 2],
        'a.qzeros': ['I32', 2, 2],
        'a.scales': ['F16', 2, 16],
      },
    },
    ...{ parameters: { '.': 64 * 16 }, bytes: 512 + 16 + 64 },
  },
  {
    title: 'bitsandbytes with 4 bits',
    files: {
      'config.json': config('chatglm'),
      'model.safetensors': {
        'a.weight': ['U8', 128, 1],
        'a.weight.absmax': ['U8', 4],
        'a.weight.quant_map': ['F32', 16],
        'a.weight.nested_absmax': ['F32', 1],
        'a.weight.nested_quant_map': ['F32', 256],
        'a.weight.quant_state.bitsandbytes__nf4': ['U8', 90],
        'a.bias': ['F16', 8],
      },
    },
    ...{ parameters: { '.': 256 + 8 }, bytes: 128 + 4 + 64 + 4 + 1024 + 90 + 16 },
  },
  {
    title: 'bitsandbytes with 8 bits',
    files: {
      'config.json': config('chatglm'),
      'model.safetensors': {
        'a.weight': ['I8', 8, 4],
        'a.SCB': ['F32', 8],
        'a.weight_format': ['U8'],
      },
    },
    ...{ parameters: { '.': 32 }, bytes: 32 + 32 + 1 },
  },
  {
    title: 'FP8 with scales of blocks',
    files: {
      'config.json': config('deepseek_v9'),
      'model.safetensors': { 'a.weight': ['F8_E4M3', 8, 4], 'a.weight_scale_inv': ['F32', 1, 1] },
    },
    ...{ parameters: { '.': 32 }, bytes: 36 },
  },
  {
    title: 'MXFP4 experts',
    files: {
      'config.json': config('gpt_oss_next'),
      'model.safetensors': { 'a.up_blocks': ['U8', 2, 4, 1, 16], 'a.up_scales': ['U8', 2, 4, 1] },
    },
    ...{ parameters: { '.': 256 }, bytes: 136 },
  },
  {
    title: 'NVFP4',
    files: {
      'config.json': config('qwen9'),
      'model.safetensors': {
        'a.weight': ['U8', 4, 8],
        'a.weight_scale': ['F8_E4M3', 4, 1],
        'a.weight_scale_2': ['F32'],
        'a.input_scale': ['F32'],
      },
    },
    ...{ parameters: { '.': 64 }, bytes: 32 + 4 + 4 + 4 },
  },
  {
    title: 'NVFP4 of compressed-tensors',
    files: {
      'config.json': config('qwen9'),
      'model.safetensors': {
        'a.weight_packed': ['U8', 4, 8],
        'a.weight_scale': ['F8_E4M3', 4, 1],
        'a.weight_global_scale': ['F32', 1],
        'norm.weight_scale': ['F32', 3],
      },
    },
    ...{ parameters: { '.': 64 + 3 }, bytes: 32 + 4 + 4 + 12 },
  },
  {
    title: 'MLX with 4 bits, a layer of 8, and one without scales of its group',
    files: {
      'config.json': json({
        model_type: 'novel',
        quantization: { group_size: 32, bits: 4, 'b.proj': { group_size: 16, bits: 8 } },
      }),
      'model.safetensors': {
        'a.weight': ['U32', 6, 8],
        'a.scales': ['F16', 6, 2],
        'a.biases': ['F16', 6, 2],
        'b.proj.weight': ['U32', 2, 3, 8],
        'b.proj.scales': ['F16', 2, 3, 2],
        'b.proj.biases': ['F16', 2, 3, 2],
        'b.proj.bias': ['F16', 3],
        'c.weight': ['U32', 4, 8],
        'c.scales': ['F16', 4, 1],
        'c.biases': ['F16', 4, 1],
      },
    },
    ...{ parameters: { '.': 6 * 64 + 2 * 3 * 32 + 3 }, bytes: 240 + 246 + 144, unknown: 1 },
  },
  {
    title: 'MXFP4 of MLX, and its default group',
    files: {
      'config.json': json({ model_type: 'novel', quantization_config: { mode: 'mxfp4' } }),
      'model.safetensors': { 'a.weight': ['U32', 4, 8], 'a.scales': ['U8', 4, 2] },
    },
    ...{ parameters: { '.': 4 * 64 }, bytes: 128 + 8 },
  },
  {
    title: 'words of MLX without their settings',
    files: {
      'model.safetensors': {
        'a.weight': ['U32', 4, 8],
        'a.scales': ['F16', 4, 1],
        'a.biases': ['F16', 4, 1],
      },
    },
    ...{ parameters: { '.': 0 }, bytes: 128 + 16, unknown: 1 },
  },
  {
    title: 'EXL2: rows of several widths in bits',
    files: {
      'config.json': config('novel'),
      'output.safetensors': {
        'a.q_weight': ['I32', 9, 32],
        'a.q_invperm': ['I32', 64],
        'a.q_scale': ['I32', 2, 4],
        'a.q_scale_max': ['F16', 2],
        'a.q_groups': ['I16', 4],
      },
    },
    ...{ parameters: { '.': 64 * 32 }, bytes: 9 * 128 + 256 + 32 + 4 + 8 },
  },
  {
    title: 'EXL3',
    files: {
      'config.json': config('novel'),
      'model.safetensors': {
        'a.trellis': ['I16', 2, 4, 48],
        'a.suh': ['F16', 32],
        'a.svh': ['F16', 64],
        'b.trellis': ['I16', 1, 1, 64],
        'b.su': ['I16', 1],
        'b.sv': ['I16', 1],
        'b.mcg': ['I32'],
        'b.bias': ['F16', 16],
      },
    },
    ...{
      parameters: { '.': 32 * 64 + 16 * 16 + 16 },
      bytes: 768 + 64 + 128 + 128 + 2 + 2 + 4 + 32,
    },
  },
  {
    title: 'AQLM with two codebooks',
    files: {
      'config.json': config('novel'),
      'model.safetensors': {
        'a.codes': ['I8', 6, 4, 2],
        'a.codebooks': ['F16', 2, 256, 1, 8],
        'a.scales': ['F16', 6, 1, 1, 1],
      },
    },
    ...{ parameters: { '.': 6 * 4 * 8 }, bytes: 48 + 8192 + 12 },
  },
  {
    title: 'matrices of integers under any name',
    files: {
      'config.json': config('novel'),
      'model.safetensors': {
        'a.vectors': ['I32', 4, 8],
        'a.planes': ['U16', 2, 3, 4],
        'b.position_ids': ['I32', 1, 8],
        'b.relative_position_index': ['I32', 4, 4],
        'b.table': ['I64', 4, 4],
      },
    },
    ...{ parameters: { '.': 0 }, bytes: 128 + 48 + 32 + 64 + 128, buffers: 40, unknown: 2 },
  },
  {
    title: 'HQQ, whose packing is unknown',
    files: {
      'config.json': config('odd'),
      'model.safetensors': {
        'a.W_q': ['U8', 4, 8],
        'a.scale': ['F16', 4],
        'a.zero': ['F16', 4],
        'b.qweight': ['I32', 4, 8],
      },
    },
    ...{ parameters: { '.': 0 }, bytes: 32 + 8 + 8 + 128, unknown: 2 },
  },
  {
    title: 'integers of an unknown packing',
    files: {
      'config.json': config('odd'),
      'model.safetensors': { 'a.weight': ['U8', 4, 8], 'b.weight': ['F16', 2] },
    },
    ...{ parameters: { '.': 2 }, bytes: 36, unknown: 1 },
  },
  {
    title: 'a LoRA of diffusers',
    files: {
      'pytorch_lora_weights.safetensors': {
        'unet.a.lora_A.weight': ['F16', 4, 8],
        'unet.a.lora_B.weight': ['F16', 8, 4],
      },
    },
    ...{ parameters: { '.': 64 }, bytes: 128 },
  },
  {
    title: 'an autoencoder alone',
    files: {
      'config.json': json({ _class_name: 'AutoencoderKL' }),
      'diffusion_pytorch_model.safetensors': vae('F32'),
    },
    ...{ parameters: { '.': VAE }, bytes: 4 * VAE, class: 'AutoencoderKL' },
  },
  {
    title: 'files for ComfyUI, each a model of its own',
    files: {
      'ae.safetensors': vae('F32'),
      'flux1-dev-fp8.safetensors': unet('F8_E4M3'),
      'clip_l.safetensors': clipText,
    },
    parameters: {
      'ae.safetensors': VAE,
      'clip_l.safetensors': 40,
      'flux1-dev-fp8.safetensors': UNET,
    },
    ...{ bytes: 4 * VAE + 80 + 56 + UNET, buffers: 7 },
  },
  {
    title: 'components in folders without a file that names them',
    files: {
      'encoder/model.safetensors': linear('a', 4, 4),
      'decoder/model.safetensors': linear('a', 2, 4),
    },
    ...{ parameters: { decoder: 10, encoder: 20 }, bytes: 60 },
  },
  {
    title: 'a multimodal model of an unknown kind',
    files: {
      'config.json': json({
        model_type: 'seer',
        architectures: ['SeerModel'],
        text_config: { model_type: 'seer_text' },
      }),
      'model.safetensors': {
        ...linear('vision_tower.a', 4, 4),
        ...linear('language_model.layers.0.a', 8, 4),
        ...linear('projector', 4, 4),
      },
      'original/consolidated.safetensors': linear('a', 4, 4),
    },
    ...{ parameters: { '.': 20 + 40 + 20 }, bytes: 160, class: 'SeerModel' },
    copies: ['original/consolidated.safetensors'],
  },
  {
    title: 'a pipeline without one of its components, and a shard that is not there',
    files: {
      'model_index.json': json({
        _class_name: 'P',
        unet: ['diffusers', 'U'],
        vae: ['diffusers', 'V'],
        tokenizer: ['transformers', 'T'],
        encoder: ['transformers', 'E'],
      }),
      'tokenizer/vocab.json': '{}',
      'vae/diffusion_pytorch_model.safetensors': vae('F32'),
      'encoder/model-00001-of-00002.safetensors': linear('a', 4, 4),
    },
    parameters: { vae: VAE, encoder: 20 },
    ...{ bytes: 4 * VAE + 40, class: 'P', missing: ['encoder: 1 of 2 shards', 'unet'] },
  },
  {
    title: 'modules that are named twice',
    files: {
      'modules.json': json([{ path: '' }, { path: '' }, { path: '1_Dense' }, { path: '1_Dense' }]),
      'model.safetensors': linear('a', 4, 4),
      '1_Dense/model.safetensors': linear('b', 4, 4),
    },
    ...{ parameters: { '.': 20, '1_Dense': 20 }, bytes: 80 },
  },
  {
    title: 'the weights of Mistral beside those of transformers',
    files: {
      'config.json': config('pixtral_next', 'PixtralNext'),
      'params.json': '{}',
      'model.safetensors': linear('a', 4, 4),
      'consolidated.safetensors': linear('b', 4, 4),
    },
    ...{
      parameters: { '.': 20 },
      bytes: 40,
      class: 'PixtralNext',
      copies: ['consolidated.safetensors'],
    },
  },
  {
    title: 'shards without an index',
    files: {
      'config.json': config('novel'),
      'model-00001-of-00002.safetensors': linear('a', 4, 4),
      'model-00002-of-00002.safetensors': linear('b', 4, 4),
    },
    ...{ parameters: { '.': 40 }, bytes: 80 },
  },
  {
    title: 'a file of weights, without a config',
    files: { 'model.safetensors': linear('a', 4, 4) },
    ...{ parameters: { '.': 20 }, bytes: 40 },
  },
  {
    title: 'Python code in place of a known class',
    files: {
      'config.json': json({ model_type: 'custom', auto_map: { AutoModel: 'modeling.Model' } }),
      'modeling.py': 'raise SystemExit',
      'model.safetensors': linear('a', 4, 4),
    },
    ...{ parameters: { '.': 20 }, bytes: 40 },
  },
];

export const LAYOUTS: readonly Layout[] = [
  ...ENCODERS.map(([type, name]) => encoder(type, name)),
  ...OTHERS,
];

/** A safetensors file with zeros. */
function zeros(tensors: Readonly<Record<string, Spec>>): Buffer {
  let end = 0;
  const entries = Object.entries(tensors).map(([name, [dtype, ...shape]]) => {
    const begin = end;
    const elements = shape.reduce((product, size) => product * size, 1);
    end += (elements * STORED_DTYPES[dtype as StoredDtype].bits) / 8;
    return [name, { dtype, shape, data_offsets: [begin, end] }];
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, Buffer.alloc(end)]);
}

/** Files of a layout, by their paths. */
export const filesOf = ({ files }: Pick<Layout, 'files'>): Record<string, Buffer> =>
  Object.fromEntries(
    Object.entries(files).map(([name, content]) => [
      name,
      typeof content === 'string' ? Buffer.from(content) : zeros(content),
    ]),
  );
