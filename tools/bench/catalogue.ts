import type { Benchmark } from './benchmark.ts';
import { schedulePost } from './benchmarks/schedule-post.ts';
import { generation, outboxRelay, schedulerFire } from './benchmarks/scheduler.ts';
import { settingsList, settingsRead, settingsWrite } from './benchmarks/settings.ts';
import { coldStart, coldStartMemory, firstRun } from './benchmarks/start.ts';
import { tokenPassword, tokenPasswordPing, tokenRefresh, tokenTrust } from './benchmarks/tokens.ts';
import {
  revocationCheck,
  revocationEffect,
  revocationMemory,
  tokenVerify,
} from './benchmarks/verification.ts';

/** Every benchmark, in the order of the table. */
export const BENCHMARKS: readonly Benchmark[] = [
  settingsRead,
  settingsWrite,
  settingsList,
  tokenTrust,
  tokenRefresh,
  tokenPassword,
  tokenPasswordPing,
  tokenVerify,
  revocationCheck,
  revocationMemory,
  revocationEffect,
  schedulerFire,
  outboxRelay,
  schedulePost,
  generation,
  coldStart,
  coldStartMemory,
  firstRun,
];
