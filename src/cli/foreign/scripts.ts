/** Scripts of the projects that minimind supports, and the commands that replace them. */
import path from 'node:path';
import { type UserError, usageError } from '../../base/errors.js';
import { nearest } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { runnerNamed } from './programs.js';

/** A command that answers the same as some scripts. It runs as written, in any folder. */
export interface ScriptCommand {
  /** Words after `minimind`. */
  readonly command: string;
  readonly does: string;
  /** File names of the scripts. */
  readonly scripts: readonly string[];
}

const wordsIn = (names: string) => names.split(' ');

/** Rows in the order of the documentation, with the scripts of FusionTree, mini-llm, MiniMind and the KV projector. */
export const SCRIPT_COMMANDS: readonly ScriptCommand[] = [
  {
    command: 'profile hybrid/recommended',
    does: 'parameters and memory of the hybrid, part by part',
    scripts: wordsIn('profile_weight_size.py run_profile.sh hybrid_model.py hybrid_block.py'),
  },
  {
    command: 'compare-srte hybrid/original',
    does: 'parameters of the hybrid in every layout of its SRTE',
    scripts: wordsIn('test_srte_optimizations.py'),
  },
  {
    command: 'quick-test hybrid/recommended',
    does: 'runs a small model of the same structure and checks it',
    scripts: wordsIn('quick_test.py smoke_test.sh eval_system.py'),
  },
  {
    command: 'convert-checkpoint --help',
    does: 'brings a checkpoint into another layout, type or container',
    scripts: wordsIn('test_checkpoint_fix.py export_pruned.py convert_model.py'),
  },
  {
    command: 'train-plan hybrid/recommended --steps 10000',
    does: 'plans a training of the hybrid: steps, learning rate, memory, mistakes',
    scripts: wordsIn('train_wikipedia.py run_pretrain.sh engine.py'),
  },
  {
    command: 'compare minigpt-tiny minigpt-small minigpt-medium',
    does: 'sizes of the MiniGPT models side by side',
    scripts: wordsIn(
      'test_100mb_model_analysis.py calculate_model_comparison.py scaling_plan.py test_correct_small.py test_medium_model.py',
    ),
  },
  {
    command: 'quick-test minigpt-tiny',
    does: 'builds and runs a MiniGPT and checks it',
    scripts: wordsIn(
      'test_architecture.py run_all_tests.py test_runner.py test_training_inference.py test_inference_original.py test_inference_legacy.py test_training_legacy.py performance_benchmark.py',
    ),
  },
  {
    command: 'validate minigpt-small',
    does: 'checks a config and lists every mistake',
    scripts: wordsIn('test_code_structure.py config.py training_config.py'),
  },
  {
    command: 'inspect --help',
    does: 'tensors, types and shapes of a checkpoint',
    scripts: wordsIn('inspect_model.py checkpoint_analyzer.py'),
  },
  {
    command: 'profile minimind2-small --details',
    does: 'parameters, memory and FLOPs of MiniMind, layer by layer',
    scripts: wordsIn('model_minimind.py MokioModel.py model_minillm.py transformer.py'),
  },
  {
    command: 'train-plan minimind2-small --tokens 1B',
    does: 'plans a pretraining: steps, learning rate, memory, mistakes',
    scripts: wordsIn(
      'train_pretrain.py train.py train_optimized.py trainer.py trainer_utils.py train_full_sft.py train_dpo.py train_grpo.py train_ppo.py train_spo.py train_agent.py train_distillation.py train_distill_reason.py',
    ),
  },
  {
    command: 'fit minimind2-small --for training --gpu a100',
    does: 'memory and time of a training of all weights; convert-checkpoint merges LoRA adapters',
    scripts: wordsIn('train_lora.py model_lora.py'),
  },
  {
    command: 'generate minimind2-small --random --ids 1,2,3 --max-tokens 8',
    does: 'writes tokens; with --checkpoint and a prompt instead of --random, text',
    scripts: wordsIn(
      'generate.py eval.py eval_model.py eval_llm.py infer.py inference_optimized.py generator.py',
    ),
  },
  {
    command: 'evaluate minimind2-small --random --ids 1,2,3,4',
    does: 'perplexity of texts; with --checkpoint and --text those of a trained model',
    scripts: wordsIn('evaluate.py evaluate_model.py evaluate_stage.py run_eval.sh'),
  },
  {
    command: 'data --help',
    does: 'checks training data: empty samples, padding, masks, duplicates',
    scripts: wordsIn(
      'lm_dataset.py dataset_loader.py data.py prepare_datasets.py analyze_cleaned_data.py',
    ),
  },
  {
    command: 'plan --max-params 26M --vocab 6400',
    does: 'the best shape for a budget; with --tokenizer and --text the best vocabulary',
    scripts: wordsIn(
      'train_tokenizer.py tokenizer_benchmark.py tokenizer_comparison.py comprehensive_tokenizer_evaluation.py run_evaluation.py',
    ),
  },
  {
    command:
      'fit minimind2-small --for serving --gpu a100 --qps 100 --prompt-tokens 100 --output-tokens 50 --p95 500ms',
    does: 'GPUs and latency of a service under a load',
    scripts: wordsIn('serve_openai_api.py chat_api.py chat_openai_api.py web_demo.py'),
  },
  {
    command: 'modules group-rms-norm',
    does: 'the norm of groups, run and checked on small inputs',
    scripts: wordsIn('norm.py'),
  },
  {
    command: 'modules parallel-embedding',
    does: 'the embedding and its shards, run and checked',
    scripts: wordsIn('vocab_emb.py'),
  },
  {
    command: 'modules ntk-rope',
    does: 'NTK-aware rotary positions, run and checked',
    scripts: wordsIn('pos_emb.py functional.py rope.py'),
  },
  {
    command: 'kv-projector verify --teacher-width 320 --student 96',
    does: 'trains a linear and an elastic adapter; without flags at 5,120 → 1,536',
    scripts: wordsIn(
      'verify_mlp_upgrade.py verify_convergence.py quick_ab_test.py rigorous_ab_test.py run_ablation_studies.sh',
    ),
  },
  {
    command: 'kv-projector verify --teacher-width 320 --student 96 --steps 15',
    does: 'the same with few steps',
    scripts: wordsIn('quick_convergence_test.py'),
  },
  {
    command: 'kv-projector params --teacher Qwen2-14B:5120x40 --student 1536',
    does: 'shapes, parameters and FLOPs of the projectors of a teacher',
    scripts: wordsIn(
      'check_shapes.py kv_dimension_projector.py kv_head_projector.py projector.py headwise_projector.py train_with_kv.py train_multi_teacher_kv.py verify_map_projection.py test_kv_fixes.py test_complete_alignment.py',
    ),
  },
];

