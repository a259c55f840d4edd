import { randomUUID } from 'node:crypto';
import type { LoadContext } from './context.ts';
import type { BusinessUnitChange } from './journal.ts';

/** The business units that the customers service knows. */
export const BUSINESS_UNITS = [77, 78];
/** Facilities of a unit in this run: a thousand times its number, and the following. */
const FACILITIES_PER_UNIT = 10;

/** Has the customers service change a business unit; null when it did not acknowledge that. */
export async function changeBusinessUnit(
  { caller, journal, urls }: LoadContext,
  businessUnitId: number,
  verb: 'activate' | 'deactivate',
): Promise<BusinessUnitChange | null> {
  const facilityIds = Array.from(
    { length: FACILITIES_PER_UNIT },
    (_, index) => businessUnitId * 1_000 + index,
  );
  // Not repeated: the customers service knows no idempotency keys, and a second change is a change of its
  // own.
  const response = await caller.attempt({
    operation: `POST ${verb}`,
    url: `${urls.customers}/business-units/${businessUnitId}/${verb}`,
    body: { facilityIds },
  });
  if (response?.status !== 202) return null;
  const acknowledged = JSON.parse(response.text) as BusinessUnitChange;
  journal.businessUnitChanges.push(acknowledged);
  return acknowledged;
}

/** The opposite of a change, a millisecond older. */
export function oppositeBefore(change: BusinessUnitChange): BusinessUnitChange {
  return {
    ...change,
    eventId: randomUUID(),
    changeType: change.changeType === 'Activated' ? 'Deactivated' : 'Activated',
    occurredAtUtc: new Date(Date.parse(change.occurredAtUtc) - 1).toISOString(),
  };
}
