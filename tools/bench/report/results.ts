import type { ContestResult } from '../run-contest.ts';

/** Everything of one run, as docs/benchmarks.json keeps it. */
export interface RunResults {
  readonly measuredAt: string;
  readonly commit: string;
  readonly command: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly benchmarks: readonly BenchmarkResult[];
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly system: string;
}

export interface BenchmarkResult {
  readonly id: string;
  readonly title: string;
  readonly result: ContestResult;
}
