import type { Rounds } from './rounds.ts';

/** A promise of the platform. The names are those of the table in docs/reliability.md. */
type PromiseName =
  | 'settings'
  | 'sessions'
  | 'revocations'
  | 'schedules, completions'
  | 'changes of schedules'
  | 'instances'
  | 'fires'
  | 'business-unit changes'
  | 'queues, outbox'
  | 'responses'
  | 'recovery'
  | 'logs'
  | 'retention'
  | 'feeds';

/** A deliberate mistake in the code of a bundle, and the shortest run that must notice it. */
export interface Mutant {
  readonly name: string;
  /** Describes the mistake in a few words, for the table in docs/reliability.md. */
  readonly description: string;
  readonly promise: PromiseName;
  /** The part of the promise that it breaks. Mutants with different aspects may share a copy. */
  readonly aspect?: string;
  readonly bundle: string;
  /** The code to replace. It must occur exactly once in the bundle. */
  readonly original: string;
  /** The code that replaces `original`. */
  readonly mistake: string;
  readonly rounds: Rounds;
  /** The reason why the mutant is planted alone: it would hide other mutants or be confused with them. */
  readonly masks?: string;
  /** Faults to use with `--cluster`, separated by commas. By default those of `rounds`. */
  readonly clusterFaults?: string;
  /** Matches a finding that reports the effect of the mutant. */
  readonly caughtBy: RegExp;
}

export const AUTH = 'apps/auth-service/code/main.js';
export const SETTINGS = 'apps/settings-service/code/main.js';
export const TASK = 'apps/task-service/code/main.js';
