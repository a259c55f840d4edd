import { HORIZON_DAYS } from './recurrences.ts';
import {
  changeBusinessUnits,
  commandGeneration,
  createAndComplete,
  holdSessions,
  liveSchedules,
  renewToken,
  revokeTokens,
  type Work,
  writeSettings,
} from './workers.ts';

/** So many workers that do the same, each with this pause after a step. */
export interface Crew {
  readonly count: number;
  readonly work: Work;
  readonly pauseMs: number;
}

/** Who works in a load, and at what pace: the machine has to carry the platform as well. */
export interface Profile {
  readonly crews: readonly Crew[];
  /** Those who change schedules; they begin and end apart. */
  readonly lives: Crew;
  /** How far ahead the platform generates instances. */
  readonly horizonDays: number;
}

/** Of a platform that is broken under load, and configured by `TASK_VARIABLES`. */
export const UNDER_FAULTS: Profile = {
  crews: [
    { count: 3, work: writeSettings, pauseMs: 25 },
    { count: 3, work: holdSessions, pauseMs: 25 },
    { count: 3, work: createAndComplete, pauseMs: 25 },
    { count: 1, work: commandGeneration, pauseMs: 300 },
    { count: 1, work: revokeTokens, pauseMs: 1_000 },
    { count: 1, work: changeBusinessUnits, pauseMs: 400 },
  ],
  lives: { count: 2, work: liveSchedules, pauseMs: 25 },
  horizonDays: HORIZON_DAYS,
};

/** Of a platform as its manifests configure it, whose pods and keys are replaced under load. */
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
  lives: { count: 1, work: liveSchedules, pauseMs: 100 },
  horizonDays: 30,
};
