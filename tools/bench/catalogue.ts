import type { Benchmark } from './benchmark.ts';
import { settingsRead } from './benchmarks/settings-read.ts';

/** Every benchmark, in the order of the table. */
export const BENCHMARKS: readonly Benchmark[] = [settingsRead];
