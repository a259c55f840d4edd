import type { Scenario } from './scenario.ts';

/** What is promised, as the table of docs/reliability.md calls it. */
type Claim =
  | 'settings'
  | 'sessions'
  | 'revocations'
  | 'schedules, completions'
  | 'lives of schedules'
  | 'instances'
  | 'fires'
  | 'business-unit changes'
  | 'queues, outbox'
  | 'responses'
  | 'recovery'
  | 'logs'
  | 'retention'
  | 'feeds';

/** One deliberate mistake, and the shortest run that has to notice it. */
export interface Mutant {
  readonly name: string;
  /** What the mistake is, in a few words. */
  readonly says: string;
  readonly claim: Claim;
  /** Which part of the promise it breaks; mistakes with different parts may share a copy. */
  readonly aspect?: string;
  readonly bundle: string;
  /** Occurs once in the bundle. */
  readonly original: string;
  readonly mistake: string;
  readonly scenario: Scenario;
  /** Set when it would hide other mistakes or be confused with them, so it is planted alone; says why. */
  readonly masks?: string;
  /** Faults of three machines that bring it to light; those of the scenario unless given. */
  readonly clusterFaults?: string;
  /** Part of a finding that names the mistake's effect. */
  readonly caughtBy: RegExp;
}

export const AUTH = 'apps/auth-service/code/main.js';
export const SETTINGS = 'apps/settings-service/code/main.js';
export const TASK = 'apps/task-service/code/main.js';
