/** Answers about a plan of parts that need only its progress, the same for all commands that work in parts. */
import type { LaunchOptions } from '../scale/launch.js';
import type { HashedPlan } from '../scale/plan-file.js';
import type { PartsAnswer, PlannedWork } from '../scale/planned-work.js';
import type { LaunchName } from '../scale/task-index.js';
import { formatOf, type OutputFlags } from './base-command.js';
import { type PartsMode, refuseIdlePlaces } from './flags/parts-flags.js';

/** Flags of the command for a plan. */
type PlanFlags = OutputFlags &
  Pick<LaunchOptions, 'tasks' | 'image' | 'claim'> & {
    readonly launch?: LaunchName | undefined;
    readonly submit?: boolean;
    readonly wait?: boolean;
  };

/** How a command answers, and what its jobs start. */
interface Answering<Answer> {
  readonly answer: (result: Answer) => Promise<unknown>;
  readonly write: (text: string) => Promise<void>;
  readonly program: string;
  readonly isForced?: boolean;
  readonly isOffline: boolean;
}

/**
 * Answers with the progress, the job, or the parts that a finish waits for.
 * @returns Whether that was all; else the work itself was asked for.
 */
export async function answeredFromPlan<Plan extends HashedPlan, Answer extends PartsAnswer>(
  mode: Exclude<PartsMode, 'parts'>,
  flags: PlanFlags,
  work: PlannedWork<Plan, Answer>,
  { answer, write, program, ...job }: Answering<Answer>,
): Promise<boolean> {
  switch (mode) {
    case 'status':
      await answer(work.answer(mode));
      return true;
    case 'launch': {
      refuseIdlePlaces(flags);
      const { launch = 'slurm', submit: isSubmitted = false, tasks, image, claim } = flags;
      const started = { program: [process.execPath, program], tasks, image, claim, ...job };
      const result = await work.launch(launch, { isSubmitted, ...started });
      if (result.job === null || formatOf(flags) !== 'table') await answer(result);
      else await write(result.job.answer ?? result.job.text);
      return true;
    }
    case 'finish':
      if (flags.wait) await work.wait();
      if (work.missing.length === 0) return false;
      process.exitCode = 1;
      await answer(work.answer(mode));
      return true;
    case 'part':
      return false;
  }
}
