import type { Check } from '#verification/audit/check.ts';

/** Tells of progress, a line at a time. */
export type Report = (line: string) => void;

/** Where a scenario takes place: servers, and a platform on them. */
export interface Stage {
  /** Ends everything. */
  stop(): Promise<void>;
}

/** A stage under load. */
export interface Scene<S extends Stage, L> {
  readonly stage: S;
  readonly load: L;
  readonly report: Report;
}

/** What a run has shown. */
export interface Result {
  /** What was acknowledged, compared with what is there. */
  readonly checks: readonly Check[];
  /** Blocks of lines for the report: tables, remarks. */
  readonly blocks: readonly (readonly string[])[];
  /** The last line when nothing was found. */
  readonly success: string;
  /** What is kept as JSON. */
  readonly figures: object;
}

/**
 * One way to show that the platform keeps its promises. `runScenario` calls the functions in this order.
 * `L` is the load, `N` is what was noted of the steps.
 */
export interface Scenario<S extends Stage, L, N> {
  /** The command that gives the same run again. */
  readonly command: string;
  /** The file below test-results/ that keeps everything. */
  readonly resultFile: string;
  /** Starts the servers. */
  open(report: Report): Promise<S>;
  /** Starts the programs of the platform and its callers. */
  load(stage: S, report: Report): Promise<L>;
  /** Does what the platform has to stand: faults, upgrades, a disaster. */
  steps(scene: Scene<S, L>): Promise<N>;
  /** Ends the load, and waits until nothing is on its way. */
  drain(scene: Scene<S, L>, notes: N): Promise<void>;
  audit(scene: Scene<S, L>, notes: N): Promise<Result>;
}
