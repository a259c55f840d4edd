import { HORIZON_DAYS } from './recurrences.ts';
import {
  changeBusinessUnits,
  commandGeneration,
  createAndComplete,
  holdSessions,
  changeSchedules,
  renewToken,
  revokeTokens,
  type Work,
  writeSettings,
} from './workers.ts';

/** A group of workers with the same task. */
export interface Crew {
  /** Number of workers. */
  readonly count: number;
  readonly work: Work;
  /** Pause of each worker after a step. */
  readonly pauseMs: number;
}

/** The workers of a load and their pace. The machine also runs the platform, so pauses limit the load. */
export interface Profile {
  readonly crews: readonly Crew[];
  /** The workers that change schedules. They start and stop independently of the others. */
  readonly scheduleChangers: Crew;
  /** How far ahead the platform generates instances. */
  readonly horizonDays: number;
}

/** The load of a platform under faults, which is configured with `TASK_VARIABLES`. */
export const UNDER_FAULTS: Profile = {
  crews: [
    { count: 3, work: writeSettings, pauseMs: 25 },
    { count: 3, work: holdSessions, pauseMs: 25 },
    { count: 3, work: createAndComplete, pauseMs: 25 },
    { count: 1, work: commandGeneration, pauseMs: 300 },
    { count: 1, work: revokeTokens, pauseMs: 1_000 },
    { count: 1, work: changeBusinessUnits, pauseMs: 400 },
  ],
  scheduleChangers: { count: 2, work: changeSchedules, pauseMs: 25 },
  horizonDays: HORIZON_DAYS,
};

/** The load of a platform that its manifests configure, while its pods and keys are replaced. */
export const IN_CONTAINERS: Profile = {
  crews: [
    { count: 1, work: renewToken, pauseMs: 1_000 },
    { count: 3, work: writeSettings, pauseMs: 25 },
    { count: 1, work: holdSessions, pauseMs: 25 },
    { count: 3, work: createAndComplete, pauseMs: 100 },
    { count: 1, work: commandGeneration, pauseMs: 1_000 },
    { count: 1, work: revokeTokens, pauseMs: 1_000 },
    { count: 1, work: changeBusinessUnits, pauseMs: 1_000 },
  ],
  scheduleChangers: { count: 1, work: changeSchedules, pauseMs: 100 },
  horizonDays: 30,
};
