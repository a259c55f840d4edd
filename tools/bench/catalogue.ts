import type { Benchmark } from './benchmark.ts';
import { coldStart, coldStartMemory } from './benchmarks/cold-start.ts';
import { firstRun } from './benchmarks/first-run.ts';
import { generation } from './benchmarks/generation.ts';
import { outboxRelay } from './benchmarks/outbox-relay.ts';
import { revocationCheck, revocationMemory } from './benchmarks/revocation-check.ts';
import { schedulePost } from './benchmarks/schedule-post.ts';
import { schedulerFire } from './benchmarks/scheduler-fire.ts';
import { settingsList } from './benchmarks/settings-list.ts';
import { settingsRead } from './benchmarks/settings-read.ts';
import { settingsWrite } from './benchmarks/settings-write.ts';
import { revocationEffect } from './benchmarks/revocation-effect.ts';
import { tokenPassword, tokenPasswordPing } from './benchmarks/token-password.ts';
import { tokenRefresh } from './benchmarks/token-refresh.ts';
import { tokenTrust } from './benchmarks/token-trust.ts';
import { tokenVerify } from './benchmarks/token-verify.ts';

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
