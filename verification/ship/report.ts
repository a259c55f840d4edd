import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { textTable } from '#platform/command-line.ts';
import { WORKSPACE } from '#platform/state-folder.ts';

export interface Outcome {
  readonly name: string;
  readonly durationMs: number;
  /** Observations, if the step passed. */
  readonly detail: string;
  /** Null: the step passed. */
  readonly problem: string | null;
}

export interface Measured {
  readonly name: string;
  imageBytes: number;
  user: string;
  readyMs: number[];
  idle: Use;
  loaded: Use;
}

/** Memory, and number of busy processors, of the busiest replica of a service. */
export interface Use {
  readonly bytes: number;
  readonly processors: number;
}

const RESULTS = join(WORKSPACE, 'test-results');
/** The file to which the test report attributes the steps. */
const STEPS_FILE = join(WORKSPACE, 'verification/ship/steps.ts');

/** Saves the outcomes as JSON, also in the format of Jest's reports, which `npm test` counts. */
export function saveOutcomes(outcomes: readonly Outcome[], measured: readonly Measured[]): void {
  mkdirSync(join(RESULTS, 'ship'), { recursive: true });
  const failed = outcomes.filter(({ problem }) => problem !== null).length;
  const counts = { success: failed === 0, numPassedTests: outcomes.length - failed, numFailedTests: failed };
  const save = (file: string, value: unknown): void =>
    writeFileSync(join(RESULTS, file), `${JSON.stringify(value, null, 2)}\n`);
  const assertionResults = outcomes.map(({ name, problem }) => ({
    fullName: name,
    status: problem === null ? 'passed' : 'failed',
    failureMessages: problem === null ? [] : [problem],
  }));
  const ofAllSteps = {
    name: STEPS_FILE,
    message: '',
    status: failed === 0 ? 'passed' : 'failed',
    assertionResults,
  };
  save('ship.ship.json', {
    ...counts,
    numPendingTests: 0,
    numRuntimeErrorTestSuites: 0,
    testResults: [ofAllSteps],
  });
  save('ship/report.json', { outcomes, measured });
}

export function renderMeasured(measured: readonly Measured[]): string {
  const rows = measured.map(({ name, imageBytes, user, readyMs, idle, loaded }) => {
    const sorted = readyMs.toSorted((left, right) => left - right);
    const ready = `${seconds(sorted[0])} – ${seconds(sorted.at(-1))}`;
    return [name, megabytes(imageBytes), user, ready, ...[idle, loaded].map(describeUse)];
  });
  const head = ['service', 'image', 'user', 'start to ready', 'idle', 'under load'];
  return textTable(head, rows).join('\n');
}

/** E.g. `52.1 s`. */
export function seconds(ms?: number): string {
  return ms === undefined ? '?' : `${(ms / 1_000).toFixed(1)} s`;
}

function describeUse({ bytes, processors }: Use): string {
  return `${megabytes(bytes)}, ${processors.toFixed(2)} CPU`;
}

function megabytes(bytes: number): string {
  return bytes === 0 ? '?' : `${(bytes / 1e6).toFixed(0)} MB`;
}
