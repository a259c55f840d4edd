import { AUTH_MUTANTS } from './catalogue/auth.ts';
import { GENERATION_MUTANTS } from './catalogue/generation.ts';
import { MESSAGING_MUTANTS } from './catalogue/messaging.ts';
import { RETENTION_MUTANTS } from './catalogue/retention.ts';
import { SCHEDULER_MUTANTS } from './catalogue/scheduler.ts';
import { SERVICE_MUTANTS } from './catalogue/service.ts';
import { SETTINGS_MUTANTS } from './catalogue/settings.ts';
import type { Mutant } from './mutant.ts';

/** All mutants. Chaos must notice each. */
export const MUTANTS: readonly Mutant[] = [
  ...SETTINGS_MUTANTS,
  ...AUTH_MUTANTS,
  ...SCHEDULER_MUTANTS,
  ...GENERATION_MUTANTS,
  ...MESSAGING_MUTANTS,
  ...RETENTION_MUTANTS,
  ...SERVICE_MUTANTS,
];