const runsScripts = (word: string): boolean => runnerNamed(word)?.runsScripts ?? false;

const isScript = (word: string) => /\.(?:py|sh|ipynb)$/i.test(word);

const stemOf = (name: string) => name.replace(/\.\w+$/, '').toLowerCase();

const scriptStem = (word: string) => stemOf(path.basename(word.replaceAll('\\', '/')));

const rowNamed = (stem: string) =>
  SCRIPT_COMMANDS.find(({ scripts }) => scripts.some((name) => stemOf(name) === stem));

/** The row of a script by its name, with or without its folder and ending. */
function scriptRow(word: string): ScriptCommand | undefined {
  const stem = scriptStem(word);
  if (!isScript(word)) return stem.includes('_') ? rowNamed(stem) : undefined;
  const names = SCRIPT_COMMANDS.flatMap(({ scripts }) => scripts.map(stemOf));
  return rowNamed(stem) ?? rowNamed(nearest(stem, names) ?? '');
}

/**
 * The script that the words of a command line would run, such as `python tests/check_shapes.py`; undefined for others.
 */
export function scriptIn([first = '', ...rest]: readonly string[]): string | undefined {
  if (isScript(first) || scriptRow(first)) return first;
  if (!runsScripts(first)) return undefined;
  // A module has no ending: `python -m tests.check_shapes`.
  const module = rest[rest.indexOf('-m') + 1];
  const named = rest.includes('-m') && module ? `${module.replaceAll('.', '/')}.py` : undefined;
  return rest.find(isScript) ?? named ?? first;
}

/** The error for a script instead of a command or a model. */
export function scriptError(expected: string, script: string): UserError {
  const row = scriptRow(script);
  return usageError(
    `expected ${expected}, found ${runsScripts(script) ? '' : 'the script '}${quote(script)}`,
    row
      ? `write minimind ${row.command}`
      : 'minimind runs no scripts: docs/scripts.md has commands for many, minimind --help lists all',
  );
}

/** The words of the line that replaces a script of our projects; undefined for the scripts of others. */
export const scriptLine = (script: string): readonly string[] | undefined =>
  scriptRow(script)?.command.split(' ');

/** A script among the arguments of a command, instead of a model; undefined if there is none. */
export const scriptArgument = (words: readonly string[]): string | undefined =>
  words.find((word, at) => isScript(word) && scriptRow(word) && !words[at - 1]?.startsWith('-'));
