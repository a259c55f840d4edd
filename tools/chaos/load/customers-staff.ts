import { setTimeout as delay } from 'node:timers/promises';
import type { LoadContext } from './context.ts';
import type { BusinessUnitChange } from './journal.ts';

/** The business units that the customers service knows. */
const BUSINESS_UNITS = [77, 78];
/** Facilities of a unit in this run: its number times this, and the following. */
const FACILITIES_PER_UNIT = 10;
const BETWEEN_MS = 400;
const REPEAT_RATE = 0.2;

/** Publishes a message again under its own id, as a publisher does whose confirm got lost. */
export type Republish = (change: BusinessUnitChange) => Promise<void>;

/** Activates and deactivates business units, and now and then has a change arrive twice. */
export async function changeBusinessUnits(context: LoadContext, republish: Republish): Promise<void> {
  const { caller, journal, random, stop, urls } = context;
  for (let count = 0; !stop.aborted; count += 1) {
    const businessUnitId = BUSINESS_UNITS[count % BUSINESS_UNITS.length] ?? 77;
    const command = random.chance(0.5) ? 'activate' : 'deactivate';
    const facilityIds = Array.from(
      { length: FACILITIES_PER_UNIT },
      (_, index) => businessUnitId * 1_000 + index,
    );
    // Not repeated: the customers service knows no idempotency keys, and a second change is a change of its own.
    const answer = await caller.attempt({
      operation: `POST ${command}`,
      method: 'POST',
      url: `${urls.customers}/business-units/${businessUnitId}/${command}`,
      body: { facilityIds },
    });
    if (answer?.status === 202) {
      const change = JSON.parse(answer.text) as BusinessUnitChange;
      journal.businessUnitChanges.push(change);
      if (random.chance(REPEAT_RATE)) await republish(change);
    }
    await delay(BETWEEN_MS);
  }
}
