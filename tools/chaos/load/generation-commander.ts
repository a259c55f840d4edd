import { setTimeout as delay } from 'node:timers/promises';
import type { LoadContext } from './context.ts';
import { operationOf } from './journal.ts';

const FIRST_COMMANDED_FACILITY = 20_000;
const BETWEEN_MS = 300;

/** Schedules and unschedules a facility by turns, by requests over the bus. */
export async function commandGeneration(context: LoadContext, worker: number): Promise<void> {
  const { caller, journal, urls, adminToken, stop } = context;
  const facilityId = FIRST_COMMANDED_FACILITY + worker;
  for (let count = 1; !stop.aborted; count += 1) {
    const wanted = count % 2 === 1;
    const command = wanted ? 'schedule' : 'unschedule';
    const outcome = await caller.persist({
      operation: `POST ${command}Recurring…`,
      method: 'POST',
      url: `${urls.task}/commands/${command}RecurringTaskInstanceGeneration`,
      token: adminToken,
      body: wanted ? { facilityId, schedule: '0 5 * * *', timeZone: 'UTC' } : { facilityId },
      // No answer came over the bus in time: as documented.
      retriedStatuses: [504],
    });
    const id = `${facilityId}-${count}`;
    journal.generationCommands.push({
      ...operationOf(id, String(facilityId), outcome),
      wanted,
      unanswered: outcome.unanswered,
    });
    await delay(BETWEEN_MS);
  }
}
