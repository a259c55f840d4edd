import type { Check } from '#verification/audit/check.ts';

/** Prints one line of progress. */
export type Report = (line: string) => void;

/** The setting of a scenario: servers, and a platform on them. */
export interface Stage {
  /** Stops all programs and servers. */
  stop(): Promise<void>;
}

/** A stage and its load. */
export interface ScenarioContext<S extends Stage, L> {
  readonly stage: S;
  readonly load: L;
  readonly report: Report;
}

/** The result of a run. */
export interface Result {
  /** Comparisons of acknowledgements with facts. */
  readonly checks: readonly Check[];
  /** Blocks of lines for the report: tables, remarks. */
  readonly blocks: readonly (readonly string[])[];
  /** The last line of the report if there are no findings. */
  readonly success: string;
  /** Saved as JSON. */
  readonly figures: object;
}

/**
 * A test of the platform's promises. `runScenario` calls the functions in the order of their declaration.
 * `L` is the type of the load. `N` is the type of the notes that the steps hand to the audit.
 */
export interface Scenario<S extends Stage, L, N> {
  /** The command that repeats the run. */
  readonly command: string;
  /** The file for all results, below test-results/. */
  readonly resultFile: string;
  /** Starts the servers. */
  open(report: Report): Promise<S>;
  /** Starts the programs of the platform, and its callers. */
  load(stage: S, report: Report): Promise<L>;
  /** Does to the platform what it must withstand: faults, upgrades, a disaster. */
  steps(context: ScenarioContext<S, L>): Promise<N>;
  /** Ends the load, and waits until nothing is in progress. */
  drain(context: ScenarioContext<S, L>, notes: N): Promise<void>;
  audit(context: ScenarioContext<S, L>, notes: N): Promise<Result>;
}
