import { randomUUID } from 'node:crypto';
import type { LoadContext } from './context.ts';
import type { BusinessUnitChange } from './journal.ts';

/** Ids of the customers service's business units. */
export const BUSINESS_UNITS = [77, 78];
/** Number of facilities of a unit. Their ids are consecutive, starting at 1,000 times the unit's id. */
const FACILITIES_PER_UNIT = 10;

/** Changes a business unit at the customers service. Null if the change was not acknowledged. */
export async function changeBusinessUnit(
  { caller, journal, urls }: LoadContext,
  businessUnitId: number,
  verb: 'activate' | 'deactivate',
): Promise<BusinessUnitChange | null> {
  const facilityIds = Array.from(
    { length: FACILITIES_PER_UNIT },
    (_, index) => businessUnitId * 1_000 + index,
  );
  // Not retried: the customers service has no idempotency keys, so a retry would be a second change.
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

/** Returns the opposite of a change, dated 1 ms earlier. */
export function oppositeBefore(change: BusinessUnitChange): BusinessUnitChange {
  return {
    ...change,
    eventId: randomUUID(),
    changeType: change.changeType === 'Activated' ? 'Deactivated' : 'Activated',
    occurredAtUtc: new Date(Date.parse(change.occurredAtUtc) - 1).toISOString(),
  };
}
