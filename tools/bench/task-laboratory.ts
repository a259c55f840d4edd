import { SERVICES } from '#platform/programs.ts';
import type { PlatformSettings } from '#platform/environments.ts';
import { productionEnvironment, type Laboratory } from '#platform/laboratory.ts';
import { startMeasuredProgram, type MeasuredProgram } from './measured-program.ts';

/** Starts the task service whose parts are measured one by one, on databases of its own. It asks auth-service for revocations all
 *  the time, as in production, so give it the settings of one that runs. */
export function startTaskParts(
  laboratory: Laboratory,
  settings: PlatformSettings,
  variables: Readonly<Record<string, string>> = {},
): Promise<MeasuredProgram> {
  const task = SERVICES.find(({ service }) => service === 'task')!;
  return startMeasuredProgram(laboratory, 'task-service', {
    ...productionEnvironment(task, settings),
    ...variables,
  });
}
